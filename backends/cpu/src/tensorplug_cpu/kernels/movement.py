"""Moving elements: views wherever NumPy can make one."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import Scalar, Shape, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import constant, uniform
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.execution.outputs import output_allocator
from tensorplug_cpu.execution.parallel import is_large
from tensorplug_cpu.jit.families.interleaving import find_interleaver
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.register(specs.IDENTITY)
def identity(x: Array) -> Array:
    """Share the data."""
    return x


@kernels.prepare(specs.RESHAPE)
def reshape(x: TensorType, *, shape: Shape) -> Call:
    """View with another shape; a copy only if the strides require it."""
    interleave = None if x.dtype is dt.string else find_interleaver(x.shape, x.dtype.numpy)

    @without_warnings
    def copied(x: Array) -> Array:
        interleaved = None if interleave is None else interleave(x)
        return (x if interleaved is None else interleaved).reshape(shape)

    # A view raises nothing.
    return lambda x: x.reshape(shape) if x.flags.c_contiguous else copied(x)


@kernels.prepare(specs.EXPAND_DIMS, because="faster")
def expand_dims(input: TensorType, *, dim: int) -> Call:
    """View with a new axis."""
    key: Any = (*(slice(None) for _ in range(dim)), None, ...)
    return lambda x: x[key]


@kernels.prepare(specs.TRANSPOSE)
def transpose(x: TensorType, *, perm: tuple[int, ...]) -> Call:
    """View with the axes in another order."""
    return lambda x: x.transpose(perm)


@kernels.prepare(specs.BROADCAST_TO)
def broadcast_to(x: TensorType, *, shape: Shape) -> Call:
    """View with strides of 0 along the repeated axes."""
    lead = len(shape) - x.rank
    stretched = {lead + axis for axis, size in enumerate(x.shape) if size != shape[lead + axis]}
    strides = _strides(x.shape, x.dtype.itemsize)
    spread = tuple(
        0 if axis < lead or axis in stretched else strides[axis - lead]
        for axis in range(len(shape))
    )

    def run(x: Array) -> Array:
        if not x.flags.c_contiguous or not x.size:
            return np.broadcast_to(x, shape)
        view: Array = np.ndarray(shape, x.dtype, x, 0, spread)
        view.flags.writeable = False
        return view

    # NumPy's broadcast_to takes ten times as long, but only it can share the text of strings.
    return run if x.dtype.itemsize else lambda x: np.broadcast_to(x, shape)


def _strides(shape: Shape, itemsize: int) -> tuple[int, ...]:
    """Return the bytes from one element to the next along each axis of a dense array."""
    return tuple(itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))


@kernels.prepare(specs.SLICE)
def slice_(x: TensorType, *, begin: tuple[int, ...], size: tuple[int, ...]) -> Call:
    """View of a block."""
    block = tuple(slice(at, at + count) for at, count in zip(begin, size, strict=True))
    key: Any = (..., *block)  # the ellipsis keeps an array of rank 0 an array
    return lambda x: x[key]


@kernels.prepare(specs.PAD_V2)
def pad_v2(
    x: TensorType,
    *,
    paddings: tuple[tuple[int, int], ...],
    constant_value: Scalar | str,
    out: TensorType,
) -> Call:
    """Write the elements into the middle of a filled array; if it is large, fill only the rim."""
    inside = [
        slice(before, before + length)
        for (before, _), length in zip(paddings, x.shape, strict=True)
    ]
    middle: Any = (..., *inside)
    if is_large(out):
        make, one = output_allocator(out), constant(constant_value, out.dtype)
        rim = _rim(inside, out.shape)
    else:
        make, one, rim = uniform(out, constant_value), None, []

    def run(x: Array) -> Array:
        result = make()
        for side in rim:
            result[side] = one
        result[middle] = x
        return result

    return without_warnings(run)


def _rim(inside: list[slice], shape: Shape) -> list[Any]:
    """Return the parts of an array around ``inside``, none of which overlap."""
    sides: list[Any] = []
    for axis, (part, size) in enumerate(zip(inside, shape, strict=True)):
        around = (slice(0, part.start), slice(part.stop, size))
        sides += [(*inside[:axis], side) for side in around if side.start < side.stop]
    return sides


@kernels.prepare(specs.CONCAT)
def concat(xs: list[TensorType], *, axis: int, out: TensorType) -> Call:
    """Join along an axis."""
    if not is_large(out):
        return without_warnings(lambda xs: np.concatenate(xs, axis=axis))
    allocate = output_allocator(out)
    return without_warnings(lambda xs: np.concatenate(xs, axis=axis, out=allocate()))


@kernels.prepare(specs.PACK, because="faster")
def pack(xs: list[TensorType], *, axis: int, out: TensorType) -> Call:
    """Join numbers, such as the starts of a window, at once; views with a new axis otherwise."""
    if out.rank == 1:
        dtype = out.dtype.numpy
        return lambda xs: np.array(xs, dtype)
    join = concat(xs, axis=axis, out=out)
    key: Any = (*(slice(None) for _ in range(axis)), None, ...)
    return lambda xs: join([x[key] for x in xs])
