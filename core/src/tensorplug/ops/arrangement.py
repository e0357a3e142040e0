"""Repeating and reordering along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from tensorplug.contract import attributes, inference, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch import host_values
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops.extents import read_paddings
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.joining import concat
from tensorplug.ops.movement import identity, permute_dims, reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, Axis, TensorLike

__all__ = ["flip", "mirror_pad", "moveaxis", "repeat", "roll", "tile"]

Pairs = tuple[tuple[int, int], ...]


def match_ranks(shape: Shape, reps: tuple[int, ...]) -> tuple[Shape, tuple[int, ...]]:
    """Return a shape and repetitions of equal length, padded with ones in front.

    ``reps``: one repetition per axis.
    """
    rank = max(len(shape), len(reps))
    return (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(reps)) + reps


def _infer_tile(x: TensorType, *, reps: tuple[int, ...]) -> TensorType:
    if any(count < 0 for count in reps):
        raise ShapeError(f"reps must not be negative, got {list(reps)}")
    sizes, counts = match_ranks(x.shape, reps)
    return TensorType(x.dtype, tuple(n * count for n, count in zip(sizes, counts, strict=True)))


TILE = KernelSpec(
    "Tile", ("x",), _infer_tile, attributes={"reps": attributes.integers()}, linear=("x",)
)


def _infer_repeat(x: TensorType, *, repeats: int, axis: int) -> TensorType:
    size = x.shape[axis] * repeats
    return TensorType(x.dtype, (*x.shape[:axis], size, *x.shape[axis + 1 :]))


REPEAT = KernelSpec(
    "Repeat",
    ("x",),
    _infer_repeat,
    attributes={"repeats": attributes.integer(at_least=0), "axis": attributes.axis("x", 0)},
    linear=("x",),
    leading=("axis",),
)

REVERSE = KernelSpec(
    "Reverse",
    ("x",),
    inference.same,
    attributes={"dims": attributes.axes("x", None)},
    linear=("x",),
    leading=("dims",),
)


def _infer_mirror_pad(x: TensorType, *, paddings: Pairs, mode: str) -> TensorType:
    for axis, (pair, size) in enumerate(zip(paddings, x.shape, strict=True)):
        most = size - 1 if mode == "reflect" else size
        if max(pair) > most and any(pair):
            raise ShapeError(
                f"padding {list(pair)} is too large for axis {axis} of length {size}: mode "
                f"{mode!r} allows at most {max(most, 0)}"
            )
    sizes = (low + n + high for (low, high), n in zip(paddings, x.shape, strict=True))
    return TensorType(x.dtype, tuple(sizes))


MIRROR_PAD = KernelSpec(
    "MirrorPad",
    ("x",),
    _infer_mirror_pad,
    attributes={
        "paddings": Attribute(
            read_paddings, form="tuple of one pair (before, after) of ints >= 0 per axis of x"
        ),
        "mode": attributes.choice("reflect", "symmetric"),
    },
    linear=("x",),
)


@chained
def tile(x: TensorLike, repetitions: SupportsIndex | Sequence[SupportsIndex], /) -> Tensor:
    """Return ``x`` repeated as a whole along each axis.

    Args:
        x: a tensor of any dtype.
        repetitions: number of copies along each axis, an int or a sequence. If it is shorter
            than the rank, it applies to the last axes; if longer, ``x`` gets new axes in front.

    Returns:
        A tensor whose axes have the sizes ``n * repetitions``.

    Raises:
        ShapeError: a number is negative.

    Source: TensorFlow's Tile; NumPy's tile.

    Examples:
        >>> tp.tile([1, 2], 3)
        Tensor([1, 2, 1, 2, 1, 2], dtype=int32, device='cpu')
        >>> tp.tile([1, 2], (2, 2))
        Tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]], dtype=int32, device='cpu')

    """
    return dispatch(TILE, x, reps=repetitions)


@chained
def flip(x: TensorLike, /, axis: Axis | None = None) -> Tensor:
    """Return ``x``, of any dtype, reversed along ``axis``: one axis, several, or all (None).

    Raises:
        ShapeError: an axis is out of range or named twice.

    Source: the array API standard; TensorFlow's Reverse.

    Examples:
        >>> x = tp.asarray([[1, 2, 3], [4, 5, 6]])
        >>> tp.flip(x, axis=1)
        Tensor([[3, 2, 1],
                [6, 5, 4]], dtype=int32, device='cpu')
        >>> tp.flip(x)
        Tensor([[6, 5, 4],
                [3, 2, 1]], dtype=int32, device='cpu')

    """
    axes = None if axis is None else shapes.as_ints(axis)
    return dispatch(REVERSE, x, dims=axes)


@chained
def mirror_pad(
    x: TensorLike, paddings: Sequence[Sequence[int]], mode: Literal["reflect", "symmetric"]
) -> Tensor:
    """Return ``x`` padded along each axis with its own elements in reverse order.

    Args:
        x: a tensor of any dtype.
        paddings: one (before, after) pair per axis.
        mode: "reflect" omits the outermost element, "symmetric" repeats it.

    Raises:
        ShapeError: a padding exceeds n - 1, or n if symmetric, for an axis of length n.
        ArgumentError: an unknown mode.

    Source: TensorFlow's MirrorPad.

    Examples:
        >>> tp.mirror_pad([1, 2, 3], [(2, 1)], "reflect")
        Tensor([3, 2, 1, 2, 3, 2], dtype=int32, device='cpu')
        >>> tp.mirror_pad([1, 2, 3], [(2, 1)], "symmetric")
        Tensor([2, 1, 1, 2, 3, 3], dtype=int32, device='cpu')
        >>> tp.mirror_pad([[1, 2, 3]], [(0, 0), (2, 0)], mode="reflect")
        Tensor([[3, 2, 1, 2, 3]], dtype=int32, device='cpu')

    """
    return dispatch(MIRROR_PAD, x, paddings=paddings, mode=mode)


@chained
def roll(
    x: TensorLike, /, shift: SupportsIndex | Sequence[SupportsIndex], axis: Axis | None = None
) -> Tensor:
    """Return ``x`` with its elements shifted cyclically.

    Args:
        x: a tensor of any dtype.
        shift: number of places; negative shifts move elements to the front. One number, or
            one per axis.
        axis: one axis or several; an axis may be repeated. None shifts the elements in
            row-major order.

    Raises:
        ShapeError: an axis is out of range.
        ArgumentError: ``shift`` and ``axis`` differ in length.

    Source: the array API standard.

    Examples:
        >>> tp.roll([1, 2, 3, 4], 1)
        Tensor([4, 1, 2, 3], dtype=int32, device='cpu')
        >>> x = tp.asarray([[1, 2, 3], [4, 5, 6]])
        >>> tp.roll(x, -1, axis=1)
        Tensor([[2, 3, 1],
                [5, 6, 4]], dtype=int32, device='cpu')
        >>> tp.roll(x, (1, 1), axis=(0, 1))
        Tensor([[6, 4, 5],
                [3, 1, 2]], dtype=int32, device='cpu')
        >>> tp.roll(x, 1)
        Tensor([[6, 1, 2],
                [3, 4, 5]], dtype=int32, device='cpu')

    """
    tensor = as_tensor(x, what="roll: x")
    caller = f"roll of {tensor.type}"
    shifts = shapes.as_ints(shift, f"{caller}: shift")
    if axis is None:
        if len(shifts) != 1:
            raise ArgumentError(
                f"{caller}: axis must name {len(shifts)} axes, one per shift, got None"
            )
        return reshape(_roll_along(reshape(tensor, (-1,)), shifts[0], 0), tensor.shape)
    numbers = shapes.as_ints(axis, f"{caller}: axis")
    axes = [shapes.normalize_axis(number, tensor.ndim, f"{caller}: axis") for number in numbers]
    if 1 not in (len(shifts), len(axes)) and len(shifts) != len(axes):
        raise ArgumentError(f"{caller}: shift has {len(shifts)} entries, but axis has {len(axes)}")
    count = max(len(shifts), len(axes)) if shifts and axes else 0
    totals: dict[int, int] = {}
    for at in range(count):
        along = axes[at % len(axes)]
        totals[along] = totals.get(along, 0) + shifts[at % len(shifts)]
    for key, by in totals.items():
        tensor = _roll_along(tensor, by, key)
    return tensor


def _roll_along(x: Tensor, by: int, axis: int) -> Tensor:
    length = x.shape[axis]
    first = -by % length if length else 0  # the element that comes to the front
    if not first:
        return identity(x)
    begin = (0,) * axis + (first,)
    size = (-1,) * axis + (first,)
    return concat([slice_(x, begin), slice_(x, (0,), size)], axis=axis)


@chained
def repeat(x: TensorLike, repeats: ArrayLike, /, axis: int | None = None) -> Tensor:
    """Return ``x`` with each element repeated.

    Args:
        x: a tensor of any dtype.
        repeats: an integer, or a tensor or list of one integer per element along ``axis``.
            The host reads these, and waits for the device, because the result's size depends
            on them.
        axis: an axis. None repeats the elements in row-major order; the result has rank 1.

    Raises:
        ArgumentError: a number is negative.
        ShapeError: ``repeats`` and ``axis`` differ in length, or the axis is out of range.
        DTypeError: ``repeats`` are not integers.

    Source: the array API standard.

    Examples:
        >>> tp.repeat([1, 2, 3], 2)
        Tensor([1, 1, 2, 2, 3, 3], dtype=int32, device='cpu')
        >>> tp.repeat(["a", "b", "c"], [3, 0, 1])
        Tensor(['a', 'a', 'a', 'c'], dtype=string, device='cpu')
        >>> tp.repeat([[1, 2], [3, 4]], 2, axis=1)
        Tensor([[1, 1, 2, 2],
                [3, 3, 4, 4]], dtype=int32, device='cpu')

    """
    tensor = as_tensor(x, what="repeat: x")
    if axis is None:
        tensor = reshape(tensor, (-1,))
    at = shapes.normalize_axis(0 if axis is None else axis, tensor.ndim, "repeat: axis")
    length = tensor.shape[at]
    counts = _count_repetitions(repeats, length, f"repeat of {tensor.type}")
    if isinstance(counts, int):
        return dispatch(REPEAT, tensor, repeats=counts, axis=at)
    result = sum(counts.tolist())
    with host_values.room_for((result,), f"repeat of {tensor.type}", "indices", dt.int32):
        positions = np.repeat(np.arange(length, dtype=np.int32), counts)
    return gather(tensor, positions, axis=at)


def _count_repetitions(repeats: Any, length: int, caller: str) -> int | np.ndarray[Any, Any]:
    """Return one number of repetitions, or one per element."""
    if hasattr(repeats, "dtype") or isinstance(repeats, list | tuple):
        tensor = as_tensor(repeats, what=f"{caller}: repeats")
        if tensor.dtype not in dt.INTEGER:
            raise DTypeError(f"{caller}: repeats must be integers, got {tensor.type}")
        if tensor.shape not in ((), (1,), (length,)):
            raise ShapeError(
                f"{caller}: repeats must have 1 or {length} elements, got {tensor.type}"
            )
        counts = tensor.numpy()
        if counts.size and counts.min() < 0:
            raise ArgumentError(f"{caller}: repeats must not be negative, got {counts.min()}")
        return counts.item() if counts.size == 1 else counts.astype(np.int64)
    count = shapes.index(repeats, f"{caller}: repeats")
    if count < 0:
        raise ArgumentError(f"{caller}: repeats must not be negative, got {count}")
    return count


@chained
def moveaxis(x: TensorLike, source: Axis, destination: Axis, /) -> Tensor:
    """Return ``x``, of any dtype, with its axes ``source`` at the places ``destination``.

    Both are ints or sequences of equal length. The other axes keep their order.

    Raises:
        ShapeError: an axis is out of range or named twice, or the lengths differ.

    Source: the array API standard.

    Examples:
        >>> images = tp.zeros((8, 3, 32, 64))
        >>> tp.moveaxis(images, 1, -1).shape
        (8, 32, 64, 3)
        >>> tp.moveaxis(images, (0, 1), (-1, 0)).shape
        (3, 32, 64, 8)

    """
    tensor = as_tensor(x, what="moveaxis: x")
    rank, caller = tensor.ndim, f"moveaxis of {tensor.type}"
    picked = shapes.distinct_axes(source, rank, f"{caller}: source")
    targets = shapes.distinct_axes(destination, rank, f"{caller}: destination")
    if len(picked) != len(targets):
        raise ShapeError(
            f"{caller}: source has {len(picked)} axes, but destination has {len(targets)}"
        )
    perm = [axis for axis in range(rank) if axis not in picked]
    for target, axis in sorted(zip(targets, picked, strict=True)):
        perm.insert(target, axis)
    return permute_dims(tensor, perm)
