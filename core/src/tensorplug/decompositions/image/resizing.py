"""Resizing by gathers along each axis in turn; the transposes are scatters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.creation import asarray
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.image import resizing as ops
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.indexing.writing import scatter_nd
from tensorplug.ops.movement import permute_dims, reshape

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)

_AXES = (1, 2)  # height and width of [batch, height, width, channels]


@decompositions.of(ops.RESIZE_BILINEAR)
def resize_bilinear(images: Tensor, *, size: ops.Pair, attributes: dict[str, Any]) -> Tensor:
    result = images
    for axis, new in zip(_AXES, size, strict=True):
        taps = ops.bilinear_taps(images.shape[axis], new, **_grid(attributes))
        if taps is not None:
            lower = gather(result, asarray(taps.lower), axis=axis)
            upper = gather(result, asarray(taps.upper), axis=axis)
            result = lower + (upper - lower) * _along(taps.fraction, axis, result)
    return astype(result, images.dtype)


@decompositions.of(ops.RESIZE_BILINEAR_GRAD)
def resize_bilinear_grad(images: Tensor, dy: Tensor, *, attributes: dict[str, Any]) -> Tensor:
    result = dy
    for axis in _AXES:
        old = images.shape[axis]
        taps = ops.bilinear_taps(old, dy.shape[axis], **_grid(attributes))
        if taps is not None:
            target, source, share = taps.shares()
            terms = gather(result, asarray(source), axis=axis) * _along(share, axis, result)
            result = _put(terms, target, old, axis)
    return astype(result, dy.dtype)


@decompositions.of(ops.RESIZE_NEAREST_NEIGHBOR)
def resize_nearest_neighbor(
    images: Tensor, *, size: ops.Pair, attributes: dict[str, Any]
) -> Tensor:
    result = images
    for axis, new in zip(_AXES, size, strict=True):
        shown = ops.nearest_pixels(images.shape[axis], new, **_grid(attributes))
        result = gather(result, asarray(shown), axis=axis)
    return result


@decompositions.of(ops.RESIZE_NEAREST_NEIGHBOR_GRAD)
def resize_nearest_neighbor_grad(
    images: Tensor, dy: Tensor, *, attributes: dict[str, Any]
) -> Tensor:
    result = dy
    for axis in _AXES:
        old = images.shape[axis]
        shown = ops.nearest_pixels(old, dy.shape[axis], **_grid(attributes))
        result = _put(result, shown, old, axis)
    return astype(result, dy.dtype)


def _grid(attributes: dict[str, Any]) -> dict[str, bool]:
    return {name: attributes[name] for name in ("align_corners", "half_pixel_centers")}


def _along(weights: Any, axis: int, like: Tensor) -> Tensor:
    shape = [1] * like.ndim
    shape[axis] = -1
    return reshape(asarray(weights.astype(like.dtype.numpy)), shape)


def _put(x: Tensor, at: Any, size: int, axis: int) -> Tensor:
    """Return zeros of ``size`` along ``axis``, with slice i of ``x`` added at ``at[i]``."""
    order = (axis, *(index for index in range(x.ndim) if index != axis))
    moved = permute_dims(x, order)
    added = scatter_nd(asarray(at.reshape(-1, 1)), moved, (size, *moved.shape[1:]))
    return permute_dims(added, [order.index(index) for index in range(x.ndim)])
