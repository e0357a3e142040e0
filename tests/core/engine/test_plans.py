"""Plans: native, decomposed, by fallback or refused; checked once, cached, forgotten."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import expect, spec_of, using

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec
from tensorplug.contract.tables import KernelTable
from tensorplug.dispatch import device as device_module
from tensorplug.errors import (
    FallbackWarning,
    KernelNotFoundError,
    KernelOutputError,
    KernelRefusedError,
)
from tensorplug.ops.elementwise.arithmetic import ADD, SQUARED_DIFFERENCE
from tensorplug.ops.elementwise.unary import EXP, NEG

TWO = KernelSpec("Two", ("x",), lambda x: (x, x), outputs=("first", "second"))
ONE = spec_of("One")


def returns_nothing(x):  # the spec names the input
    return None


def returns_five(x):  # the spec names the input
    return 5


# What a kernel returns --------------------------------------------------------------------

WRONG = [  # spec, what the kernel returns for float32[2], a part of the message
    (ONE, lambda x: x[:1], "out is float32[1], but must be float32[2]"),
    (ONE, lambda x: x.astype("float64"), "out is float64[2], but must be float32[2]"),
    (ONE, returns_nothing, "out is not a buffer of backend 'memory': None is no array"),
    (ONE, lambda x: [x], "out is not a buffer of backend 'memory'"),
    (ONE, lambda x: x[0], "out is not a buffer of backend 'memory'"),
    (TWO, lambda x: x, "<class 'numpy.ndarray'> instead of a list of 2 outputs"),
    (TWO, returns_nothing, "<class 'NoneType'> instead of a list of 2 outputs"),
    (TWO, lambda x: [x], "returned 1 outputs instead of a list of 2 outputs"),
    (TWO, lambda x: [x, x, x], "returned 3 outputs instead of a list of 2 outputs"),
    (TWO, lambda x: (x, x[:1]), "second is float32[1], but must be float32[2]"),
]


@pytest.mark.parametrize("prepares", [False, True])
@pytest.mark.parametrize(("spec", "kernel", "message"), WRONG)
def test_a_kernel_that_returns_something_else(engine, spec, kernel, message, prepares):
    function = (lambda x: kernel) if prepares else kernel  # noqa: ARG005
    with tp.register_kernel(spec, "memory", function, prepares=prepares):
        x = tp.asarray([1.0, 2.0])
        for _ in range(2):  # a plan that failed its check is not kept
            with pytest.raises(KernelOutputError, match=re.escape(message)) as caught:
                tp.run_kernel(spec, [x])
            text = str(caught.value)
            assert text.startswith(f"{spec.name}(x=float32[2]) of the running program")
    assert engine.devices.active.plans == {}


def test_parameters_of_a_kernel(engine):
    seen = []
    options = {"shape": tp.Attribute(lambda value, _known: tuple(value), (1,))}
    spec = KernelSpec("Asks", ("x", "y?"), lambda x, y: x, attributes=options)  # noqa: ARG005

    def kernel(x, y, *, out, backend, attributes, shape):
        seen.append((y, out, backend, attributes, shape))
        return x

    with tp.register_kernel(spec, "memory", kernel):
        x = tp.asarray([1.0])
        tp.run_kernel(spec, [x, None], {"shape": [2]})
    backend = engine.devices.active.backend
    assert seen == [(None, x.type, backend, {"shape": (2,)}, (2,))]


def test_a_prepared_kernel_is_prepared_once_per_plan():
    prepared = []
    kernels = KernelTable()

    @kernels.prepare(ADD)
    def add(a, b, *, out):
        prepared.append((a, b, out))
        return np.add

    engine = engines.make({"memory": [kernels]})
    with using(engine):
        x, y = tp.asarray([1.0, 2.0]), tp.asarray([[1.0], [2.0]])
        for _ in range(3):
            expect(tp.add(x, y), "float32", (2, 2), [[2, 3], [3, 4]])
            expect(tp.add(y, x), "float32", (2, 2), [[2, 3], [3, 4]])
    assert [(str(a), str(b), str(out)) for a, b, out in prepared] == [
        ("float32[2]", "float32[2,1]", "float32[2,2]"),
        ("float32[2,1]", "float32[2]", "float32[2,2]"),
    ]


def test_an_error_in_preparation_names_kernel_and_owner(engine):
    def prepare(x):
        raise ZeroDivisionError(str(x))

    with tp.register_kernel(ONE, "memory", prepare, prepares=True):
        with pytest.raises(ZeroDivisionError) as caught:
            tp.run_kernel(ONE, [tp.asarray([1.0])])
        note = "while the running program prepared One(x=float32[1])"
        assert caught.value.__notes__ == [note]
    assert engine.devices.active.plans == {}


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.usefixtures("engine")
def test_an_error_in_a_kernel_names_kernel_owner_and_backend(warm):
    broken = []

    def kernel(x):
        if broken:
            raise ZeroDivisionError("broken")
        return np.negative(x)

    x = tp.asarray([1.0])
    with tp.register_kernel("Neg", "memory", kernel, override=True):
        if warm:
            tp.negative(x)
        broken.append(1)
        for call in (lambda: tp.negative(x), lambda: tp.run_kernel("Neg", [x])):
            with pytest.raises(ZeroDivisionError) as caught:
                call()
            note = "in kernel Neg(x=float32[1]) of the running program on backend 'memory'"
            assert caught.value.__notes__ == [note]
        broken.clear()
        assert tp.negative(x).tolist() == [-1]


# The cache ------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [tp.add, lambda a, b: tp.run_kernel("Add", [a, b])])
def test_both_ways_find_one_plan(engine, function):
    x, y = tp.asarray([1.0, 2.0]), tp.asarray([3.0])
    first = function(x, y)
    expect(first, "float32", (2,), [4, 5])
    (key, plan), *rest = engine.devices.active.plans.items()
    assert rest == []
    for again in (tp.add, lambda a, b: tp.run_kernel("Add", {"a": a, "b": b})):
        result = again(x, y)
        expect(result, "float32", (2,), [4, 5])
        assert result._placement is first._placement
    assert list(engine.devices.active.plans.items()) == [(key, plan)]


def test_the_cache_is_bounded_and_still_right(engine, monkeypatch):
    monkeypatch.setattr(device_module, "PLAN_LIMIT", 64)
    kept = engine.devices.active
    for size in [*range(300), *range(300)]:
        x = tp.asarray(np.full((size,), 2.0, np.float32))
        expect(tp.add(x, x), "float32", (size,), np.full((size,), 4.0))
        expect(tp.sum(x, axis=0), "float32", (), 2.0 * size)
        assert len(kept.plans) <= 64
    for value in range(300):
        assert tp.add(tp.asarray(0.5), value).item() == 0.5 + value
    assert len(kept.constants) <= 64


def test_complex_constants_with_nan_parts_are_kept_once(engine):
    x = tp.asarray([1.0 + 1.0j])
    for _ in range(3):
        result = [tp.add(x, complex(*parts)).item() for parts in ((0.0, np.nan), (np.nan, 0.0))]
        assert [(np.isnan(z.real), np.isnan(z.imag)) for z in result] == [
            (False, True),
            (True, False),
        ]
    assert len(engine.devices.active.constants) == 2


def test_plans_are_forgotten_when_a_kernel_comes_or_goes(engine):
    x = tp.asarray([1.0])
    assert tp.negative(x).item() == -1
    handle = tp.register_kernel("Neg", "memory", lambda x: x * 100, override=True)
    assert engine.devices.active.plans == {}
    assert tp.negative(x).item() == 100
    handle.remove()
    assert tp.negative(x).item() == -1
    tp.unregister_kernel("Neg", "memory")
    with pytest.raises(KernelNotFoundError):
        tp.negative(x)


def test_a_plan_resolved_before_a_change_is_not_kept(engine):
    """The registry changes while a plan's first call runs: the old kernel must not stay."""
    x = tp.asarray([1.0])
    handles = []

    def changing(x):
        handles.append(tp.register_kernel("Neg", "memory", lambda x: x * 100, override=True))
        return np.negative(x)

    with tp.register_kernel("Neg", "memory", changing, override=True):
        assert tp.negative(x).item() == -1
        assert engine.devices.active.plans == {}
        assert tp.negative(x).item() == 100
        handles[0].remove()


