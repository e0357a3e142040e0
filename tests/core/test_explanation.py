"""Explanations: of a call, and of a kernel in general; nothing is run."""

from __future__ import annotations

import pytest

import tensorplug as tp
from tensorplug import dtypes as dt
from tensorplug.explanation import Explanation
from tensorplug.ops.elementwise import EXP, NEG, SQUARE
from tensorplug.spec import TensorType
from tensorplug.tables import KernelTable

from . import engines
from .engines import using


def table(spec, dtypes=None):
    made = KernelTable()

    def kernel(x):  # the spec names the input
        raise AssertionError("an explanation ran a kernel")

    made.register(spec, dtypes=dtypes)(kernel)
    return made


@pytest.fixture(params=["error", "allow"])
def fallback(request):
    """Yield the policy; the backend "home" has Neg for float32, "away" has Exp."""
    engine = engines.make(
        {"home": [table(NEG, [dt.float32])], "away": [table(EXP)]}, fallback=request.param
    )
    engine.source.dtypes["home"] = frozenset({dt.float32, dt.int32})
    with using(engine), tp.use_backend("away"), tp.use_backend("home"):
        yield request.param


NATIVE = ("native", "kernel of home-distribution 2.0")
ABSENT = ("native", "not registered")
FORBIDDEN = ("fallback", "not allowed (TENSORPLUG_FALLBACK=error)")
NO_RULE = ("decomposed", "no decomposition is registered")

GENERAL = [  # kernel, dtype, call, how, owner, steps; for each policy if they differ
    ("Neg", None, "Neg(x)", "native", "home-distribution 2.0", (NATIVE,)),
    ("Neg", "float32", "Neg(x) in float32", "native", "home-distribution 2.0", (NATIVE,)),
    (
        "Square",
        None,
        "Square(x)",
        "decomposed",
        "the-core 1.0",
        (ABSENT, ("decomposed", "by the-core 1.0")),
    ),
]


@pytest.mark.usefixtures("fallback")
@pytest.mark.parametrize(("kernel", "dtype", "call", "how", "owner", "steps"), GENERAL)
def test_in_general(kernel, dtype, call, how, owner, steps):
    assert tp.explain(kernel, dtype=dtype) == Explanation(kernel, call, "home", how, owner, steps)


def test_a_dtype_that_a_kernel_or_a_backend_lacks(fallback):
    explained = tp.explain("Neg", dtype="int32")
    assert explained.steps[0] == (
        "native",
        "the kernel of home-distribution 2.0 does not take int32",
    )
    assert explained.how is None
    assert tp.explain("Neg", dtype="float64").reason == "backend 'home' has no dtype float64"
    last = (
        FORBIDDEN if fallback == "error" else ("fallback", "no loaded backend has a kernel for it")
    )
    assert explained.steps[1:] == (NO_RULE, last)


def test_by_fallback_in_general(fallback):
    explained = tp.explain("Exp")
    if fallback == "error":
        assert (explained.how, explained.steps) == (None, (ABSENT, NO_RULE, FORBIDDEN))
    else:
        assert (explained.how, explained.owner) == ("fallback", "away")
        assert explained.steps == (ABSENT, NO_RULE, ("fallback", "runs on backend 'away'"))


@pytest.mark.usefixtures("fallback")
def test_of_a_call():
    x = TensorType(dt.float32, (2, 3))
    explained = tp.explain("Neg", [x])
    assert explained == Explanation(
        "Neg", "Neg(x=float32[2,3])", "home", "native", "home-distribution 2.0", (NATIVE,)
    )
    assert str(explained) == (
        "Neg(x=float32[2,3]) on backend 'home': native\n  native: kernel of home-distribution 2.0"
    )
    assert tp.explain(SQUARE, [x]).how == "decomposed"
    assert tp.explain("Neg", [tp.asarray([1.0])]).how == "native"
    assert tp.explain("Neg", [[1.0, 2.0]]).call == "Neg(x=float32[2])"
    assert tp.explain("Exp", [x], backend="away").how == "native"
    joined = tp.explain("Concat", [[x, [[1.0, 2.0, 3.0]]]], {"axis": 0})
    assert joined.call == "Concat(xs=[float32[2,3], float32[1,3]])"


@pytest.mark.usefixtures("engine")
def test_mixed_dtypes_are_promoted_as_in_the_call():
    a, b = TensorType(dt.int32, (2,)), TensorType(dt.float32, (2,))
    with tp.register_kernel("Sub", "memory", lambda a, b: a - b, dtypes=[dt.float32]):
        assert tp.explain("Sub", [a, b]).how == "native"
        assert tp.explain("Sub", [a, a]).how is None
    with tp.register_kernel("RealDiv", "memory", lambda a, b: a / b, dtypes=[dt.float32]):
        assert tp.explain("RealDiv", [a, a]).how == "native"


@pytest.mark.usefixtures("fallback")
@pytest.mark.parametrize(
    ("inputs", "attributes", "reason"),
    [
        ([TensorType(dt.bool_, ())], None, "Neg(x=bool[]): input 'x' is bool[], but its dtype"),
        ([], None, "Neg(): takes 1 inputs, got 0"),
        ([TensorType(dt.float32, ())] * 2, None, "takes 1 inputs, got 2"),
        ([None], None, "input 'x' is missing"),
        ([TensorType(dt.float32, ())], {"axis": 1}, "has no attribute 'axis'"),
        ([TensorType(dt.float64, ())], None, "float64[] is not possible on backend 'home'"),
    ],
)
def test_a_call_that_is_not_possible(inputs, attributes, reason):
    explained = tp.explain("Neg", inputs, attributes)
    assert (explained.how, explained.owner, explained.steps) == (None, "", ())
    assert reason in explained.reason
    assert str(explained).splitlines()[1] == f"  {explained.reason}"
