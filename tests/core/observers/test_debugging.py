"""Debug mode raises at the call that made the first NaN or infinity, and says where."""

from __future__ import annotations

import inspect
import math
import threading

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import spec_of

import tensorplug as tp
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.dispatch.context import Context, current_context, use_context
from tensorplug.errors import ArgumentError, NonFiniteError
from tensorplug.observers import debugging
from tensorplug.observers.callsite import CallSite

NAN, INF = math.nan, math.inf
CPU = f"native by tensorplug-cpu {tp.__version__} on cpu"

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def tensor(values, dtype="float32"):
    return tp.asarray(np.array(values, dtype))


def failing(function, *args, **options):
    """Return the message of the error that ``function`` gives in debug mode."""
    with pytest.raises(NonFiniteError) as caught:
        tp.debug(function, *args, **options)
    return str(caught.value)


# What raises ----------------------------------------------------------------------------

FAULTS = [  # function, inputs, what the message must say
    (tp.exp, ([1.0, 1000.0],), "made 1 infinity of 2, at [1]: inf"),
    (tp.log, ([[0.0, 1.0], [0.0, 2.0]],), "made 2 infinities of 4, the first at [0, 0]: -inf"),
    (tp.log, (-1.0,), "made a value that is nan"),
    (tp.sqrt, ([4.0, -1.0, -2.0],), "made 2 NaNs of 3, the first at [1]: nan"),
    (lambda x: x / 0.0, ([0.0, 1.0],), "made 1 NaN of 2, at [0]: nan"),
    (lambda x: x + (-x), ([1.0, INF],), "made 1 NaN of 2, at [1]: nan"),  # of infinities
    (lambda x: x + NAN, ([1.0],), "made 1 NaN of 1, at [0]: nan"),
    (lambda x: NAN * x, ([1.0],), "made 1 NaN of 1, at [0]: nan"),
    (lambda x: tp.where(x > 0, x, NAN), ([-1.0],), "made 1 NaN of 1, at [0]: nan"),
    (lambda x: tp.full(x.shape, NAN), ([0.0, 0.0],), "made 2 NaNs of 2, the first at [0]: nan"),
    (lambda x: tp.astype(x, tp.float16), ([1.0, 1e5],), "made 1 infinity of 2, at [1]: inf"),
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_every_inexact_dtype_is_looked_at(dtype):
    x = tensor([2.0, 0.0], dtype)
    assert "of 2, at [1]" in failing(lambda x: x / x, x)
    assert f"\n  Log(x={dtype}[2]) -> {dtype}[2], {CPU}\n" in failing(tp.log, x)


def test_a_part_of_a_complex_number_is_enough():
    x = tensor([1 + 1j, complex(0.0, INF)], "complex64")
    message = failing(lambda x: x * 1e38 * 1e38, tensor([0, 1j], "complex64"))
    assert "at [1]" in message
    assert "\n  a has magnitudes from 0 to 1e+38, all finite\n" in message
    tp.debug(lambda x: x * 2.0, x, nan=False)  # from an infinity


@pytest.mark.parametrize(("function", "inputs", "happened"), FAULTS)
def test_the_first_one_raises(function, inputs, happened):
    x = tensor(*inputs)
    assert happened in failing(function, x)
    function(x)  # without debug mode it is a value as any other


def test_a_nan_is_reported_with_call_and_line():
    def loss(x):
        y = tp.concat([x, x])
        return tp.sum(tp.log(y), axis=0)

    x = tensor([0.5, 0.0, 2.0])
    line = inspect.getsourcelines(loss)[1] + 2
    assert failing(loss, x) == (
        "Log made 2 infinities of 6, the first at [1]: -inf\n"
        f"  Log(x=float32[6]) -> float32[6], {CPU}\n"
        "  x is from 0 to 2, all finite\n"
        f"called at {CallSite(__file__, line, '')} in {loss.__qualname__}\n"
        "    return tp.sum(tp.log(y), axis=0)"
    )


def test_lists_attributes_and_other_dtypes_in_the_message():
    def first(xs, n, flag, maybe):
        return xs[0]

    spec = KernelSpec("Mixed", ("xs[]", "n", "flag", "maybe?"), first)

    def mixed(xs, n, flag, maybe):
        return np.full_like(xs[0], np.nan)

    with tp.register_kernel(spec, "cpu", mixed):
        xs = [tensor([1.0, -2.5]), tensor([INF, 3.0])]
        message = failing(
            lambda: tp.run_kernel(spec, [xs, tensor([7, -7], "int8"), tensor([], "bool"), None])
        )
    assert message.splitlines()[2:6] == [
        "  xs[0] is from -2.5 to 1, all finite",
        "  xs[1] is 3, 1 infinite",
        "  n is from -7 to 7",
        "  flag is empty",
    ]
    message = failing(lambda x: tp.sum(x / 0.0, axis=0, keepdims=True), tensor([0.0]))
    assert message.startswith("RealDiv made 1 NaN of 1, at [0]: nan\n  RealDiv(a=float32[1], b=")
    message = failing(tp.sum, tensor([3e38, 3e38]), axis=0)
    assert "\n  Sum(x=float32[2], axis=(0,), keep_dims=False) -> float32[], " in message


def test_one_of_multiple_outputs():
    spec = spec_of("Halves", outputs=("low", "high"), infer=lambda x: (x, x))

    def halves(x):
        return [x, np.where(x > 1, np.inf, x).astype(x.dtype)]

    with tp.register_kernel(spec, "cpu", halves):
        x = tensor([1.0, 2.0])
        message = failing(lambda x: dispatch_multiple(spec, x), x)
        assert "-> float32[2], float32[2], native by the running program" in message
        assert message.startswith("Halves made 1 infinity of 2, at [1]: inf in high\n")
        tp.debug(lambda: dispatch_multiple(spec, tensor([1.0, 0.0])))


# What does not --------------------------------------------------------------------------

FINE = [
    (tp.exp, [INF, 1.0]),  # from an infinity
    (lambda x: x * 2.0, [-INF, 1.0]),
    (lambda x: tp.max(tp.where(x > 1, x, -INF)), [0.5, 0.25]),  # a mask
    (lambda x: x + tp.full((2,), INF), [0.0, 1.0]),
    (lambda x: tp.run_kernel("PadV2", [x], {"paddings": [(1, 1)], "constant_value": INF}), [1.0]),
    (lambda x: x / INF, [1.0, 2.0]),
    (lambda x: tp.where(x > 0, x, NAN), [1.0, 2.0]),  # the NaN does not come out
    (lambda x: tp.astype(x, tp.int32) * 2**30 * 2, [4.0]),  # integers wrap
    (lambda x: tp.exp(x[:0]), [1.0]),  # nothing in it
]


@pytest.mark.parametrize(("function", "values"), FINE)
def test_functions_without_new_infinities(function, values):
    x = tensor(values)
    result = tp.debug(function, x)
    np.testing.assert_array_equal(result.numpy(), function(x).numpy())


def test_a_nan_from_before_is_not_the_first():
    x = tensor([1.0, NAN])
    with tp.debug():
        y = tp.exp(x) * tensor([2.0, 3.0])
    np.testing.assert_array_equal(y.numpy(), [np.exp(np.float32(1)) * 2, NAN])
    assert "made 1 infinity" in failing(lambda: tp.log(tensor([0.0])))
    tp.debug(lambda: tp.log(x * 0.0))  # inf beside a NaN that was there


WORK = {
    "a NaN made": lambda: tp.sqrt(tensor([-1.0])),
    "a NaN given": lambda: tp.asarray([NAN]),
    "an infinity": lambda: tp.log(tensor([0.0])),
}


@pytest.mark.parametrize(
    ("options", "raising"),
    [
        ({}, {"a NaN made", "a NaN given", "an infinity"}),
        ({"nan": False}, {"an infinity"}),
        ({"inf": False}, {"a NaN made", "a NaN given"}),
        ({"nan": False, "inf": False}, set()),
    ],
)
def test_each_can_be_left_out(options, raising):
    raised = set()
    for name, work in WORK.items():
        try:
            tp.debug(work, **options)
        except NonFiniteError:
            raised.add(name)
    assert raised == raising


def test_integers_cost_nothing():
    engine = engines.make()
    with engines.using(engine), tp.debug():
        x = tp.asarray([1, 2])
        engine.devices.source.backends["memory"].to_host = None  # a call would raise
        y = x + x
        assert (y.dtype, y.shape) == (tp.int32, (2,))
        with pytest.raises(TypeError, match="'NoneType' object is not callable"):
            tp.exp(tp.asarray([1.0]))


# Data given -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tp.asarray([2.0, NAN]), "float32[2] holds 1 NaN of 2, at [1]: nan"),
        (lambda: tp.asarray(NAN), "float32[] holds a value that is nan"),
        (
            lambda: tp.asarray(np.array([[1, complex(0, NAN)]])),
            "complex128[1,2] holds 1 NaN of 2, at [0, 1]: nanj",
        ),
        (lambda: tp.add(tensor([1.0]), np.array([NAN])), "float64[1] holds 1 NaN of 1"),
        (lambda: tp.from_dlpack(np.array([NAN])), "float64[1] holds 1 NaN of 1"),
    ],
)
def test_data_with_a_nan_raises(make, said):
    line = inspect.getsourcelines(make)[1]
    message = failing(make)
    assert message.startswith(f"the data given as {said}")
    assert f"\ngiven at {CallSite(__file__, line, '')} in " in message
    make()