# Decompositions and fallback --------------------------------------------------------------


def declining(spec, reason="too narrow"):
    kernels = KernelTable()

    def prepare(a, b):
        raise KernelRefusedError(reason)

    def prepare_one(x):
        raise KernelRefusedError(reason)

    kernels.prepare(spec)(prepare_one if len(spec.inputs) == 1 else prepare)
    return kernels


def test_a_kernel_that_declines_is_decomposed():
    engine = engines.make({"memory": [engines.basic_kernels(), declining(SQUARED_DIFFERENCE)]})
    with using(engine), tp.register_kernel("Sub", "memory", lambda a, b: a - b):
        x, y = tp.asarray([1.0, 5.0]), tp.asarray([3.0])
        for _ in range(2):
            expect(tp.squared_difference(x, y), "float32", (2,), [4, 4])
        explained = tp.explain("SquaredDifference", [x, y])
        assert (explained.how, explained.owner) == ("decomposed", "the-core 1.0")
        assert explained.steps == (
            ("native", "the kernel of memory-distribution 2.0 declined: too narrow"),
            ("decomposed", "by the-core 1.0"),
        )


def test_a_kernel_for_other_dtypes_is_not_native():
    kernels = KernelTable()
    kernels.register(SQUARED_DIFFERENCE, dtypes=[dt.float32])(lambda a, b: np.square(a - b))
    engine = engines.make({"memory": [kernels]})
    with using(engine):
        x, y = tp.asarray([1.0]), tp.asarray([1.0], dtype="float64")
        assert tp.explain("SquaredDifference", [x, x]).how == "native"
        assert tp.explain("SquaredDifference", [y, y]).steps[0] == (
            "native",
            "the kernel of memory-distribution 2.0 does not take float64",
        )


