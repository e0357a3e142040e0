"""Shapes: broadcasting, axes and reshaping against NumPy; refusals."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from tensorplug.contract import shapes
from tensorplug.errors import ArgumentError, ShapeError

SHAPES = [(), (1,), (3,), (0,), (2, 1), (2, 3), (1, 3), (4, 1, 3), (0, 3), (1, 1, 1)]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SHAPES, SHAPES)))
def test_broadcast_is_numpys(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ShapeError, match=re.escape(f"shapes {list(a)} and {list(b)} cannot")):
            shapes.broadcast(a, b)
    else:
        assert shapes.broadcast(a, b) == expected
        back = np.zeros(expected).sum(axis=shapes.broadcast_axes(a, expected), keepdims=True)
        assert back.size == shapes.size(a) or 0 in expected


def test_broadcast_of_none_and_of_three():
    assert shapes.broadcast() == ()
    assert shapes.broadcast((2, 1), (3,), ()) == (2, 3)


@pytest.mark.parametrize("rank", range(4))
@pytest.mark.parametrize("axis", range(-5, 5))
def test_normalize_axis(rank, axis):
    if -rank <= axis < rank:
        assert shapes.normalize_axis(axis, rank) == range(rank)[axis]
    else:
        allowed = f"it must be from {-rank} to {rank - 1}" if rank else "a scalar has no axes"
        with pytest.raises(ShapeError) as caught:
            shapes.normalize_axis(axis, rank)
        assert str(caught.value) == f"axis {axis} is out of range for rank {rank}: {allowed}"


AXES = [  # axes, what comes for rank 3, or a part of the error
    (None, (0, 1, 2)),
    ((), ()),
    (1, (1,)),
    ([-1, 0], (0, 2)),
    (np.int64(2), (2,)),
    ([0, -3], "names an axis twice"),
    (3, "out of range for rank 3"),
    (True, "axis must be an integer, got True"),
    (1.0, "axis must be an integer, got 1.0"),
    ("1", "axis must be an integer, got '1'"),
    ([[0]], "axis must be an integer, got [0]"),
]


@pytest.mark.parametrize(("axes", "result"), AXES)
def test_normalize_axes(axes, result):
    if isinstance(result, tuple):
        assert shapes.normalize_axes(axes, 3) == result
    else:
        with pytest.raises(ArgumentError, match=re.escape(result)):
            shapes.normalize_axes(axes, 3)


@pytest.mark.parametrize(("given", "result"), [(3, (3,)), ([], ()), ((2, 0), (2, 0))])
def test_as_shape(given, result):
    assert shapes.as_shape(given) == result


@pytest.mark.parametrize(
    ("given", "error"), [(-1, ShapeError), ((2, -1), ShapeError), (2.0, ArgumentError)]
)
def test_as_shape_refuses(given, error):
    with pytest.raises(error, match="shape must"):
        shapes.as_shape(given)


RESHAPES = [
    ((2, 3), (6,)),
    ((2, 3), (-1,)),
    ((2, 3), (3, -1)),
    ((), (1, 1)),
    ((), (-1,)),
    ((0, 3), (3, 0)),
    ((0, 3), (-1, 3)),
    ((2, 3), (4,)),
    ((2, 3), (4, -1)),
    ((2, 3), (-1, -1)),
    ((0, 3), (0, -1)),
    ((2, 3), ()),
]


@pytest.mark.parametrize(("shape", "target"), RESHAPES)
def test_reshape_is_numpys(shape, target):
    try:
        expected = np.zeros(shape).reshape(target).shape
    except ValueError:
        with pytest.raises(ShapeError, match=re.escape(str(list(target)))):
            shapes.reshape(shape, target)
    else:
        assert shapes.reshape(shape, target) == expected


def test_reshape_refuses_other_negative_sizes():
    with pytest.raises(ShapeError, match="one -1 but no other negative size"):
        shapes.reshape((2,), (-2,))


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("axes", [(), (0,), (1, 2), (0, 1, 2)])
def test_reduce_is_numpys(axes, keep):
    expected = np.zeros((2, 3, 4)).sum(axis=axes, keepdims=keep).shape
    assert shapes.reduce((2, 3, 4), axes, keep_dims=keep) == expected
