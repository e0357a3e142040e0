"""Moving elements: views wherever NumPy can make one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.ops import movement as ops
from tensorplug.tables import KernelTable
from tensorplug_cpu.arrays import filling
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from tensorplug.dtypes import Scalar
    from tensorplug.shapes import Shape
    from tensorplug.spec import TensorType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()


@kernels.register(ops.IDENTITY)
def identity(x: Array) -> Array:
    """Share the data."""
    return x


@kernels.prepare(ops.RESHAPE)
def reshape(x: TensorType, *, shape: Shape) -> Call:
    """View under another shape; a copy only where the strides leave no other way."""
    return quietly(lambda x: x.reshape(shape))


@kernels.prepare(ops.EXPAND_DIMS)
def expand_dims(input: TensorType, *, dim: int) -> Call:
    """View with a new axis."""
    key: Any = (*(slice(None) for _ in range(dim)), None, ...)
    return lambda x: x[key]


@kernels.prepare(ops.TRANSPOSE)
def transpose(x: TensorType, *, perm: tuple[int, ...]) -> Call:
    """View with the axes in another order."""
    return lambda x: x.transpose(perm)


@kernels.prepare(ops.BROADCAST_TO)
def broadcast_to(x: TensorType, *, shape: Shape) -> Call:
    """View with strides of 0 along the repeated axes."""
    return lambda x: np.broadcast_to(x, shape)


@kernels.prepare(ops.SLICE)
def slice_(x: TensorType, *, begin: tuple[int, ...], size: tuple[int, ...]) -> Call:
    """View of a block."""
    block = tuple(slice(at, at + count) for at, count in zip(begin, size, strict=True))
    key: Any = (..., *block)  # the ellipsis keeps an array of rank 0 an array
    return lambda x: x[key]


@kernels.prepare(ops.PAD_V2)
def pad_v2(
    x: TensorType,
    *,
    paddings: tuple[tuple[int, int], ...],
    constant_value: Scalar | str,
    out: TensorType,
) -> Call:
    """Fill, then write the elements into the middle."""
    inside = zip(paddings, x.shape, strict=True)
    middle: Any = (..., *(slice(before, before + length) for (before, _), length in inside))
    filled = filling(out, constant_value)

    def run(x: Array) -> Array:
        result = filled()
        result[middle] = x
        return result

    return quietly(run)


@kernels.prepare(ops.CONCAT)
def concat(xs: list[TensorType], *, axis: int) -> Call:
    """Join along an axis."""
    return quietly(lambda xs: np.concatenate(xs, axis=axis))


@kernels.prepare(ops.PACK)
def pack(xs: list[TensorType], *, axis: int) -> Call:
    """Join views with a new axis along it."""
    key: Any = (*(slice(None) for _ in range(axis)), None, ...)
    return quietly(lambda xs: np.concatenate([x[key] for x in xs], axis=axis))
