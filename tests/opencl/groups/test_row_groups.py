"""Groups with reductions: each op and dtype, rows along each axis, in parts, and in each form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorplug.plugin import (
    Group,
    GroupInput,
    GroupOutput,
    Reduction,
    TensorType,
    expressions,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.schedule import plan

RNG = np.random.default_rng(5)
parameter, apply, function = expressions.parameter, expressions.apply, expressions.function
F32: Any = dt.float32


@pytest.fixture(params=["vectors", "elements"])
def device(request, backend):
    """Return a backend in the form for CPUs, and in the form for GPUs."""
    backend.runtime.is_cpu = request.param == "vectors"
    return backend


def of_spans(shape: Any, spans: Any) -> Any:
    return tuple(n for n, each in zip(shape, spans, strict=True) if each)


def make_group(shape: Any, axis: int, inputs: Any, reductions: Any, outputs: Any) -> Group:
    """Return a group that reduces ``axis``; ``inputs`` are (dtype, spans), ``outputs`` pairs.

    ``reductions`` are (op, expression), and an output is (expression, spans).
    """
    axes = tuple(at == axis for at in range(len(shape)))

    def own(dtype: Any, spans: Any) -> TensorType:
        return TensorType(dtype, of_spans(shape, spans))

    return Group(
        "test",
        shape,
        tuple(GroupInput(own(dtype, spans), spans) for dtype, spans in inputs),
        tuple(Reduction(op, each, axes) for op, each in reductions),
        tuple(GroupOutput(each, own(each.dtype, spans), spans) for each, spans in outputs),
    )


def run(backend: Any, group: Group, *arrays: Any) -> list[Any]:
    """Run a group; check its outputs' types."""
    call = backend.compile_group(group)
    assert call is not None
    results = call(*map(backend.from_host, arrays))
    assert [result.type for result in results] == [output.type for output in group.outputs]
    return [backend.to_host(result) for result in results]


def kept(shape: Any, axis: int) -> tuple[bool, ...]:
    return tuple(at != axis for at in range(len(shape)))


def whole(shape: Any) -> tuple[bool, ...]:
    return (True,) * len(shape)


# Rows that end within a vector, that are shorter than one, rows in two blocks, and rows side by
# side of which the last ones do not fill a strip.
ROWS = [
    ((5, 37), 1),
    ((3, 3), 1),
    ((2, 700), 1),
    ((1, 9), 1),
    ((4000, 5), 1),
    ((9,), 0),
    ((37, 5), 0),
    ((40, 300), 0),
    ((3, 21, 35), 1),
    ((2, 3, 50, 4), 2),
    ((2, 5, 6), 0),
]


def softmax_group(shape: Any, axis: int, dtype: Any = F32) -> Group:
    full = whole(shape)
    x, largest, total = (parameter(at, dtype) for at in range(3))
    e = function("exp", x - largest)
    return make_group(shape, axis, [(dtype, full)], [("max", x), ("sum", e)], [(e / total, full)])


def bound_softmax(x: Any, axis: int) -> Any:
    """Return the error that the rounding of the distances from the largest element explains."""
    exact, step = softmax(x.astype(np.float64), axis), np.finfo(x.dtype)
    away = x.max(axis, keepdims=True) - x.astype(np.float64)
    return exact * step.eps * (3 + away / 2) + step.smallest_subnormal


def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize(("shape", "axis"), ROWS)
def test_softmax(device, near, shape, axis):
    for dtype in (dt.float16, dt.float32, dt.float64):
        if dtype not in device.dtypes:
            continue
        x = (RNG.standard_normal(shape) * 4).astype(dtype.numpy)
        (result,) = run(device, softmax_group(shape, axis, dtype), x)
        wide = np.longdouble if dtype is dt.float64 else np.float64
        near(result, softmax(x.astype(wide), axis), dtype, bound=bound_softmax(x, axis))


