"""Positions in sorted sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.default_integers import gives_indices
from tensorplug.ops.indexing.indexing import gather

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = [
    "lower_bound",
    "searchsorted",
    "upper_bound",
]


def _infer_places(sorted_sequence: TensorType, values: TensorType) -> TensorType:
    if not sorted_sequence.rank:
        raise ShapeError("sorted_sequence must have at least rank 1")
    batch = sorted_sequence.shape[:-1]
    if batch and (not values.rank or values.shape[:-1] != batch):
        raise ShapeError(
            "sorted_sequence must have rank 1, or the sizes of values except for the last"
        )
    return TensorType(dt.kernel_int, values.shape)


_INPUTS = ("sorted_sequence", "values")
_ORDERED = dict.fromkeys(_INPUTS, dt.REAL | dt.BOOL)
SEARCH_SORTED = KernelSpec(
    "SearchSorted",
    _INPUTS,
    _infer_places,
    attributes={"side": attributes.choice("left", "right", default="left")},
    accepts=_ORDERED,
    promote=_INPUTS,
)
LOWER_BOUND = KernelSpec("LowerBound", _INPUTS, _infer_places, accepts=_ORDERED, promote=_INPUTS)
UPPER_BOUND = KernelSpec("UpperBound", _INPUTS, _infer_places, accepts=_ORDERED, promote=_INPUTS)


@gives_indices()
def searchsorted(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: ArrayLike | None = None,
) -> Tensor:
    """Return the indices at which to insert the elements of ``x2`` into ``x1`` to keep it sorted.

    Args:
        x1: sorted in ascending order, NaN last: of rank 1, or batches ``(..., n)``.
        x2: numbers of any shape, or ``(..., m)`` for batches.
        side: ``"left"`` gives i with ``x1[i - 1] < v <= x1[i]``, ``"right"`` i with
            ``x1[i - 1] <= v < x1[i]``. NaN counts as largest; all NaN are equal.
        sorter: indices (of rank 1) that sort an ``x1`` of rank 1.

    Returns:
        Indices (int32) from 0 to n, of the shape of ``x2``.

    Raises:
        ArgumentError: an unknown side, or a sorter for batches.
        ShapeError: rank 0, or different batches.

    Source: the array API standard; batches are those of TensorFlow's searchsorted.

    Examples:
        >>> x = [1, 3, 3, 5]
        >>> tp.searchsorted(x, [0, 3, 9])
        Tensor([0, 1, 4], dtype=int32, device='cpu')
        >>> tp.searchsorted(x, [0, 3, 9], side="right")
        Tensor([0, 3, 4], dtype=int32, device='cpu')
        >>> tp.searchsorted([5, 1, 3], 4, sorter=[1, 2, 0])
        Tensor(2, dtype=int32, device='cpu')

    """
    if sorter is None:
        return dispatch(SEARCH_SORTED, x1, x2, side=side)
    sequence = as_tensor(x1, what="searchsorted: x1")
    order = as_tensor(sorter, what="searchsorted: sorter")
    if sequence.ndim != 1 or order.shape != sequence.shape:
        raise ArgumentError(
            "searchsorted: x1 and sorter must have rank 1 and the same length, got "
            f"{sequence.type} and {order.type}"
        )
    picked = gather(sequence, order) if sequence.size else sequence
    return dispatch(SEARCH_SORTED, picked, x2, side=side)


@gives_indices()
def lower_bound(sorted_sequence: ArrayLike, values: ArrayLike, /) -> Tensor:
    """Return the number of elements less than each value: ``searchsorted``, side left.

    Arguments, result (int32) and errors are those of ``searchsorted``. (TensorFlow's LowerBound.)

    ``sorted_sequence``: sorted in ascending order along its last axis; ``values``: the numbers to
    look up.

    Examples:
        >>> tp.lower_bound([1, 3, 3, 5], [3, 4])
        Tensor([1, 3], dtype=int32, device='cpu')

    """
    return dispatch(LOWER_BOUND, sorted_sequence, values)


@gives_indices()
def upper_bound(sorted_sequence: ArrayLike, values: ArrayLike, /) -> Tensor:
    """Return the number of elements not greater than each value: ``searchsorted``, side right.

    Arguments, result (int32) and errors are those of ``searchsorted``. (TensorFlow's UpperBound.)

    ``sorted_sequence``: sorted in ascending order along its last axis; ``values``: the numbers to
    look up.

    Examples:
        >>> tp.upper_bound([1, 3, 3, 5], [3, 4])
        Tensor([3, 3], dtype=int32, device='cpu')

    """
    return dispatch(UPPER_BOUND, sorted_sequence, values)