BAD_DECOMPOSITIONS = [
    (returns_five, "the decomposed form of the running program returned int instead of a tensor"),
    (lambda x: tp.add(x, tp.asarray([[1.0]])), "out is float32[1,1], but must be float32[1]"),
    (lambda x: tp.astype(x, "float64"), "out is float64[1], but must be float32[1]"),
]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("function", "message"), BAD_DECOMPOSITIONS)
def test_a_decomposition_that_returns_something_else(function, message):
    spec = spec_of("Lonely")
    x = tp.asarray([1.0])
    with (
        tp.register_decomposition(spec, function),
        pytest.raises(KernelOutputError, match=re.escape(message)),
    ):
        tp.run_kernel(spec, [x])


def table(**kernels):
    """Return a table of NumPy functions of one input, by kernel name."""
    made = KernelTable()
    for name, function in kernels.items():
        made.register({"Neg": NEG, "Exp": EXP}[name])(_of_x(function))
    return made


def _of_x(function):
    def kernel(x):
        return np.asarray(function(x))

    return kernel


def lacking(fallback):
    """Return an engine whose backend "home" has no Exp, while "away" has."""
    return engines.make(
        {"home": [table(Neg=np.negative)], "away": [table(Exp=np.exp)]}, fallback=fallback
    )


