"""Windows whose place a tensor holds, and whose size is fixed: reading and writing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.errors import ShapeError
from tensorplug.ops.joining import stack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ShapeLike, TensorLike

__all__ = ["dynamic_slice", "dynamic_update_slice"]


def window_axes(x: Shape, starts: Shape, sizes: Shape) -> int:
    """Return the number of batch axes of ``x``, before the axes that ``starts`` counts along.

    Raises:
        ShapeError: the shapes do not fit, or a window is larger than its axis.

    """
    if not starts:
        raise ShapeError("starts must have an entry for each axis, but it has rank 0")
    batch, rest = len(starts) - 1, x[len(starts) - 1 :]
    if x[:batch] != starts[:-1] or len(rest) != starts[-1]:
        raise ShapeError(
            f"starts has shape {list(starts)}, but must have {[*x[:batch], len(rest)]}: the "
            "batch axes of x, and an entry for each of its other axes"
        )
    if len(sizes) != len(rest):
        raise ShapeError(f"{list(sizes)} has {len(sizes)} sizes, but starts has {len(rest)}")
    for axis, (size, length) in enumerate(zip(sizes, rest, strict=True), batch):
        if size > length:
            raise ShapeError(f"a window of {size} exceeds axis {axis} of length {length}")
    return batch


def _infer_slice(x: TensorType, starts: TensorType, *, sizes: Shape) -> TensorType:
    batch = window_axes(x.shape, starts.shape, sizes)
    return TensorType(x.dtype, (*x.shape[:batch], *sizes))


DYNAMIC_SLICE = KernelSpec(
    "DynamicSlice",
    ("x", "starts"),
    _infer_slice,
    attributes={"sizes": attributes.shape()},
    accepts={"starts": dt.INTEGER},
    linear=("x",),
)


def _infer_update(x: TensorType, update: TensorType, starts: TensorType) -> TensorType:
    if update.rank != x.rank:
        raise ShapeError(f"update has rank {update.rank}, but x has rank {x.rank}")
    batch = window_axes(x.shape, starts.shape, update.shape[max(starts.rank - 1, 0) :])
    if update.shape[:batch] != x.shape[:batch]:
        raise ShapeError(f"update must have the batch axes of x, {list(x.shape[:batch])}")
    return x


DYNAMIC_UPDATE_SLICE = KernelSpec(
    "DynamicUpdateSlice",
    ("x", "update", "starts"),
    _infer_update,
    accepts={"starts": dt.INTEGER},
    promote=("x", "update"),
    linear=(("x", "update"),),
)


def read_starts(starts: Any) -> Any:
    """Return a list in which there are tensors as one tensor; the empty list as integers."""
    if not isinstance(starts, list | tuple):
        return starts
    held = [each for each in starts if hasattr(each, "_placement")]
    if held:
        dtype = held[0].dtype
        return stack([x if hasattr(x, "dtype") else as_tensor(x, dtype) for x in starts], -1)
    return starts or as_tensor(starts, dt.int32)


@chained
def dynamic_slice(
    x: TensorLike, /, starts: TensorLike | Sequence[TensorLike], sizes: ShapeLike
) -> Tensor:
    """Return the window of ``x`` that begins at ``starts`` and has ``sizes``.

    The place is data, so one compiled program serves all places; the sizes are fixed. A start
    never raises: negative ones count from the end, and then each is moved, so that the window
    lies inside ``x``. With n elements along an axis and a size of k, that is
    ``clip(start + n if start < 0 else start, 0, n - k)``.

    Args:
        x: a tensor of any dtype, ``[*batch, *axes]``.
        starts: integers: a tensor ``[*batch, axes]``, or a list with a number or a tensor of rank
            0 for each axis. With batch axes, each example has a window of its own.
        sizes: the size along each axis, apart from batch axes.

    Returns:
        ``[*batch, *sizes]``, of the dtype of x.

    Raises:
        ShapeError: the starts or sizes do not fit the axes, or a size exceeds its axis.
        DTypeError: the starts are not integers.

    Source: ``jax.lax.dynamic_slice``. ``x[:, i : i + 2]`` with a tensor i does the same in a
    compiled function.

    Examples:
        >>> x = tp.reshape(tp.arange(12), (3, 4))
        >>> i = tp.asarray(1)
        >>> tp.dynamic_slice(x, (i, 0), (2, 2))
        Tensor([[4, 5],
                [8, 9]], dtype=int32, device='cpu')
        >>> tp.dynamic_slice(x, (i + 7, -1), (1, 2))  # moved to row 2 and to column 2
        Tensor([[10, 11]], dtype=int32, device='cpu')
        >>> tp.dynamic_slice(x, [[0], [2], [1]], (2,))  # one window for each row
        Tensor([[ 0,  1],
                [ 6,  7],
                [ 9, 10]], dtype=int32, device='cpu')

    """
    return dispatch(DYNAMIC_SLICE, x, read_starts(starts), sizes=sizes)


@chained
def dynamic_update_slice(
    x: TensorLike, update: TensorLike, /, starts: TensorLike | Sequence[TensorLike]
) -> Tensor:
    """Return ``x`` with ``update`` in the window that begins at ``starts``.

    Starts are those of ``dynamic_slice``: a window that would not fit is moved. In a compiled
    program the update is written into the memory of ``x``, without a copy of the rest, if nothing
    reads x afterwards: if it is computed there, carried by a loop, or donated
    (``tp.compile(f, donate=...)``).

    Args:
        x: a tensor of any dtype, ``[*batch, *axes]``.
        update: of the same rank, and at most as large along each axis.
        starts: integers: a tensor ``[*batch, axes]``, or a list with a number or a tensor of rank
            0 for each axis.

    Returns:
        a tensor of the shape of x, and of the common dtype.

    Raises:
        ShapeError: the starts or the update do not fit x.
        DTypeError: the starts are not integers.

    Source: ``jax.lax.dynamic_update_slice``.

    Examples:
        >>> cache, i = tp.zeros((4, 2)), tp.asarray(2)
        >>> tp.dynamic_update_slice(cache, [[1.0, 2.0]], (i, 0))
        Tensor([[0., 0.],
                [0., 0.],
                [1., 2.],
                [0., 0.]], dtype=float32, device='cpu')
        >>> tp.dynamic_update_slice([0, 0, 0, 0], [1, 2], (tp.asarray(9),))  # moved to fit
        Tensor([0, 0, 1, 2], dtype=int32, device='cpu')

    """
    return dispatch(DYNAMIC_UPDATE_SLICE, x, update, read_starts(starts))
