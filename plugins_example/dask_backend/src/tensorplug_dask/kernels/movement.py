"""Moving elements: Dask's own functions, which mostly rename blocks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np

from tensorplug.plugin import KernelTable, Scalar, TensorType, specs
from tensorplug_dask.blocks import chunks_of, elementwise, full
from tensorplug_dask.native import native

if TYPE_CHECKING:
    from tensorplug_dask.lazy import Lazy

    Array = np.ndarray[Any, Any]
    Axes = tuple[int, ...]
    Pairs = tuple[tuple[int, int], ...]

kernels = KernelTable()


@kernels.register(specs.IDENTITY)
def identity(x: Lazy) -> Lazy:
    """Share the buffer."""
    return x


def _reshaped(x: da.Array, *, shape: Axes, limit: int) -> da.Array:
    """Dask merges or splits axes, but not both at once: by way of one axis it can."""
    try:
        return da.reshape(x, shape, limit=limit)
    except NotImplementedError:
        return da.reshape(da.reshape(x, (x.size,), limit=limit), shape, limit=limit)


@native(kernels, specs.RESHAPE, chunked=_reshaped)
def reshape(x: Array, *, shape: Axes) -> Array:
    return x.reshape(shape)


@native(kernels, specs.TRANSPOSE, chunked=lambda x, *, perm: da.transpose(x, perm))
def transpose(x: Array, *, perm: Axes) -> Array:
    return x.transpose(perm)


def _broadcast(x: da.Array, *, shape: Axes, limit: int) -> da.Array:
    ahead = len(shape) - x.ndim
    kept = [axis >= ahead and x.shape[axis - ahead] == size for axis, size in enumerate(shape)]
    wanted = tuple(x.chunks[axis - ahead] if same else "auto" for axis, same in enumerate(kept))
    chunks = chunks_of(shape, x.dtype, limit, wanted)
    return da.broadcast_to(x, shape, chunks=chunks)


@native(kernels, specs.BROADCAST_TO, chunked=_broadcast)
def broadcast_to(x: Array, *, shape: Axes) -> Array:
    return np.broadcast_to(x, shape)


def _key(begin: Axes, size: Axes) -> tuple[slice, ...]:
    return tuple(slice(at, at + count) for at, count in zip(begin, size, strict=True))


def _owned(x: Array, *, whole: int) -> Array:
    """A view keeps the block alive from which it was cut, which may be much larger."""
    return x.copy() if x.nbytes * 2 < whole else x


def _part(x: da.Array, *, begin: Axes, size: Axes, out: TensorType, limit: int) -> da.Array:
    part = x[_key(begin, size)]
    largest = int(np.prod([max(chunk) for chunk in x.chunks])) * x.dtype.itemsize
    return elementwise(partial(_owned, whole=largest), [part], out, limit)


@native(kernels, specs.SLICE, chunked=_part)
def slice_(x: Array, *, begin: Axes, size: Axes) -> Array:
    """Return a view; without the ellipsis, NumPy returns a scalar for rank 0."""
    key: Any = (..., *_key(begin, size))
    return _owned(x[key], whole=x.nbytes)


def _padded(
    x: da.Array, *, paddings: Pairs, constant_value: Scalar, out: TensorType, limit: int
) -> da.Array:
    value = np.array(constant_value, x.dtype)
    if not x.size:  # nothing is there but what is put around it
        return full(value, out, limit)
    return da.pad(x, paddings, mode="constant", constant_values=value)


@native(kernels, specs.PAD_V2, chunked=_padded)
def pad(x: Array, *, paddings: Pairs, constant_value: Scalar, out: TensorType) -> Array:
    """Fill the result, then write the elements into its middle."""
    result = np.full(out.shape, constant_value, x.dtype)
    pairs = zip(paddings, x.shape, strict=True)
    inside: Any = (..., *(slice(before, before + size) for (before, _), size in pairs))
    result[inside] = x
    return result


@native(kernels, specs.CONCAT, chunked=lambda xs, *, axis: da.concatenate(xs, axis=axis))
def concat(xs: list[Array], *, axis: int) -> Array:
    return np.concatenate(xs, axis=axis)