def test_fallback_forbidden():
    with using(lacking("error")):
        x = tp.asarray([0.0])
        with pytest.raises(KernelNotFoundError) as caught:
            tp.exp(x)
        assert str(caught.value) == (
            "kernel 'Exp' cannot run on backend 'home' for Exp(x=float32[1]): native: not "
            "registered; decomposed: no decomposition is registered; fallback: not allowed "
            "(TENSORPLUG_FALLBACK=error). Loaded backends that have it: none"
        )
        explained = tp.explain("Exp", [x])
        assert (explained.how, explained.reason) == (None, str(caught.value))
        assert "not possible" in str(explained)
        with tp.use_backend("away"):
            tp.asarray(1)
        with pytest.raises(KernelNotFoundError, match=r"Loaded backends that have it: away$"):
            tp.exp(x)


def test_fallback_allowed_is_counted():
    engine = lacking("allow")
    with using(engine):
        x = tp.asarray([0.0, 1.0])
        for _ in range(3):
            result = tp.exp(x)
            expect(result, "float32", (2,), np.exp(np.array([0, 1], np.float32)))
            assert result.device == "home"
        held = tp.memory()
        assert (held["home"].fallbacks, held["away"].transfers) == ({"Exp": 3}, 3)
        explained = tp.explain("Exp", [x])
        assert (explained.how, explained.owner) == ("fallback", "away-distribution 2.0")
        assert explained.steps[-1] == ("fallback", "runs on backend 'away'")
        assert tp.memory()["home"].fallbacks == {"Exp": 3}  # nothing was run


def test_fallback_warns_once_per_kernel():
    with using(lacking("warn")):
        x = tp.asarray([0.0])
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert tp.explain("Exp", [x]).how == "fallback"
            for size in range(1, 4):
                tp.exp(tp.asarray([0.0] * size))
        assert [warning.category for warning in seen] == [FallbackWarning]
        text = str(seen[0].message)
        assert "kernel 'Exp' runs on backend 'away', because backend 'home' has neither" in text
        assert tp.memory()["home"].fallbacks == {"Exp": 3}


def test_a_backend_that_declines_too_is_no_fallback():
    """Two backends that decline must not send a call to and fro."""
    engine = engines.make(
        {"home": [declining(EXP)], "away": [declining(EXP, "no way")]}, fallback="allow"
    )
    with using(engine), pytest.raises(KernelNotFoundError) as caught:
        tp.exp(tp.asarray([0.0]))
    text = str(caught.value)
    assert "native: the kernel of home-distribution 2.0 declined: too narrow" in text
    assert "backend 'away': the kernel of away-distribution 2.0 declined: no way" in text


@pytest.mark.parametrize(
    ("away", "dtypes", "message"),
    [
        ([], dt.FIXED, "fallback: backend 'away': not registered"),
        ([table(Exp=np.exp)], frozenset({dt.int32}), "backend 'away': float32[1] is not possible"),
    ],
)
def test_no_fallback_is_left(away, dtypes, message):
    engine = engines.make({"home": [], "away": away}, fallback="allow")
    engine.devices.source.dtypes["away"] = dtypes
    with using(engine), pytest.raises(KernelNotFoundError, match=re.escape(message)):
        tp.exp(tp.asarray([0.0]))


def test_no_other_backend():
    engine = engines.make({"home": []}, fallback="allow")
    with using(engine), pytest.raises(KernelNotFoundError, match="no other backend is installed"):
        tp.exp(tp.asarray([0.0]))


def test_fallback_passes_over_backends_that_do_not_open():
    engine = engines.make(
        {"home": [], "broken": [], "away": [table(Exp=np.exp)]}, fallback="allow"
    )
    engine.devices.source.refusals["broken"] = KernelRefusedError("no hardware")
    with using(engine):
        assert tp.exp(tp.asarray([0.0])).tolist() == [1]


def test_gradients_flow_through_a_fallback():
    with using(lacking("allow")):
        tp.register_kernel("Multiply", "home", lambda a, b: a * b)
        tp.register_kernel("OnesLike", "home", lambda x: x * 0 + 1)
        gradient = tp.grad(tp.exp)(tp.asarray([1.0]), dy=tp.asarray([1.0]))
        np.testing.assert_allclose(gradient.numpy(), [np.e], rtol=1e-6)
