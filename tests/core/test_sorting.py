"""Sorting against Python's sort, which is stable, with a key that puts NaN last."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

NAN = math.nan


def order(row, *, descending):
    """Return the indices in order; ints are compared without conversion."""

    def missing(at):
        return isinstance(row[at], float) and math.isnan(row[at])

    there = [at for at in range(len(row)) if not missing(at)]
    gone = [at for at in range(len(row)) if missing(at)]
    ranked = sorted(there, key=row.__getitem__, reverse=descending)
    return gone + ranked if descending else ranked + gone


def sample(dtype, shape):
    values = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, NAN, -NAN, 3.0]
    return np.random.default_rng(3).choice(values, shape).astype(dtype)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape", [(7,), (3, 50), (2100,), (40, 600)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_of_both_signs(dtype, shape, descending):
    x = sample(dtype, shape)
    indices = tp.argsort(x, descending=descending)
    values = tp.sort(x, descending=descending)
    assert (indices.dtype, indices.shape) == (tp.int32, shape)
    assert (values.dtype.name, values.shape) == (dtype, shape)
    wanted = np.array(
        [order(row.tolist(), descending=descending) for row in np.atleast_2d(x)], np.int32
    ).reshape(shape)
    np.testing.assert_array_equal(indices.numpy(), wanted)
    picked = np.take_along_axis(x, wanted, axis=-1)
    np.testing.assert_array_equal(values.numpy(), picked)
    zeros = picked == 0  # those of both signs keep their order
    np.testing.assert_array_equal(np.signbit(values.numpy()[zeros]), np.signbit(picked[zeros]))


def test_top_k_begins_a_descending_sort():
    x = np.array([[1.0, NAN, 3.0, 3.0, -2.0]], np.float32)
    values, indices = tp.topk(x, 3)
    np.testing.assert_array_equal(values.numpy(), tp.sort(x, descending=True).numpy()[:, :3])
    assert indices.tolist() == tp.argsort(x, descending=True).numpy()[:, :3].tolist()
    booleans = tp.topk(np.array([False, True, False, True]), 3)
    assert booleans[0].tolist() == [True, True, False]
    assert booleans[1].tolist() == [1, 3, 0]


def test_unstable_sorts_have_the_same_values():
    x = sample("float32", (5, 300))
    np.testing.assert_array_equal(
        tp.sort(x, stable=False).numpy(), np.sort(x.astype(np.float64)).astype(np.float32)
    )
    picked = np.take_along_axis(x, tp.argsort(x, stable=False).numpy(), axis=-1)
    np.testing.assert_array_equal(picked, np.sort(x))


BAD = [
    (lambda: tp.sort(1.0), ShapeError, "Sort.*axis -1"),
    (lambda: tp.argsort([1.0], axis=1), ShapeError, "ArgSort.*axis.* 1"),
    (lambda: tp.sort([1.0], descending=1), ArgumentError, "'descending': must be True or Fal"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()
