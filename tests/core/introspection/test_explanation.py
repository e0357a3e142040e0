"""Explanations: of a call, and of a kernel in general; nothing is run."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import using
from tests.core.support.gradient_points import POINTS

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.contract.tables import KernelTable
from tensorplug.dispatch.context import current_context
from tensorplug.errors import KernelNotFoundError
from tensorplug.introspection.explanation import Explanation
from tensorplug.ops.elementwise.unary import EXP, NEG, SQUARE, negative
from tensorplug.plugins.assembly import core_registry


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
    engine.devices.source.dtypes["home"] = frozenset({dt.float32, dt.int32})
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
def test_a_kernel_is_explained_without_a_call(kernel, dtype, call, how, owner, steps):
    assert tp.explain(kernel, dtype=dtype) == Explanation(
        kernel, call, "home", how, owner, steps, vmap="elementwise", facts={"elementwise": "yes"}
    )


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
    squared = tp.explain(SQUARE, [x])  # needs Multiply, which neither backend has
    assert (squared.how, squared.steps[1][0]) == (None, "decomposed")
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


# What a decomposition consists of --------------------------------------------------------

X = TensorType(dt.float32, (2, 3))
DETOUR, OTHER = engines.spec_of("Detour"), engines.spec_of("OtherDetour")


@pytest.fixture
def decompose():
    """Yield what registers a decomposition; the backend has Neg alone, which must not run."""
    with using(engines.make({"home": [table(NEG, [dt.float32])]})):
        yield lambda function, spec=DETOUR: tp.register_decomposition(spec, function)


def calls(explained):
    return [(call.call, call.how) for call in explained.inner]


def test_the_calls_of_a_decomposition(decompose):
    decompose(lambda x: negative(-x), OTHER)
    decompose(lambda x: tp.run_kernel(OTHER, [-x]))
    explained = tp.explain(DETOUR, [X])
    assert (explained.how, explained.reason) == ("decomposed", "")
    assert explained.steps == (ABSENT, ("decomposed", "by the running program"))
    assert calls(explained) == [
        ("Neg(x=float32[2,3])", "native"),
        ("OtherDetour(x=float32[2,3])", "decomposed"),
    ]
    assert calls(explained.inner[1]) == [("Neg(x=float32[2,3])", "native")] * 2
    assert explained.inner[0].owner == "home-distribution 2.0"
    assert str(explained) == (
        "Detour(x=float32[2,3]) on backend 'home': decomposed\n"
        "  native: not registered\n"
        "  decomposed: by the running program, into\n"
        "    Neg(x=float32[2,3]): native\n"
        "    OtherDetour(x=float32[2,3]): decomposed\n"
        "      Neg(x=float32[2,3]): native, 2 times"
    )


def test_a_kernel_that_is_missing_inside(decompose):
    decompose(lambda x: tp.exp(x), OTHER)  # noqa: PLW0108  # an op is no decomposition
    decompose(lambda x: tp.run_kernel(OTHER, [x]))
    explained = tp.explain(DETOUR, [X])
    assert explained.how is None
    assert explained.reason == "its decomposition needs OtherDetour(x=float32[2,3])"
    inner = explained.inner[-1]
    assert inner.reason == "its decomposition needs Exp(x=float32[2,3])"
    assert "kernel 'Exp' cannot run on backend 'home'" in inner.inner[0].reason
    lines = str(explained).splitlines()
    assert lines[0] == "Detour(x=float32[2,3]) on backend 'home': not possible"
    assert lines[-1] == "  its decomposition needs OtherDetour(x=float32[2,3])"
    with pytest.raises(KernelNotFoundError):  # as the call itself says
        tp.run_kernel(DETOUR, [tp.asarray([1.0])])


def test_numbers_casts_lists_and_attributes_inside(engine):
    def decomposed(x):
        y = tp.concat([x * 2.0, tp.add(x, [[1, 2, 3]])], axis=0)
        return tp.sum(tp.astype(y, tp.float64), axis=0)

    spec = engines.spec_of("Mixed", infer=lambda x: TensorType(dt.float64, (x.shape[1],)))
    with tp.register_decomposition(spec, decomposed):
        explained = tp.explain(spec, [X])
    assert calls(explained) == [
        ("Multiply(a=float32[2,3], b=float32[])", "native"),
        ("Add(a=float32[2,3], b=int32[1,3])", "native"),
        ("Concat(xs=[float32[2,3], float32[2,3]])", "native"),
        ("Cast(x=float32[4,3])", "native"),
        ("Sum(x=float64[4,3])", "native"),
    ]
    assert explained.inner[1].steps[0] == ("promoted", "to float32")


def test_kernels_without_inputs_are_not_run_either(engine):
    """Their plans are found by attributes alone, also when those were used before."""
    ran = []

    def fill(*, shape, value, out):
        ran.append(shape)
        return np.full(shape, value, out.dtype.numpy)

    def decomposed(x):
        return x + tp.zeros(x.shape)

    with (
        tp.register_kernel("Fill", "memory", fill, override=True),
        tp.register_decomposition(DETOUR, decomposed),
    ):
        for _ in range(2):
            tp.zeros((2, 3))
        assert len(ran) == 2
        assert calls(tp.explain(DETOUR, [X])) == [
            ("Fill()", "native"),
            ("Add(a=float32[2,3], b=float32[2,3])", "native"),
        ]
        assert len(ran) == 2


def test_a_decomposition_that_looks_at_values(decompose):
    decompose(lambda x: negative(-x) if (-x).numpy().any() else x)
    explained = tp.explain(DETOUR, [X])
    assert (explained.how, calls(explained)) == (
        "decomposed",
        [("Neg(x=float32[2,3])", "native")],
    )
    assert explained.steps[-1] == (
        "unknown",
        "its further calls depend on data: it reads the values of a tensor",
    )


def test_a_decomposition_that_asks_the_engine(decompose):
    def decomposed(x):
        assert tp.get_backend() == x.device == "home"
        return -tp.asarray(x, dtype=tp.float32).to("home")

    decompose(decomposed)
    assert calls(tp.explain(DETOUR, [X])) == [("Neg(x=float32[2,3])", "native")]


def test_a_decomposition_inside_that_looks_at_values(decompose):
    """What comes after it is known, since its output types are."""
    decompose(lambda x: -x if x.numpy().any() else x, OTHER)
    decompose(lambda x: -tp.run_kernel(OTHER, [x]))
    explained = tp.explain(DETOUR, [X])
    assert (explained.how, explained.steps) == (
        "decomposed",
        (ABSENT, ("decomposed", "by the running program")),
    )
    assert calls(explained) == [
        ("OtherDetour(x=float32[2,3])", "decomposed"),
        ("Neg(x=float32[2,3])", "native"),
    ]
    assert explained.inner[0].steps[-1][0] == "unknown"


def test_a_decomposition_that_returns_something_else(decompose):
    decompose(lambda x: tp.run_kernel(OTHER, [x]))
    decompose(lambda x: 5, OTHER)  # noqa: ARG005  # the spec names the input
    explained = tp.explain(DETOUR, [X])
    assert explained.how is None
    assert explained.inner[0].reason == (
        "its decomposition raises KernelOutputError: OtherDetour(x=float32[2,3]): the decomposed "
        "form of the running program returned int instead of a tensor"
    )


def test_a_decomposition_that_raises(decompose):
    def decomposed(x):
        raise ZeroDivisionError("by hand")

    decompose(decomposed)
    explained = tp.explain(DETOUR, [X])
    assert (explained.how, explained.inner) == (None, ())
    assert explained.reason == "its decomposition raises ZeroDivisionError: by hand"


def test_decompositions_that_lead_back_to_themselves(decompose):
    decompose(lambda x: tp.run_kernel(OTHER, [x]))
    decompose(lambda x: tp.run_kernel(DETOUR, [x]), OTHER)
    explained = tp.explain(DETOUR, [X])
    assert explained.how is None
    assert explained.inner[0].inner[0].reason == "its decomposition calls itself"


def test_an_explanation_leaves_nothing(engine):
    before = current_context()
    tp.asarray(1.0)
    memory = tp.memory()
    with tp.register_decomposition(DETOUR, lambda x: tp.add(tp.exp(x * 3.0), [1.0])):
        tp.explain(DETOUR, [TensorType(dt.float32, (1000, 1000))])
    assert current_context() is before
    assert tp.memory() == memory
    assert engine.open("memory").counters.transfers_in == 0


def test_every_decomposition_of_the_catalogue_can_be_traced():
    """No decomposition reads data."""
    registry = core_registry()
    engine = engines.make({"none": []}, fallback="error")
    seen = 0
    for case in POINTS:
        if registry.state.decomposition(case.kernel) is None or case.kernel == "MaxPoolGrad":
            continue
        types = [
            None
            if value is None
            else tp.tree_map(lambda x: TensorType(dt.of(x.dtype), x.shape), value)
            for value in (case.inputs.get(name) for name in registry.spec(case.kernel).input_names)
        ]
        with engines.using(engine):
            explained = tp.explain(case.kernel, types, case.attributes)
        result = explained.how in ("decomposed", "host")
        assert result or "decomposition needs" in explained.reason, explained
        seen += 1
    assert seen > 50


# Dtypes in general ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "dtype", "how", "steps", "reason"),
    [
        ("Exp", "int32", "native", [("promoted", "to float32")], ""),
        ("Exp", "bool", "native", [("promoted", "to float32")], ""),
        ("Exp", "float64", "native", [], ""),
        ("Add", "int32", "native", [], ""),
        ("LogicalAnd", "float32", None, [], "no input of LogicalAnd accepts float32"),
        ("Select", "float32", "native", [], ""),  # one of its inputs does
        ("Fill", "float32", "native", [], ""),  # it has none
        ("Exp", "string", None, [], "no input of Exp accepts string"),
    ],
)
def test_promotion_by_a_spec(engine, kernel, dtype, how, steps, reason):
    def select(condition, t, e):
        return np.where(condition, t, e)

    tp.register_kernel("Select", "memory", select)
    tp.register_kernel("LogicalAnd", "memory", lambda a, b: a & b)
    explained = tp.explain(kernel, dtype=dtype)
    assert (explained.how, explained.reason) == (how, reason)
    assert [step for step in explained.steps if step[0] != "native"] == steps
    assert [step[0] for step in explained.steps][len(steps) :] == (["native"] if how else [])
