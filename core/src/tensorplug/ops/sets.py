"""Unique values and set operations. The sizes of the results depend on the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.arguments import flag
from tensorplug.contract.spec import UNKNOWN, Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch_multiple
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.ops.creation import full, ones, zeros
from tensorplug.ops.cumulative import cumsum, diff
from tensorplug.ops.default_integers import gives_indices
from tensorplug.ops.elementwise.arithmetic import minimum
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.comparison import equal, logical_and, logical_not, not_equal
from tensorplug.ops.elementwise.complexes import imag, real
from tensorplug.ops.extents import slice
from tensorplug.ops.indexing.coordinates import flatnonzero
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.indexing.writing import scatter_nd
from tensorplug.ops.joining import concat
from tensorplug.ops.kinds import operands
from tensorplug.ops.movement import reshape
from tensorplug.ops.ranges import arange
from tensorplug.ops.searching import searchsorted
from tensorplug.ops.sorting import argsort, sort

if TYPE_CHECKING:
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import TensorLike

__all__ = [
    "isin",
    "setdiff1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueResult(NamedTuple):
    """The result of ``unique``."""

    values: Tensor
    indices: Tensor


class UniqueAllResult(NamedTuple):
    """The result of ``unique_all``."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """The result of ``unique_counts``."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """The result of ``unique_inverse``."""

    values: Tensor
    inverse_indices: Tensor


class SetDifference(NamedTuple):
    """The result of ``setdiff1d``."""

    values: Tensor
    indices: Tensor


def _read_axis(value: Any, types: InputTypes) -> int:
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    return shapes.normalize_axis(0 if value is None else value, types["x"].rank)


def _infer_unique(x: TensorType, *, axis: int) -> tuple[TensorType, TensorType]:
    shape = (*x.shape[:axis], UNKNOWN, *x.shape[axis + 1 :])
    return TensorType(x.dtype, shape), TensorType(dt.kernel_int, (x.shape[axis],))


UNIQUE = KernelSpec(
    "Unique",
    ("x",),
    _infer_unique,
    attributes={"axis": Attribute(_read_axis, 0, "int in [0, rank of x); None becomes 0")},
    outputs=("values", "indices"),
    accepts=dt.ANY,
    exact=False,
)


@chained
@gives_indices(1)
def unique(x: TensorLike, /, axis: int = 0) -> UniqueResult:
    """Return the unique slices of ``x`` along ``axis``, in the order of their first occurrence.

    Args:
        x: a tensor of any dtype, strings too, of rank 1 or more.
        axis: the axis of the slices. Slices are equal if all their elements are equal. All NaN
            are equal here, as are 0.0 and -0.0.

    Returns:
        ``values``, of the shape of x except for its length along ``axis``, which depends on the
        data; and ``indices`` (int32, of length ``x.shape[axis]``), the index among the values
        of each slice of x.

    Raises:
        ShapeError: rank 0, or an axis out of range.

    The gradient of ``values`` goes to the first occurrences. (TensorFlow's UniqueV2. The
    standard's functions are ``unique_all``, ``unique_values`` and so on.)

    Examples:
        >>> values, indices = tp.unique([30, 10, 30, 20])
        >>> values  # in the order of their first occurrence
        Tensor([30, 10, 20], dtype=int32, device='cpu')
        >>> indices
        Tensor([0, 1, 0, 2], dtype=int32, device='cpu')
        >>> tp.unique([[1, 2], [1, 2], [0, 2]]).values
        Tensor([[1, 2],
                [0, 2]], dtype=int32, device='cpu')

    """
    return UniqueResult(*dispatch_multiple(UNIQUE, x, axis=axis))


def unique_values(x: TensorLike, /) -> Tensor:
    """Return the unique elements of ``x``, of rank 1 and in ascending order.

    No two NaN are equal; 0.0 and -0.0 are equal. Complex numbers are ordered by real
    part, then imaginary part; strings by first occurrence. (The array API standard.)

    Examples:
        >>> tp.unique_values([[3, 1], [1, 2]])
        Tensor([1, 2, 3], dtype=int32, device='cpu')
        >>> tp.unique_values([tp.nan, 2.0, 2.0, tp.nan])
        Tensor([ 2., nan, nan], dtype=float32, device='cpu')

    """
    flat = _flatten(x, "unique_values")
    if flat.dtype not in dt.REAL | dt.BOOL:
        return _find_all(flat, "unique_values").values
    ordered = sort(flat, stable=False)
    return gather(ordered, flatnonzero(_mark_new(ordered))) if flat.size else flat


@gives_indices(1)
def unique_counts(x: TensorLike, /) -> UniqueCountsResult:
    """Return ``values`` as ``unique_values`` does, and their numbers of occurrences (int32).

    (The array API standard.)

    ``x``: numbers of any shape.

    Examples:
        >>> values, counts = tp.unique_counts([3, 1, 1, 2, 1])
        >>> values
        Tensor([1, 2, 3], dtype=int32, device='cpu')
        >>> counts
        Tensor([3, 1, 1], dtype=int32, device='cpu')

    """
    uniques = _find_all(x, "unique_counts")
    return UniqueCountsResult(uniques.values, uniques.counts)


@gives_indices(1)
def unique_inverse(x: TensorLike, /) -> UniqueInverseResult:
    """Return ``values`` as ``unique_values`` does, and the index among them of each element.

    ``inverse_indices`` (int32) has the shape of x, and ``values[inverse_indices]`` is x. (The
    array API standard.)

    ``x``: numbers of any shape.

    Examples:
        >>> values, inverse = tp.unique_inverse([30, 10, 30])
        >>> inverse
        Tensor([1, 0, 1], dtype=int32, device='cpu')
        >>> values[inverse]
        Tensor([30, 10, 30], dtype=int32, device='cpu')

    """
    uniques = _find_all(x, "unique_inverse")
    return UniqueInverseResult(uniques.values, uniques.inverse_indices)


@gives_indices(1, 2, 3)
def unique_all(x: TensorLike, /) -> UniqueAllResult:
    """Return the unique elements of ``x``, their first occurrences, inverse indices and counts.

    Args:
        x: a tensor of any dtype and shape.

    Returns:
        ``values`` as from ``unique_values``; ``indices`` of their first occurrences in the
        flattened x; ``inverse_indices``, of the shape of x, the index of each element among the
        values; ``counts``. The last three are int32.

    Source: the array API standard.

    Examples:
        >>> values, indices, inverse, counts = tp.unique_all([[30, 10], [30, 20]])
        >>> values
        Tensor([10, 20, 30], dtype=int32, device='cpu')
        >>> indices
        Tensor([1, 3, 0], dtype=int32, device='cpu')
        >>> inverse
        Tensor([[2, 0],
                [2, 1]], dtype=int32, device='cpu')
        >>> counts
        Tensor([1, 1, 2], dtype=int32, device='cpu')

    """
    return _find_all(x, "unique_all")


def _find_all(x: Any, caller: str) -> UniqueAllResult:
    tensor = as_tensor(x, what=f"{caller}: x")
    flat = _flatten(tensor, caller)
    count = flat.shape[0]
    if not count:
        nothing = zeros((0,), dtype=dt.int32)
        return UniqueAllResult(flat, nothing, reshape(nothing, tensor.shape), nothing)
    order, fresh = _sort_stably(flat)
    starts = flatnonzero(fresh)
    indices = gather(order, starts)
    numbers = cumsum(fresh) - 1
    inverse = scatter_nd(reshape(order, (count, 1)), numbers, (count,))
    counts = diff(starts, append=count)
    return UniqueAllResult(gather(flat, indices), indices, reshape(inverse, tensor.shape), counts)


def _flatten(x: Any, caller: str) -> Tensor:
    tensor = as_tensor(x, what=f"{caller}: x")
    return tensor if tensor.ndim == 1 else reshape(tensor, (tensor.size,))


def _sort_stably(flat: Tensor) -> tuple[Tensor, Tensor]:
    """Return a stable order of the elements, and whether each differs from the one before."""
    if flat.dtype is dt.string:
        numbers = unique(flat).indices
        order = argsort(numbers)
        return order, _mark_new(gather(numbers, order))
    if flat.dtype in dt.COMPLEX:
        by_imaginary = argsort(imag(flat))
        order = gather(by_imaginary, argsort(gather(real(flat), by_imaginary)))
    else:
        order = argsort(flat)
    return order, _mark_new(gather(flat, order))


def _mark_new(ordered: Tensor) -> Tensor:
    """Return whether each element differs from the one before it; a NaN always does."""
    count = ordered.shape[0]
    if not count:
        return zeros((0,), dtype=dt.bool_)
    change = not_equal(slice(ordered, (1,), (count - 1,)), slice(ordered, (0,), (count - 1,)))
    return concat([ones((1,), dtype=dt.bool_), change])


def isin(x1: TensorLike, x2: TensorLike, /, *, invert: bool = False) -> Tensor:
    """Return for each element of ``x1`` whether it is in ``x2``.

    Args:
        x1: a tensor of any shape, or a number; the result (boolean) has its shape.
        x2: a tensor of any shape, or a number. NaN is never in it; 0.0 equals -0.0.
        invert: whether to return the opposite.

    Raises:
        DTypeError: the two have no common dtype.

    Source: the array API standard.

    Examples:
        >>> tp.isin([[1, 2], [3, 4]], [2, 4, 6])
        Tensor([[False,  True],
                [False,  True]], dtype=bool, device='cpu')
        >>> tp.isin([1.0, tp.nan], [tp.nan, 2.0], invert=True)
        Tensor([ True,  True], dtype=bool, device='cpu')

    """
    return _test_membership(*_read_both(x1, x2, "isin"), invert=flag(invert, "isin: invert"))


def _test_membership(sought: Tensor, among: Tensor, *, invert: bool) -> Tensor:
    if not among.size:
        return full(sought.shape, invert, dtype=dt.bool_)
    if sought.dtype not in dt.REAL | dt.BOOL:
        # Number the unique elements; all NaN share a number.
        both = concat([reshape(sought, (sought.size,)), among])
        numbers = unique(both).indices
        left = reshape(slice(numbers, (0,), (sought.size,)), sought.shape)
        right = slice(numbers, (sought.size,), (among.size,))
        members = _test_membership(left, right, invert=False)
        if sought.dtype in dt.COMPLEX:
            members = logical_and(members, equal(sought, sought))
    else:
        ordered = sort(among, stable=False)
        at = minimum(searchsorted(ordered, sought), among.size - 1)
        members = equal(gather(ordered, at), sought)
    return logical_not(members) if invert else members


def _read_both(x1: Any, x2: Any, caller: str) -> tuple[Tensor, Tensor]:
    """Return both in their common dtype, the second one flattened; scalars are weak."""
    left, right = operands(x1, x2, f"{caller}: x1", f"{caller}: x2")
    try:
        common = dt.promote((left.dtype, right.dtype))
    except DTypeError as error:
        raise DTypeError(f"{caller}: {error}") from None
    left, right = (x if x.dtype is common else astype(x, common) for x in (left, right))
    return left, reshape(right, (right.size,))


@gives_indices(1)
def setdiff1d(x: TensorLike, y: TensorLike, /) -> SetDifference:
    """Return the elements of ``x`` that are not in ``y``, and their indices.

    Args:
        x: a tensor of rank 1.
        y: a tensor of rank 1; its dtype must have a common dtype with that of x.

    Returns:
        ``values``, in the order of x and with repetitions, and ``indices`` (int32) into x.
        Their length depends on the data.

    Raises:
        ShapeError: another rank.

    (TensorFlow's ListDiff, TensorFlow.js's setdiff1dAsync. NaN is never in y, see ``isin``.)

    Examples:
        >>> values, indices = tp.setdiff1d([5, 1, 4, 1], [4, 6])
        >>> values
        Tensor([5, 1, 1], dtype=int32, device='cpu')
        >>> indices
        Tensor([0, 1, 3], dtype=int32, device='cpu')

    """
    left, right = as_tensor(x, what="setdiff1d: x"), as_tensor(y, what="setdiff1d: y")
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(f"setdiff1d: x and y must have rank 1, got {left.type} and {right.type}")
    at = flatnonzero(_test_membership(*_read_both(left, right, "setdiff1d"), invert=True))
    return SetDifference(gather(left, at), at)


def find_first_occurrences(indices: Tensor, count: int) -> Tensor:
    """Return the first occurrences of the numbers below ``count`` in ``indices``."""
    order = argsort(indices)
    starts = searchsorted(gather(indices, order), arange(count, dtype=dt.int32))
    return gather(order, starts)
