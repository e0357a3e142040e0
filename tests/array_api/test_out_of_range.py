"""IndexError where the standard requires it: missing axes, masks of other sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import OutOfRangeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

X = tp.asarray(np.arange(6.0).reshape(2, 3))
CALLS: dict[str, Callable[[int], Any]] = {
    "argmax": lambda axis: tp.argmax(X, axis=axis),
    "concat": lambda axis: tp.concat([X, X], axis=axis),
    "cumulative_sum": lambda axis: tp.cumulative_sum(X, axis=axis),
    "fft": lambda axis: tp.fft.fft(X, axis=axis),
    "flip": lambda axis: tp.flip(X, axis=axis),
    "moveaxis": lambda axis: tp.moveaxis(X, axis, 0),
    "roll": lambda axis: tp.roll(X, 1, axis=axis),
    "sort": lambda axis: tp.sort(X, axis=axis),
    "squeeze": lambda axis: tp.squeeze(X, axis),
    "sum": lambda axis: tp.sum(X, axis=axis),
    "take": lambda axis: tp.take(X, tp.asarray([0]), axis=axis),
    "unstack": lambda axis: tp.unstack(X, axis=axis),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_out_of_range_is_an_index_error(name: str, axis: int) -> None:
    with pytest.raises(IndexError, match="out of range for rank 2") as caught:
        CALLS[name](axis)
    assert isinstance(caught.value, OutOfRangeError)
    assert isinstance(caught.value, ShapeError)


@pytest.mark.parametrize("axis", [3, -4])
@pytest.mark.parametrize("function", [tp.expand_dims, lambda x, axis: tp.stack([x, x], axis=axis)])
def test_a_new_axis_out_of_range_is_an_index_error(function: Any, axis: int) -> None:
    with pytest.raises(IndexError, match="out of range for rank 3"):
        function(X, axis=axis)


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 2), (0, 2), (3, 0)])
def test_a_mask_of_other_sizes_is_an_index_error(shape: tuple[int, ...]) -> None:
    mask = np.zeros(shape, np.bool_)
    with pytest.raises(IndexError, match="must have the sizes"):
        X[mask]
    with pytest.raises(IndexError, match="must have the sizes"):
        tp.asarray(X, copy=True)[tp.asarray(mask)] = 1.0


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (0, 0)])
def test_a_mask_with_a_size_of_0_picks_nothing(shape: tuple[int, ...]) -> None:
    mask = np.zeros(shape, np.bool_)
    for key in (mask, tp.asarray(mask)):
        picked = X[key]
        assert picked.shape == np.asarray(X)[mask].shape
        assert picked.dtype == X.dtype
        changed = tp.asarray(X, copy=True)
        changed[key] = 7.0
        assert np.array_equal(changed, X)
