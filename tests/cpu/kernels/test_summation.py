"""Sums of unlike terms, along axes of every kind, stay within eps * log2(n) * sum(|terms|)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug_cpu.summation import summer, summer_in_float64

SHAPES = [  # shape, axes
    ((64, 10), (0,)),
    ((64, 10), (1,)),
    ((64, 300), (0,)),
    ((1000, 130), (0,)),
    ((1024, 1024), (0,)),
    ((129, 1100), (0,)),
    ((40000, 3), (0,)),
    ((7, 5000), (0,)),
    ((5, 3, 4, 40000), (1,)),
    ((16, 70, 300), (1,)),
    ((50, 40, 9), (1,)),
    ((2000, 7, 3), (1,)),
    ((2000, 7), (1,)),
    ((6, 5, 40, 50), (0, 2, 3)),
    ((1, 6, 1, 7), (0, 2)),
    ((4, 1, 5), ()),
]


def terms(shape, axes, dtype):
    """Return one large term in each sum, and many that it swallows when they come one by one."""
    x = np.ones(shape, dtype)
    first = tuple(slice(1) if axis in axes else slice(None) for axis in range(len(shape)))
    x[first] = 4 / np.finfo(dtype).eps
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_error(shape, axes, dtype):
    x = terms(shape, axes, dtype)
    count = math.prod(shape[axis] for axis in axes)
    largest = float(x.reshape(-1).real.max())
    exact = largest + count - 1 if count > 1 else largest
    bound = np.finfo(dtype).eps * math.log2(max(count, 2)) * exact
    for keep in (False, True):
        result = summer(shape, axes, np.dtype(dtype), keep_dims=keep)(x)
        assert result.dtype == np.dtype(dtype)
        assert result.shape == np.sum(np.zeros(shape), axis=axes, keepdims=keep).shape
        assert np.abs(result - exact).max() <= bound


@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_each_term_counts_once(shape, axes):
    x = np.random.default_rng(0).integers(-8, 9, shape).astype("float32")
    expected = x.astype("int64").sum(axis=axes)
    transposed = np.ascontiguousarray(x.T).T  # the same numbers in another order of memory
    for terms in (x, transposed):
        result = summer(shape, axes, terms.dtype, keep_dims=False)(terms)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("shape", [(64, 10), (300, 200), (3, 50000), (4, 5, 6), (1, 1)])
def test_in_float64(shape):
    x = terms(shape, (len(shape) - 1,), "float32")
    x[..., -1] += 0.5
    for axis in range(len(shape)):
        result = summer_in_float64(shape, axis, x.dtype)(x)
        np.testing.assert_array_equal(result, x.astype("float64").sum(axis=axis, keepdims=True))