def test_other_data_does_not():
    with tp.debug():
        assert tp.asarray([INF, -INF]).shape == (2,)
        assert tp.asarray([1, 2]).dtype is tp.int32
        assert tp.asarray([[True]]).shape == (1, 1)
        with pytest.raises(tp.errors.ShapeError):  # scenario 26: ragged lists raise in any case
            tp.asarray([[1.0], [2.0, 3.0]])
    relu = tp.nn.relu(tp.asarray([2.0, NAN]))
    np.testing.assert_array_equal(relu.numpy(), [2.0, NAN])


# Decompositions and fallbacks -----------------------------------------------------------

DETOUR = spec_of("Detour")


def test_inside_a_decomposition_nothing_raises_but_its_result_must_be_in_order():
    def reciprocal_of_exp(x):
        return 1.0 / tp.exp(x)  # e**1000 is infinite, the result is not

    with tp.register_decomposition(DETOUR, reciprocal_of_exp):
        x = tensor([1000.0, 0.0])
        result = tp.debug(dispatch, DETOUR, x)
        np.testing.assert_array_equal(result.numpy(), [0.0, 1.0])
        message = failing(dispatch, DETOUR, tensor([-1000.0]))
        assert message.startswith("Detour made 1 infinity of 1, at [0]: inf\n")
        assert "-> float32[1], decomposed by the running program on cpu\n" in message


