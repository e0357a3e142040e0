"""Numbers of blocks of a tensor: as many blocks along an axis as there are numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.movement import broadcast_to, reshape
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor


def padded(shape: Shape, rank: int) -> Shape:
    """Return ``shape`` with axes of length 1 in front, up to ``rank``."""
    return (1,) * (rank - len(shape)) + shape


def spread(numbers: Tensor, shape: Shape) -> Tensor:
    """Repeat the numbers of blocks until they broadcast to ``shape``.

    Each size of ``numbers``, from the last axis on, divides that of ``shape``. Axes of length 1
    are left to broadcasting.
    """
    sizes = padded(numbers.shape, len(shape))
    if all(size in (1, n) for size, n in zip(sizes, shape, strict=True)):
        return numbers
    cells: list[int] = []  # an axis of blocks becomes two: the blocks, and the places in one
    repeated: list[int] = []
    joined: list[int] = []
    for size, n in zip(sizes, shape, strict=True):
        inside = 1 if size in (1, n) else n // size
        cells += (size,) if inside == 1 else (size, 1)
        repeated += (size,) if inside == 1 else (size, inside)
        joined.append(size * inside)
    return reshape(broadcast_to(reshape(numbers, cells), repeated), joined)


def centred(x: Tensor, zero_point: Tensor | None, dtype: DType) -> Tensor:
    """Return quantized numbers less the zero points that belong to them, in ``dtype``."""
    wide = astype(x, dtype)
    return wide if zero_point is None else wide - astype(spread(zero_point, x.shape), dtype)


def total(x: Tensor, sizes: Shape) -> Tensor:
    """Return the sums of blocks of ``x``, of shape ``sizes``: the transpose of ``spread``."""
    split: list[int] = []
    summed: list[int] = []
    for size, n in zip(padded(sizes, x.ndim), x.shape, strict=True):
        split.append(size)
        if size != n:
            summed.append(len(split))
            split.append(n // size if size else 0)
    return reshape(sum_(reshape(x, split), axis=summed) if summed else x, sizes)
