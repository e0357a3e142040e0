"""Shapes, axes and joining, as NumPy has them: NumPy is the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import same
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, CopyNeededError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

CUBE = np.arange(24).reshape(2, 3, 4)
ARRAYS = {
    "float32": CUBE.astype("f4"),
    "float64": CUBE * 1.0,
    "int32": CUBE.astype("i4"),
    "bool": CUBE % 3 == 0,
    "complex64": (CUBE * 1j).astype("c8"),
    "empty": np.zeros((2, 0, 3), "f4"),
    "matrix": np.arange(6, dtype="f4").reshape(2, 3),
    "vector": np.arange(3, dtype="f4"),
    "rank 0": np.array(7.0, "f4"),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_flat_tensors_and_ranks(kind):
    x = ARRAYS[kind]
    same(tp.asarray(x).flatten(), x.flatten())
    same(tp.asarray(x).ravel(), x.ravel())
    same(tp.ravel(tp.permute_dims(x)), x.T.ravel())
    same(tp.asarray(x).copy(), x)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        same(getattr(tp, name)(x), getattr(np, name)(x))
        found = getattr(tp, name)(x, 1.0)
        assert isinstance(found, tuple)
        same(found[0], getattr(np, name)(x))
        assert found[1].shape == getattr(np, name)(1.0).shape
    assert tp.atleast_1d() == ()


@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (2, -1), (-1, 0), (1, 1)])
@pytest.mark.parametrize("kind", ["float32", "bool", "empty"])
def test_swapped_axes(kind, axes):
    x = ARRAYS[kind]
    same(tp.asarray(x).swapaxes(*axes), x.swapaxes(*axes))


@pytest.mark.parametrize("offset", [-9, -2, -1, 0, 1, 3, 9])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (0, 2), (-1, -2), (2, 0)])
@pytest.mark.parametrize("kind", ["float32", "int32", "empty"])
def test_diagonals(kind, axes, offset):
    x = ARRAYS[kind]
    same(tp.diagonal(x, offset, *axes), x.diagonal(offset, *axes))
    same(
        tp.asarray(x).diagonal(offset=offset, axis1=axes[0], axis2=axes[1]),
        pick_diagonal(x, offset, axes),
    )


def pick_diagonal(x, offset, axes):
    """Pick the elements of a diagonal one by one."""
    moved = np.moveaxis(x, axes, (0, 1))
    rows, columns = moved.shape[:2]
    picked = [moved[i, i + offset] for i in range(rows) if 0 <= i + offset < columns]
    if not picked:
        return np.zeros((*moved.shape[2:], 0), x.dtype)
    return np.stack(picked, axis=-1)


def test_a_copy_has_contents_of_its_own():
    x = tp.asarray([1.0, 2.0])
    twin = x.copy()
    twin[0] = 5.0
    assert (x.tolist(), twin.tolist()) == ([1, 2], [5, 2])
    assert tp.copy(tp.asarray(["a", "b"])).tolist() == ["a", "b"]
    assert tp.grad(lambda x: tp.sum(tp.copy(x) * 3))(x).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("turned", "shape"),
    [
        (lambda x: x.swapaxes(0, 2), (4, 1, 3, 2)),
        (lambda x: x[:, ::2], (2, 2, 1, 4)),
        (lambda x: x[::-1], (2, 12)),
        (lambda x: x[..., :2], (1, 2, 3, 2)),
    ],
)
def test_a_reshape_that_needs_no_copy_makes_none(turned, shape):
    same(tp.reshape(turned(tp.asarray(CUBE)), shape, copy=False), turned(CUBE).reshape(shape))
    with pytest.raises(CopyNeededError):
        tp.reshape(tp.permute_dims(CUBE), (-1,), copy=False)


LISTS = {
    "vectors": [np.arange(3.0), np.arange(3.0) + 5],
    "matrices": [np.arange(6.0).reshape(2, 3), np.ones((2, 3))],
    "cubes": [np.arange(12.0).reshape(2, 3, 2), np.ones((2, 3, 2))],
    "numbers": [np.array(1.0), np.array(2.0), np.array(3.0)],
    "one": [np.arange(3.0)],
    "empty": [np.zeros((0, 2)), np.zeros((0, 2))],
    "promoted": [np.arange(3, dtype="i4"), np.arange(3.0)],
    "booleans": [np.array([True, False]), np.array([False, False])],
}


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("name", ["vstack", "hstack", "dstack", "column_stack"])
def test_joined_tensors(name, kind):
    parts = LISTS[kind]
    same(getattr(tp, name)(parts), getattr(np, name)(parts))
    same(
        tp.compile(getattr(tp, name))([tp.asarray(part) for part in parts]),
        getattr(np, name)(parts),
    )


def test_parts_of_different_sizes():
    vector, matrix = np.arange(3.0), np.ones((4, 3))
    same(tp.vstack([vector, matrix]), np.vstack([vector, matrix]))
    same(tp.hstack([vector, np.ones(2)]), np.hstack([vector, np.ones(2)]))
    same(tp.column_stack([np.arange(4.0), matrix]), np.column_stack([np.arange(4.0), matrix]))
    same(tp.dstack([matrix, np.ones((4, 3, 2))]), np.dstack([matrix, np.ones((4, 3, 2))]))


BAD = {  # error: call, what the message says
    ShapeError: [
        (lambda: tp.swapaxes(CUBE, 0, 3), "swapaxes of int64[2,3,4]: axis2 3 is out of"),
        (lambda: tp.diagonal([1]), "diagonal: x must have at least rank 2, got int32[1]"),
        (lambda: tp.diagonal(CUBE, 0, 1, -2), "axis1 and axis2 (1, -2) names an"),
        (lambda: tp.vstack([[1, 2], [3]]), "int32[1,2] and int32[1,1]"),
    ],
    ArgumentError: [
        (lambda: tp.swapaxes(CUBE, "a", 0), "axis1 must be an integer, got 'a'"),
        (lambda: tp.diagonal(CUBE, 0.5), "diagonal: offset must be an integer"),
        (lambda: tp.vstack(1), "vstack: xs must be a list of at least one tensor, got int"),
        (lambda: tp.hstack([]), "hstack: xs must be a list of at least one tensor, got an"),
    ],
    DTypeError: [
        (lambda: tp.vstack([["a"], [1]]), "string"),
        (lambda: tp.dstack([None]), "dstack: xs"),
    ],
}


test_bad_input = refused(BAD)