@pytest.mark.parametrize(("shape", "axis"), ROWS)
def test_numbers_of_rows_and_operands_along_them(device, near, shape, axis):
    """A group with every kind of input and output, and a reduction after a reduction."""
    full, own = whole(shape), kept(shape, axis)
    along = tuple(not each for each in own)
    x, scale, shift, factor, mean, squares = (parameter(at, F32) for at in range(6))
    count = float(shape[axis])
    away = x - mean / count
    root = apply("sqrt", squares / count + 1e-3)
    group = make_group(
        shape,
        axis,
        [(F32, full), (F32, along), (F32, own), (F32, (False,) * len(shape))],
        [("sum", x), ("sum", away * away)],
        [
            (away / root * scale + shift * factor, full),
            (root, own),
            (apply("less", away, shift), full),
        ],
    )
    arrays = [
        RNG.standard_normal(of_spans(shape, spans)).astype(np.float32)
        for spans in (full, along, own, (False,) * len(shape))
    ]
    y, deviation, below = run(device, group, *arrays)
    a, s, b, f = (array.astype(np.float64) for array in arrays)
    s = s.reshape([n if each else 1 for n, each in zip(shape, along, strict=True)])
    b = np.expand_dims(b, axis)
    c = a - a.mean(axis, keepdims=True)
    d = np.sqrt((c * c).mean(axis, keepdims=True) + 1e-3)
    terms = np.abs(c / d * s) + np.abs(b * f)
    near(y, c / d * s + b * f, F32, bound=1e-6 * (terms + np.abs(s) / d))
    near(deviation, d.squeeze(axis), F32, ulp=3)
    assert below.dtype == bool
    clear = np.abs(c - b) > 1e-5
    np.testing.assert_array_equal(below[clear], (c < b)[clear])


FOLDS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize(("shape", "axis"), [((6, 83), 1), ((83, 70), 0), ((3, 70_000), 1)])
def test_every_fold_of_every_dtype(device, near, shape, axis):
    for dtype in sorted(device.dtypes & (dt.INTEGER | dt.FLOATING), key=str):
        if dtype in dt.INTEGER:
            limits = np.iinfo(dtype.name)
            x = RNG.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True)
        else:
            x = (1 + RNG.standard_normal(shape) / 64).astype(dtype.numpy)
        own = kept(shape, axis)
        p, c = parameter(0, dtype), parameter(1, dtype)
        taken = (p + c) if dtype in dt.INTEGER else p * c
        second = np.array(3 if dtype in dt.INTEGER else 1.0, dtype.numpy)
        group = make_group(
            shape,
            axis,
            [(dtype, whole(shape)), (dtype, (False,) * len(shape))],
            [(op, taken) for op in FOLDS],
            [(parameter(2 + at, dtype), own) for at in range(len(FOLDS))],
        )
        results = run(device, group, x, second)
        with np.errstate(all="ignore"):
            y = x + second if dtype in dt.INTEGER else x
        for (op, fold), result in zip(FOLDS.items(), results, strict=True):
            if dtype in dt.INTEGER:
                options = {"dtype": dtype.numpy} if op in ("sum", "prod") else {}
                np.testing.assert_array_equal(result, fold(y, axis, **options), err_msg=f"{dtype}")
            elif op in ("max", "min"):
                np.testing.assert_array_equal(result, fold(y, axis), err_msg=f"{dtype}")
            elif op == "sum":
                near(result, y.astype(np.longdouble).sum(axis), dtype, ulp=1)
            elif shape[axis] < 100 and dtype.compute is dtype:
                near(result, y.astype(np.longdouble).prod(axis), dtype, ulp=90)


@pytest.mark.parametrize(("shape", "axis"), [((6, 83), 1), ((83, 70), 0), ((2, 70_000), 1)])
def test_nan_infinities_and_zeros(device, shape, axis):
    x = RNG.standard_normal(shape).astype(np.float32)
    x[(0, 5) if axis else (5, 0)] = np.nan
    x[(1, -1) if axis else (-1, 1)] = np.inf
    own = kept(shape, axis)
    p = parameter(0, F32)
    group = make_group(
        shape,
        axis,
        [(F32, whole(shape))],
        [("sum", p), ("max", p), ("min", p)],
        [(parameter(at, F32), own) for at in (1, 2, 3)],
    )
    total, most, least = run(device, group, x)
    assert np.isnan([total[0], most[0], least[0]]).all()
    assert (total[1], most[1]) == (np.inf, np.inf)
    assert least[1] == (x[1] if axis else x[:, 1]).min()
    np.testing.assert_allclose(total[2:], x.sum(axis)[2:], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((2, 200_003), 1), ((200_003,), 0), ((90_001, 2), 0), ((1, 1_048_581), 1)],
)
def test_few_long_rows_are_taken_in_parts(device, near, shape, axis):
    group = softmax_group(shape, axis)
    x = (RNG.standard_normal(shape) * 4).astype(np.float32)
    (result,) = run(device, group, x)
    near(result, softmax(x.astype(np.float64), axis), F32, bound=bound_softmax(x, axis))
    total = make_group(
        shape,
        axis,
        [(F32, whole(shape))],
        [("sum", parameter(0, F32) * parameter(0, F32))],
        [(apply("sqrt", parameter(1, F32)), kept(shape, axis))],
    )
    (norm,) = run(device, total, x)
    near(norm, np.sqrt((x.astype(np.float64) ** 2).sum(axis)), F32, ulp=1)


