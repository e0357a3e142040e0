"""Sorting along an axis, and the largest elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, inference, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch, dispatch_multiple
from tensorplug.errors import ArgumentError, OutOfRangeError, ShapeError
from tensorplug.ops.default_integers import gives_indices
from tensorplug.ops.indexing.indexing import take_along_axis
from tensorplug.ops.movement import reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = [
    "argpartition",
    "argsort",
    "partition",
    "sort",
    "topk",
]

_ORDERED = dt.REAL | dt.BOOL  # False comes before True


def _infer_top_k(x: TensorType, *, k: int) -> tuple[TensorType, TensorType]:
    if x.rank == 0:
        raise ShapeError("x must have at least rank 1")
    if k > x.shape[-1]:
        raise ShapeError(f"k must be at most {x.shape[-1]}, the length of the last axis, got {k}")
    shape = (*x.shape[:-1], k)
    return TensorType(x.dtype, shape), TensorType(dt.kernel_int, shape)


TOP_K = KernelSpec(
    "TopK",
    ("x",),
    _infer_top_k,
    attributes={
        "k": attributes.integer(1, at_least=0),
        "sorted": attributes.flag(default=True),
    },
    outputs=("values", "indices"),
    accepts=_ORDERED,
    leading=(),
)

_SORTING = {
    "axis": attributes.axis("x", -1),
    "descending": attributes.flag(default=False),
    "stable": attributes.flag(default=True),
}
SORT = KernelSpec(
    "Sort",
    ("x",),
    inference.same,
    attributes=_SORTING,
    accepts=_ORDERED,
    leading=("axis",),
)
ARG_SORT = KernelSpec(
    "ArgSort",
    ("x",),
    inference.same_shape(dt.kernel_int),
    attributes=_SORTING,
    accepts=_ORDERED,
    leading=("axis",),
)


def _read_positions(value: Any, known: InputTypes) -> tuple[int, ...]:
    length: int = known["x"].shape[known["axis"]]
    positions = shapes.as_ints(value, "kth")
    for position in positions:
        if not -length <= position < length:
            raise OutOfRangeError(
                f"position {position} is out of range for axis {known['axis']} of length {length}"
            )
    if not positions:
        raise ArgumentError("must name at least one position, got none")
    return tuple(sorted({position % length for position in positions}))


ARG_PARTITION = KernelSpec(
    "ArgPartition",
    ("x",),
    inference.same_shape(dt.kernel_int),
    attributes={
        "axis": attributes.axis("x", -1),
        "kth": Attribute(
            _read_positions, form="sorted tuple of distinct ints in [0, length of axis)"
        ),
    },
    accepts=_ORDERED,
    leading=("axis",),
)


@chained
@gives_indices(1)
def topk(x: ArrayLike, /, k: int = 1, *, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """Return the ``k`` largest entries of the last axis and their indices (int32).

    The largest come first, and among equals the lowest index. NaN counts as largest.
    ``sorted=False`` permits any order. (TensorFlow's TopKV2.)

    ``x``: numbers of rank 1 or more.

    Raises:
        ShapeError: rank 0, or ``k`` larger than the last axis.
        DTypeError: complex numbers or strings.

    Examples:
        >>> values, indices = tp.topk([[3, 9, 9, 1], [5, 2, 7, 4]], 2)
        >>> values
        Tensor([[9, 9],
                [7, 5]], dtype=int32, device='cpu')
        >>> indices
        Tensor([[1, 2],
                [2, 0]], dtype=int32, device='cpu')

    """
    values, indices = dispatch_multiple(TOP_K, x, k=k, sorted=sorted)
    return values, indices


@chained
def sort(
    x: ArrayLike, /, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> Tensor:
    """Return the elements sorted along ``axis``, smallest first.

    Args:
        x: real numbers or booleans, of rank 1 or more; the result has its type.
        axis: the axis to sort along.
        descending: whether to sort largest first. NaN counts as largest, as in ``topk`` and
            ``argmax``.
        stable: whether equal elements, such as 0.0 and -0.0, keep their order. False may be
            faster.

    Raises:
        ShapeError: rank 0, or an axis out of range.

    Source: the array API standard; the kernel Sort is tensorplug's own.

    Examples:
        >>> tp.sort([3, 1, 2])
        Tensor([1, 2, 3], dtype=int32, device='cpu')
        >>> tp.sort([[2, 1], [0, 3]], axis=0)
        Tensor([[0, 1],
                [2, 3]], dtype=int32, device='cpu')
        >>> tp.sort([2.0, tp.nan, 1.0])
        Tensor([ 1.,  2., nan], dtype=float32, device='cpu')
        >>> tp.sort([2.0, tp.nan, 1.0], descending=True)
        Tensor([nan,  2.,  1.], dtype=float32, device='cpu')

    """
    return dispatch(SORT, x, axis=axis, descending=descending, stable=stable)


@chained
@gives_indices()
def argsort(
    x: ArrayLike, /, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> Tensor:
    """Return the indices (int32) that sort ``x`` along ``axis``, in its shape.

    Equal elements keep the order of their indices, in descending order too, unless ``stable``
    is False. Otherwise it is like ``sort``.

    Raises:
        DTypeError: complex numbers or strings.
        OutOfRangeError: the axis is out of range.

    Source: the array API standard.

    Examples:
        >>> x = tp.asarray([30, 10, 20, 10])
        >>> order = tp.argsort(x)
        >>> order
        Tensor([1, 3, 2, 0], dtype=int32, device='cpu')
        >>> x[order]
        Tensor([10, 10, 20, 30], dtype=int32, device='cpu')
        >>> tp.argsort(x, descending=True)  # equal elements keep their order
        Tensor([0, 2, 1, 3], dtype=int32, device='cpu')

    """
    return dispatch(ARG_SORT, x, axis=axis, descending=descending, stable=stable)


def partition(x: ArrayLike, kth: int | Sequence[int], /, axis: int | None = -1) -> Tensor:
    """Return the elements along ``axis``, with those at positions ``kth`` as in sorted order.

    No element before one of these positions is larger, and none after it is smaller. Otherwise
    the order is arbitrary, and may differ between devices.

    Args:
        x: real numbers or booleans, of rank 1 or more. NaN counts as largest.
        kth: a position, or several; negative ones count from the end.
        axis: the axis to order along; None orders the elements in row-major order.

    Raises:
        ShapeError: rank 0, or an axis or a position out of range.
        ArgumentError: there is no position.

    Source: NumPy's partition; the kernel ArgPartition is tensorplug's own.

    Examples:
        >>> x = tp.partition([7, 1, 5, 3, 9], 2)
        >>> x[2]  # the median; what precedes it is smaller, in any order
        Tensor(5, dtype=int32, device='cpu')
        >>> tp.max(x[:2]), tp.min(x[3:])
        (Tensor(3, dtype=int32, device='cpu'), Tensor(7, dtype=int32, device='cpu'))

    """
    tensor, at = _choose_axis(x, axis, "partition")
    return take_along_axis(tensor, dispatch(ARG_PARTITION, tensor, kth=kth, axis=at), axis=at)


@gives_indices()
def argpartition(x: ArrayLike, kth: int | Sequence[int], /, axis: int | None = -1) -> Tensor:
    """Return the indices (int32) that order ``x`` along ``axis`` as ``partition`` does.

    Arguments and errors are the same. Source: NumPy's argpartition.

    ``kth``: the places, in sorted order, that get their elements.

    Examples:
        >>> x = tp.asarray([7, 1, 5, 3, 9])
        >>> least = tp.argpartition(x, 1)[:2]
        >>> x[least].sort()
        Tensor([1, 3], dtype=int32, device='cpu')

    """
    tensor, at = _choose_axis(x, axis, "argpartition")
    return dispatch(ARG_PARTITION, tensor, kth=kth, axis=at)


def _choose_axis(x: Any, axis: int | None, caller: str) -> tuple[Tensor, int]:
    """Return the tensor to order, flat if ``axis`` is None, and its axis."""
    tensor = as_tensor(x, what=f"{caller}: x")
    if axis is None:
        return reshape(tensor, (tensor.size,)), 0
    if not tensor.ndim:
        raise ShapeError(f"{caller}: x must have at least rank 1, got {tensor.type}")
    return tensor, shapes.normalize_axis(axis, tensor.ndim, f"{caller}: axis")