def test_fallbacks_raise_once_where_they_are_asked_for():
    engine = engines.make({"home": [], "away": [engines.basic_kernels()]}, fallback="allow")
    with engines.using(engine), tp.use_backend("home"), np.errstate(over="ignore"):
        message = failing(tp.exp, tensor([1000.0]))
    assert message.startswith("Exp made 1 infinity of 1")
    assert ", fallback by away-distribution 2.0 from home\n" in message


# How it is switched on ------------------------------------------------------------------


def bad():
    return tp.log(tensor([0.0]))


def test_only_inside_the_block_and_the_thread():
    before = current_context()
    with tp.debug() as block:
        with pytest.raises(NonFiniteError):
            bad()
        with pytest.raises(RuntimeError, match="this debug has been entered already"), block:
            pass
        thread = threading.Thread(target=bad)  # raises nothing; pytest would see it
        thread.start()
        thread.join()
        with tp.use_backend("cpu"), tp.tidy(), pytest.raises(NonFiniteError):
            bad()
        with tp.debug(nan=True, inf=False), pytest.raises(NonFiniteError):
            bad()  # the outer one
    assert current_context() is before
    assert bad().numpy() == [-INF]
    with block, pytest.raises(NonFiniteError):
        bad()
    with pytest.raises(ZeroDivisionError), tp.debug():
        raise ZeroDivisionError
    assert current_context() is before


def test_the_function_form():
    assert tp.debug(lambda a, *, b: (a, b), 1, b=2) == (1, 2)
    before = current_context()
    failing(bad)
    assert current_context() is before

    async def later():
        return bad()

    with pytest.raises(ArgumentError, match="'later' is a coroutine function"):
        tp.debug(later)


def test_an_engine_s_own_check_watches_all_threads():
    engine = engines.make()
    engine.observers = tuple(debugging.checks({"nan", "inf"}))
    raised = []

    def work(_number):
        with (
            use_context(Context(engine)),
            np.errstate(over="ignore"),
            pytest.raises(NonFiniteError) as caught,
        ):
            tp.exp(tp.asarray([1000.0]))
        raised.append(str(caught.value))

    engines.together(4, work)
    assert [message.count("made 1 infinity") for message in raised] == [1] * 4
