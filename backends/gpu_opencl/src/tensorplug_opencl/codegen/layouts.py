"""Layouts as plain tuples: index maps from a flat index to an element's offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import KernelRefusedError, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence


Strides = tuple[int, ...]

NARROW_LIMIT: Final = 2**31 - 1  # of 32-bit indices, which are several times faster
LAYOUT_BYTES: Final = 768  # OpenCL guarantees 1024 bytes of arguments in the embedded profile


class Layout(NamedTuple):
    """Sizes, and for each array the distance in elements along each of these axes."""

    sizes: Shape
    strides: tuple[Strides, ...]

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.sizes)


def row_major(shape: Shape) -> Strides:
    """Return the strides of a dense array of ``shape``."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def permuted_strides(shape: Shape, axes: Sequence[int]) -> Strides:
    """Return the strides of a dense array of ``shape`` along these of its axes, in their order."""
    own = row_major(shape)
    return tuple(own[axis] for axis in axes)


def broadcast_strides(shape: Shape, target: Shape) -> Strides:
    """Return strides that walk a dense array of ``shape`` as if it had shape ``target``."""
    lead = len(target) - len(shape)
    own = (
        0 if length == 1 else stride
        for length, stride in zip(shape, row_major(shape), strict=True)
    )
    return ((0,) * lead) + tuple(own)


def collapse(sizes: Shape, strides: Sequence[Strides]) -> Layout:
    """Return the same index map with as few axes as possible.

    Axes of length 1 are dropped; neighbours that every array walks as one axis are merged.
    """
    kept_sizes: list[int] = []
    kept: list[list[int]] = []  # per axis, one stride for each array
    for axis, length in enumerate(sizes):
        if length == 1:
            continue
        step = [stride[axis] for stride in strides]
        if kept and all(
            outer == inner * length for outer, inner in zip(kept[-1], step, strict=True)
        ):
            kept_sizes[-1] *= length
            kept[-1] = step
        else:
            kept_sizes.append(length)
            kept.append(step)
    turned = tuple(tuple(step[array] for step in kept) for array in range(len(strides)))
    return Layout(tuple(kept_sizes), turned)


def index_dtype(*reaches: int) -> np.dtype[Any]:
    """Return the unsigned integer type in which all indices up to ``reaches`` can be formed."""
    return np.dtype(np.uint32 if max(reaches, default=0) <= NARROW_LIMIT else np.uint64)


def pack(layouts: Sequence[Layout], dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """Return the bytes of the struct that ``templates.declare_layout`` declares; None if empty.

    Negative strides wrap around, and so do sums with them.

    Raises:
        KernelRefusedError: when there are too many axes for a kernel argument.

    """
    numbers: list[int] = []
    for layout in layouts:
        numbers.extend(layout.sizes)
        for strides in layout.strides:
            numbers.extend(strides)
    result = np.array(numbers, dtype=np.int64).astype(dtype)
    if result.nbytes > LAYOUT_BYTES:
        axes = sum(layout.rank for layout in layouts)
        raise KernelRefusedError(f"{axes} axes that cannot be merged are too many")
    return result if numbers else None
