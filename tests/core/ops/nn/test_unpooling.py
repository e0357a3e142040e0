"""Unpooling puts the largest elements back, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

RNG = np.random.default_rng(17)
SHAPE = (2, 5, 6, 3)


def put_back(x, places, shape, *, include_batch=False):
    """Write one element after the other."""
    result = np.zeros(shape, x.dtype)
    for (image, *_), value, place in zip(
        np.ndindex(*x.shape), x.reshape(-1), places.reshape(-1), strict=True
    ):
        if place >= 0:
            (result if include_batch else result[image]).reshape(-1)[place] = value
    return result


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("include_batch", [False, True])
@pytest.mark.parametrize(("size", "strides"), [(2, 2), (3, 1), ((2, 3), (1, 2))])
def test_values(size, strides, include_batch, dtype):
    x = RNG.permutation(np.arange(180)).reshape(SHAPE).astype(dtype)
    y, at = tp.nn.max_pool_with_argmax(x, size, strides, include_batch_in_index=include_batch)

    def back(y, at):
        return tp.nn.max_unpool(y, at, SHAPE, include_batch_in_index=include_batch)

    right = put_back(y.numpy(), at.numpy(), SHAPE, include_batch=include_batch)
    assert np.count_nonzero(right) > 10
    assert np.all((right == 0) | (right == x))
    for found in (back(y, at), tp.compile(back)(y, at)):
        assert (found.shape, found.dtype.name) == (SHAPE, dtype)
        np.testing.assert_array_equal(found.numpy(), right)


X, AT = np.ones((2, 1, 1, 3)), np.zeros((2, 1, 1, 3), np.int32)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((X[0], AT[0], SHAPE), {}, ShapeError, r"x must be \[batch, .* got float64\[1,1,3\]"),
        ((X, AT[:1], SHAPE), {}, ShapeError, r"indexes of its shape, got .*int32\[1,1,1,3\]"),
        ((X, AT, SHAPE[1:]), {}, ShapeError, r"must be \[2, height, width, 3\], got \[5, 6, 3"),
        ((X, AT, (2, 5, 6, 4)), {}, ShapeError, r"got \[2, 5, 6, 4\]"),
        ((X, AT, (2, -5, 6, 3)), {}, ShapeError, "output_shape"),
        ((X, X, SHAPE), {}, DTypeError, "indexes must be integers, got float64"),
        ((X > 0, AT, SHAPE), {}, DTypeError, "x must hold numbers, got bool"),
        ((X, AT, SHAPE), {"include_batch_in_index": 1}, ArgumentError, "must be True or False"),
        ((X, AT + 90, SHAPE), {}, OutOfRangeError, "out of range"),
    ],
)
def test_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        tp.nn.max_unpool(*arguments, **options)
