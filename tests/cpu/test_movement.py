"""Moving elements, for every dtype; what can be a view is one."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.ops import movement as ops
from tensorplug.plugin import dtypes as dt


def named(parameter):
    return getattr(parameter, "name", "")


DTYPES = sorted(dtype.name for dtype in dt.ANY)


def numbers(shape, dtype):
    """Distinct elements 1, 2, 3, ... of any dtype, and the same as Python would place them."""
    count = int(np.prod(shape))
    plain = np.arange(1, count + 1).reshape(shape)
    if dtype == "string":
        return np.array(
            [f"element number {number}" for number in plain.flat], dt.string.numpy
        ).reshape(shape)
    return (plain % 2 if dtype == "bool" else plain).astype(dtype)


def same(actual, expected):
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


def picked(x, shape, source):
    """Build an array by asking for the source index of each position."""
    result = np.empty(shape, x.dtype)
    for at in np.ndindex(*shape):
        result[at] = x[source(at)]
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_identity(call, dtype, shape):
    same(call(ops.IDENTITY, numbers(shape, dtype)), numbers(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((2, 3), (3, 2)),
        ((2, 3), (6,)),
        ((1,), ()),
        ((), (1, 1)),
        ((0, 3), (0,)),
        ((2, 6), (3, 2, 2)),
    ],
)
def test_reshape(call, dtype, shape, target):
    x = numbers(shape, dtype)
    expected = picked(
        x,
        target,
        lambda at: np.unravel_index(int(np.ravel_multi_index(at, target)) if at else 0, shape),
    )
    same(call(ops.RESHAPE, x, shape=target), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "perm"),
    [((), ()), ((3,), (0,)), ((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 0), (1, 0))],
)
def test_transpose(call, dtype, shape, perm):
    x = numbers(shape, dtype)
    target = tuple(shape[axis] for axis in perm)
    expected = picked(
        x, target, lambda at: tuple(at[perm.index(axis)] for axis in range(len(perm)))
    )
    same(call(ops.TRANSPOSE, x, perm=perm), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "target"),
    [((), (2, 2)), ((3,), (2, 3)), ((2, 1), (2, 4)), ((1, 3), (0, 3)), ((), ()), ((2,), (2,))],
)
def test_broadcast_to(call, dtype, shape, target):
    x = numbers(shape, dtype)
    lead = len(target) - len(shape)
    expected = picked(
        x,
        target,
        lambda at: tuple(0 if shape[axis] == 1 else at[lead + axis] for axis in range(len(shape))),
    )
    same(call(ops.BROADCAST_TO, x, shape=target), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "begin", "size"),
    [
        ((), (), ()),
        ((5,), (2,), (3,)),
        ((3, 4), (1, 0), (2, 2)),
        ((3, 4), (3, 1), (0, 2)),
        ((1, 2), (0, 1), (1, 1)),
    ],
)
def test_slice(call, dtype, shape, begin, size):
    x = numbers(shape, dtype)
    expected = picked(x, size, lambda at: tuple(a + b for a, b in zip(at, begin, strict=True)))
    same(call(ops.SLICE, x, begin=begin, size=size), expected)


@pytest.mark.parametrize(
    ("spec", "attributes"),
    [
        (ops.IDENTITY, {}),
        (ops.RESHAPE, {"shape": (6,)}),
        (ops.TRANSPOSE, {"perm": (1, 0)}),
        (ops.BROADCAST_TO, {"shape": (4, 2, 3)}),
        (ops.SLICE, {"begin": (0, 1), "size": (2, 1)}),
    ],
    ids=named,
)
def test_views_share_the_memory(context, spec, attributes):
    from tensorplug.dispatch.calls import dispatch
    from tensorplug.dispatch.context import use_context
    from tensorplug.ops.creation import asarray

    allocation = context.device.backend.allocation
    with use_context(context):
        x = asarray(numbers((2, 3), "float32"))
        result = dispatch(spec, x, **attributes)
        assert allocation(result._buffer) == allocation(x._buffer) == (id(x._buffer), 24)


@pytest.mark.parametrize("dtype", sorted(dtype.name for dtype in dt.FIXED))
@pytest.mark.parametrize(
    ("shape", "paddings"),
    [
        ((), ()),
        ((2,), ((1, 2),)),
        ((2, 3), ((0, 1), (2, 0))),
        ((0, 2), ((1, 1), (0, 0))),
        ((2, 1), ((0, 0), (0, 0))),
    ],
)
@pytest.mark.parametrize("constant", [0, 1])
def test_pad(call, dtype, shape, paddings, constant):
    x = numbers(shape, dtype)
    target = tuple(a + n + b for (a, b), n in zip(paddings, shape, strict=True))
    expected = np.empty(target, dtype)
    for at in np.ndindex(*target):
        source = tuple(i - a for i, (a, _) in zip(at, paddings, strict=True))
        inside = all(0 <= i < n for i, n in zip(source, shape, strict=True))
        expected[at] = x[source] if inside else constant
    same(call(ops.PAD_V2, x, paddings=paddings, constant_value=constant), expected)


@pytest.mark.parametrize(
    ("dtype", "constant", "error"),
    [("uint8", 256, ArgumentError), ("int32", 0.5, DTypeError), ("float32", 1j, DTypeError)],
)
def test_pad_refuses_a_constant_that_does_not_fit(call, dtype, constant, error):
    with pytest.raises(error, match=dtype):
        call(ops.PAD_V2, np.ones(2, dtype), paddings=((1, 1),), constant_value=constant)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        ([(2,), (3,)], 0),
        ([(2, 1), (2, 2), (2, 0)], 1),
        ([(1, 2)], 0),
        ([(0, 2), (0, 2)], 0),
        ([(1, 2), (3, 2)], 0),
    ],
)
def test_concat(call, dtype, shapes, axis):
    xs = [numbers(shape, dtype) for shape in shapes]
    target = list(shapes[0])
    target[axis] = sum(shape[axis] for shape in shapes)
    expected = np.empty(target, xs[0].dtype)
    first = 0
    for x in xs:
        for at in np.ndindex(*x.shape):
            expected[tuple(i + first * (k == axis) for k, i in enumerate(at))] = x[at]
        first += x.shape[axis]
    same(call(ops.CONCAT, xs, axis=axis), expected)


LARGE = np.arange(3 * 811 * 257, dtype=np.int64).reshape(3, 811, 257)  # 5 MB


def test_large_results(call):
    """Only their rim is filled, and what is joined goes straight into recycled memory."""
    paddings = ((0, 1), (2, 0), (1, 3))
    expected = np.full((4, 813, 261), -7)
    expected[:3, 2:, 1:258] = LARGE
    for _ in range(2):  # the second time into memory that holds something
        same(call(ops.PAD_V2, LARGE, paddings=paddings, constant_value=-7), expected)
        both = call(ops.CONCAT, [LARGE, LARGE[:, :5]], axis=1)
        same(both, np.append(LARGE, LARGE[:, :5], axis=1))
        pair = call(ops.PACK, [LARGE, -LARGE], axis=1)
        same(pair, np.array([LARGE, -LARGE]).swapaxes(0, 1))
