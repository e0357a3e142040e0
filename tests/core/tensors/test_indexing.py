"""Indexing of tensors, compared with NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.errors import ArgumentError, OutOfRangeError, ShapeError, SubscriptError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


X = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
S = np.s_
KEYS = [
    S[0],
    S[-1],
    S[2, 3, 4],
    S[-3, -4, -5],
    S[np.int64(1)],
    S[()],
    S[...],
    S[:],
    S[1:],
    S[:-1],
    S[1:2, 2:, :3],
    S[5:9],
    S[2:1],
    S[-100:100],
    S[::2],
    S[::-1],
    S[::-2, 1::3],
    S[2:0:-1],
    S[0:2:-1],
    S[:, ::-1, ::2],
    S[1:1:2],
    S[..., 0],
    S[0, ...],
    S[1, ..., 2],
    S[..., 1:3, :],
    S[0, 1, 2, ...],
    S[None],
    S[:, None],
    S[..., None],
    S[None, 0, None, ::2, None],
    S[None, ..., None, -1],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_basic_indexing(key):
    expected = X[key]
    expect(tp.asarray(X)[key], "int32", expected.shape, expected)


INDICES = [  # the key, with arrays where tensors go
    S[np.array([0, 2])],
    S[np.array([-1, 0, 0])],
    S[np.array([[0, 1], [2, 0]])],
    S[:, np.array([3, -4])],
    S[..., np.array([[4], [0]])],
    S[1, np.array([0, 2])],
    S[np.array([0, 2]), 1],
    S[0, 1, np.array([2, 3])],
    S[::2, np.array([1, 3]), ::-1],
    S[None, np.array([1, 1]), ..., 1:],
    S[np.array([1]), None],
    S[np.array([[0, 1], [2, 0]]), ::2, ::-1],
    S[np.zeros((0,), np.int32)],
    S[np.array([1], np.uint8)],
]


@pytest.mark.parametrize("kind", ["tensor", "array"])
@pytest.mark.parametrize("key", INDICES, ids=str)
def test_one_index_tensor(key, kind):
    expected = X[key]
    expect(tp.asarray(X)[given(key, kind)], "int32", expected.shape, expected)


def test_a_tensor_of_rank_0_is_an_integer():
    expect(tp.asarray(X)[tp.asarray(1)], "int32", (4, 5), X[1])
    expect(tp.asarray(X)[:, np.array(2)], "int32", (3, 5), X[:, 2])


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 0)])
def test_small_and_empty(shape):
    array = np.zeros(shape, np.float32)
    for key in [S[...], S[None], *([S[:], S[::-1], S[0:0]] if shape else [])]:
        expect(tp.asarray(array)[key], "float32", array[key].shape, array[key])


ARRAYS = [  # several arrays, apart and together, with integers, new axes, slices and flags
    S[[0, 2], [1, 3]],
    S[[0, 2], :, [1, 3]],
    S[:, [0, 2], [1, 3]],
    S[[[0], [2]], [1, 3]],
    S[[0, 2], None, [1, 3]],
    S[0, :, [1, 3]],
    S[[1, 2], ..., 0],
    S[[0, 1], ..., [2, 3], :],
    S[-1, [0, 2]],
    S[..., [0], [1]],
    S[None, [0, 2], ::-1, 1],
    S[[]],
    S[range(2)],
    S[([0, 1],)],
    S[True],
    S[False],
    S[:, True, [0, 1]],
    S[0, ..., True],
    S[np.True_, ..., 0],
    S[np.array([0, 2], np.uint8), np.array([3, 0], np.int64)],
]
MASKS = [
    S[X > 30],
    S[X < 0],
    S[np.array([True, False, True])],
    S[:, np.array([False, True, True, False])],
    S[X[..., 0] > 20],
    S[X[..., 0] > 20, 1:3],
    S[0, X[0] % 2 == 0],
    S[[True, False, True], :, [1, 2]],
    S[np.array([True, False, True]), 1],
    S[..., X[0, 0] % 2 == 1],
    S[X[:, :, 0] > 5, [3] * 10],
]


@pytest.mark.parametrize("kind", ["tensor", "array"])
@pytest.mark.parametrize("key", [*ARRAYS, *MASKS], ids=str)
def test_arrays_and_masks(key, kind):
    expected = X[key]
    expect(tp.asarray(X)[given(key, kind)], "int32", expected.shape, expected)


def given(key, kind):
    """Return the key with tensors for its arrays, if ``kind`` says so."""
    if isinstance(key, tuple):
        return tuple(given(part, kind) for part in key)
    return tp.asarray(key) if kind == "tensor" and isinstance(key, np.ndarray) else key


REFUSED = [  # key, error, message
    (S[3], OutOfRangeError, "index 3 is out of range for axis 0 of int32[3,4,5], which has 3 ele"),
    (S[-4], OutOfRangeError, "index -4 is out of range for axis 0 of int32[3,4,5]"),
    (S[0, 4], IndexError, "index 4 is out of range for axis 1 of int32[3,4,5]"),
    (S[0, 0, 0, 0], OutOfRangeError, "4 indices for int32[3,4,5]"),
    (S[..., ...], SubscriptError, "an index can have only one ellipsis"),
    (S[1.0], SubscriptError, "cannot index int32[3,4,5] with 1.0"),
    (S["a"], SubscriptError, "cannot index int32[3,4,5] with 'a'"),
    (S[[0.5]], SubscriptError, "cannot index int32[3,4,5] with float32"),
    (S[[[0], [1, 2]]], ShapeError, "nested lists must be rectangular"),
    (S[:, ::0], ArgumentError, "cannot index axis 1 of int32[3,4,5] by slice(None, None, 0)"),
    (S[0:1.5], ArgumentError, "cannot index axis 0 of int32[3,4,5] by slice(0, 1.5, None)"),
    (S[np.array([0.5])], SubscriptError, "an index tensor must hold integers or booleans"),
    (S[np.array(0.5)], SubscriptError, "an index tensor must hold integers or booleans"),
    (S[np.array([True, False])], OutOfRangeError, "from axis 0 on it must have the sizes [3]"),
    (S[:, X > 3], OutOfRangeError, "4 indices for int32[3,4,5]"),
    (S[[0, 1], [0, 1, 2]], OutOfRangeError, "indexing int32[3,4,5]: shapes"),
    (S[np.array([3])], OutOfRangeError, "index 3 is out of range for axis 0"),
    (S[1j], SubscriptError, "cannot index int32[3,4,5] with 1j"),
    (S[np.array([None])], SubscriptError, "indexing int32[3,4,5]"),
    (S[[0], [-5]], OutOfRangeError, "index -5 is out of range for axis 1"),
]


@pytest.mark.parametrize(("key", "error", "message"), REFUSED, ids=str)
def test_refused(key, error, message):
    x = tp.asarray(X)
    with pytest.raises(error, match=re.escape(message)):
        x[key]


@pytest.mark.parametrize(("key", "error", "message"), REFUSED, ids=str)
def test_what_numpy_refuses_as_an_index_is_one_here(key, error, message):
    """Who catches ``IndexError`` catches it here, for values and for assignment."""
    try:
        X[key]
    except IndexError:
        assert issubclass(error, IndexError)
        with pytest.raises(IndexError):
            tp.asarray(X)[key] = 0
    except (TypeError, ValueError):  # of bounds, steps and ragged lists
        assert issubclass(error, ArgumentError)


def test_a_place_is_data_so_one_plan_serves_for_all():
    x = tp.asarray(np.zeros((50, 3, 2), np.float32))
    assert x[0].shape == (3, 2)
    device = x._live()
    plans = len(device.plans) + len(device.slow_plans)
    for number in range(50):
        assert x[number].shape == (3, 2)
    assert len(device.plans) + len(device.slow_plans) == plans


def test_gradients_flow_through_every_kind_of_key():
    x = np.arange(1.0, 61.0).reshape(3, 4, 5)
    weights = np.linspace(-1.0, 1.0, 60).reshape(3, 4, 5)
    for key in [*KEYS, *INDICES, *ARRAYS, *MASKS]:
        wanted = np.zeros_like(x)
        picked = weights[key]
        np.add.at(wanted, key, 2 * x[key] * picked)
        found = tp.grad(lambda t, key=key, w=picked: (t[key] * t[key] * w).sum())(tp.asarray(x))
        expect(found, "float64", x.shape, wanted)
