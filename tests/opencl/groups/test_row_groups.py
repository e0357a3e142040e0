"""Groups with reductions: rows in parts, values that are kept, and work-groups that shrink."""

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