def test_parts_are_what_is_tested(device):
    """The rows above are long enough to be cut, and the others are not."""
    machine = device.runtime.description
    assert len(plan(softmax_group((2, 200_003), 1), machine).launches) > 1
    assert len(plan(softmax_group((5, 37), 1), machine).launches) == 1


def test_costly_values_are_kept_in_the_output(device, near):
    """The exponentials are computed once: the last pass reads them from the output's memory."""
    shape = (3, 50)
    full = whole(shape)
    x, y, total, largest = (parameter(at, F32) for at in (0, 1, 2, 3))
    e = function("exp", x)
    group = make_group(
        shape,
        1,
        [(F32, full), (F32, full)],
        [("sum", e), ("max", e * y)],
        [(e / total, full), (largest + e, full), (parameter(3, F32), kept(shape, 1))],
    )
    a, b = (RNG.standard_normal(shape).astype(np.float32) for _ in range(2))
    shares, sums, most = run(device, group, a, b)
    exact = np.exp(a.astype(np.float64))
    near(shares, exact / exact.sum(1, keepdims=True), F32, ulp=4)
    top = (exact * b).max(1, keepdims=True)
    near(most, top[:, 0], F32, ulp=4)
    near(sums, top + exact, F32, ulp=2, bound=1e-6 * (np.abs(top) + exact))


def test_conditions_of_rows_and_elements(device):
    """Booleans as numbers of a row, along it, and reduced as integers."""
    for shape, axis in (((4, 45), 1), ((45, 20), 0)):
        full, own = whole(shape), kept(shape, axis)
        c, r, x = (parameter(at, d) for at, d in enumerate((dt.bool_, dt.bool_, dt.int8)))
        both = apply("logical_and", c, r)
        any_of = parameter(3, dt.int32)
        group = make_group(
            shape,
            axis,
            [(dt.bool_, full), (dt.bool_, own), (dt.int8, full)],
            [("max", expressions.cast(both, dt.int32))],
            [
                (expressions.where(apply("equal", any_of, 1), x, -x), full),
                (expressions.cast(any_of, dt.bool_), own),
                (apply("logical_or", both, apply("logical_not", r)), full),
            ],
        )
        a, b = RNG.integers(0, 9, shape) == 0, RNG.integers(0, 2, of_spans(shape, own)) == 1
        n = RNG.integers(-100, 100, shape, np.int8)
        chosen, actual, others = run(device, group, a, b, n)
        wide = np.expand_dims(b, axis)
        right = (a & wide).any(axis)
        np.testing.assert_array_equal(chosen, np.where(np.expand_dims(right, axis), n, -n))
        np.testing.assert_array_equal(actual, right)
        np.testing.assert_array_equal(others, (a & wide) | ~wide)


def test_axes_that_lie_apart_none_and_complex_numbers(device):
    x = parameter(0, F32)
    shape = (3, 4, 5)
    apart = Reduction("sum", x, (True, False, True))
    own = GroupOutput(parameter(1, F32), TensorType(F32, (4,)), (False, True, False))
    operand = GroupInput(TensorType(F32, shape), whole(shape))
    numbers = RNG.integers(-9, 9, shape).astype(np.float32)
    (total,) = run(device, Group("apart", shape, (operand,), (apart,), (own,)), numbers)
    np.testing.assert_array_equal(total, numbers.sum((0, 2)))
    empty = make_group((3, 0), 1, [(F32, (True, True))], [("sum", x)],
                       [(parameter(1, F32), (True, False))])  # fmt: skip
    np.testing.assert_array_equal(run(device, empty, np.zeros((3, 0), np.float32))[0], np.zeros(3))
    z = parameter(0, dt.complex64)
    complexes = make_group((3, 4), 1, [(dt.complex64, (True, True))], [("sum", z)],
                           [(parameter(1, dt.complex64), (True, False))])  # fmt: skip
    pairs = (numbers[..., :4] + 1j * numbers[..., 1:])[:, 0].astype(np.complex64)
    np.testing.assert_array_equal(run(device, complexes, pairs)[0], pairs.sum(1))
    product = make_group((3, 4), 1, [(dt.complex64, (True, True))], [("prod", z)],
                         [(parameter(1, dt.complex64), (True, False))])  # fmt: skip
    assert device.compile_group(product) is None


def test_smaller_groups_where_the_device_needs_them(backend, refusing, near):
    backend.runtime.is_cpu = False
    refused = refusing(backend.runtime, 8)
    x = RNG.standard_normal((3, 200)).astype(np.float32)
    (result,) = run(backend, softmax_group((3, 200), 1), x)
    near(result, softmax(x.astype(np.float64), 1), F32, bound=bound_softmax(x, 1))
    assert refused
