"""Indexing of tensors, compared with NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError

from .engines import expect

pytestmark = pytest.mark.usefixtures("cpu")


@pytest.fixture
def cpu():
    with tp.use_backend("cpu"):
        yield


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

    def given(part):
        return tp.asarray(part) if kind == "tensor" and isinstance(part, np.ndarray) else part

    mine = tuple(map(given, key)) if isinstance(key, tuple) else given(key)
    expect(tp.asarray(X)[mine], "int32", expected.shape, expected)


def test_a_tensor_of_rank_0_is_an_integer():
    expect(tp.asarray(X)[tp.asarray(1)], "int32", (4, 5), X[1])
    expect(tp.asarray(X)[:, np.array(2)], "int32", (3, 5), X[:, 2])


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 0)])
def test_small_and_empty(shape):
    array = np.zeros(shape, np.float32)
    for key in [S[...], S[None], *([S[:], S[::-1], S[0:0]] if shape else [])]:
        expect(tp.asarray(array)[key], "float32", array[key].shape, array[key])


REFUSED = [  # key, error, message
    (S[3], ShapeError, "index 3 is out of range for axis 0 of int32[3,4,5], which has 3 elements"),
    (S[-4], ShapeError, "index -4 is out of range for axis 0 of int32[3,4,5]"),
    (S[0, 4], ShapeError, "index 4 is out of range for axis 1 of int32[3,4,5]"),
    (S[0, 0, 0, 0], ShapeError, "4 indices for int32[3,4,5]"),
    (S[..., ...], ArgumentError, "an index may hold one ellipsis"),
    (S[1.0], ArgumentError, "cannot index int32[3,4,5] with 1.0"),
    (S["a"], ArgumentError, "cannot index int32[3,4,5] with 'a'"),
    (S[True], ArgumentError, "cannot index int32[3,4,5] with True"),
    (S[[0, 1]], ArgumentError, "cannot index int32[3,4,5] with [0, 1]"),
    (S[:, ::0], ArgumentError, "cannot index axis 1 of int32[3,4,5] by slice(None, None, 0)"),
    (S[0:1.5], ArgumentError, "cannot index axis 0 of int32[3,4,5] by slice(0, 1.5, None)"),
    (S[np.array([0.5])], ArgumentError, "an index tensor must hold integers, got float64"),
    (S[np.array([True, False, True])], ArgumentError, "must hold integers, got bool"),
    (S[np.array(0.5)], ArgumentError, "index of axis 0 must be an integer"),
    (S[np.array([0]), np.array([0])], ArgumentError, "only one index may be a tensor"),
    (S[0, :, np.array([0])], ArgumentError, "that stand apart; index twice"),
    (S[np.array([0]), None, 0], ArgumentError, "that stand apart; index twice"),
    (S[np.array([3])], ArgumentError, "index 3 is out of range for axis 0"),
]


@pytest.mark.parametrize(("key", "error", "message"), REFUSED, ids=str)
def test_refused(key, error, message):
    x = tp.asarray(X)
    with pytest.raises(error, match=re.escape(message)):
        x[key]


def test_items_cannot_be_set_yet():
    x = tp.asarray(X)
    with pytest.raises(TypeError, match="does not support item assignment"):
        x[0] = 1
