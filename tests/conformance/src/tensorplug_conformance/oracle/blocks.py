"""References for moving blocks: where each element goes, index by index."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.oracle.places import everywhere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.case import Array


def _blank(shape: Sequence[int], like: Array) -> Array:
    return np.zeros(tuple(shape), dtype=like.dtype)


def batch_to_space_nd(
    x: Array, *, block_shape: int | Sequence[int], crops: Sequence[Sequence[int]]
) -> Array:
    """Batch ``cell * n + b`` goes to image b, at ``cell`` (by rows) in its blocks."""
    block = [block_shape] if isinstance(block_shape, int) else list(block_shape)
    m, batch = len(block), x.shape[0] // prod(block)
    sizes = [
        n * size - sum(crop) for n, size, crop in zip(x.shape[1:], block, crops, strict=False)
    ]
    out = _blank((batch, *sizes, *x.shape[m + 1 :]), x)
    at = everywhere(x.shape[: m + 1])  # later axes move along
    image = at[0] % max(batch, 1)
    number = at[0] // max(batch, 1)
    # By hand: ``numpy.unravel_index`` of NumPy 2.4 errs for some arrays of more than 8192.
    cell = [number // prod(block[k + 1 :]) % size for k, size in enumerate(block)]
    place = np.broadcast_arrays(
        image,
        *(
            i * size + c - crop[0]
            for i, size, c, crop in zip(at[1:], block, cell, crops, strict=False)
        ),
    )
    inside = np.ones(x.shape[: m + 1], bool)
    for i, n in zip(place[1:], sizes, strict=True):
        inside &= (i >= 0) & (i < n)
    out[tuple(i[inside] for i in place)] = x[inside]
    return out


def space_to_batch_nd(
    x: Array, *, block_shape: int | Sequence[int], paddings: Sequence[Sequence[int]]
) -> Array:
    """Cell c (by rows) of the blocks of image b goes to batch ``c * n + b``."""
    block = [block_shape] if isinstance(block_shape, int) else list(block_shape)
    m, batch = len(block), x.shape[0]
    sizes = [
        (n + sum(pair)) // size
        for n, size, pair in zip(x.shape[1:], block, paddings, strict=False)
    ]
    out = _blank((batch * prod(block), *sizes, *x.shape[m + 1 :]), x)
    at = everywhere(x.shape[: m + 1])
    inside = [i + pair[0] for i, pair in zip(at[1:], paddings, strict=False)]
    within = enumerate(zip(inside, block, strict=True))
    cell = sum(i % size * prod(block[k + 1 :]) for k, (i, size) in within)
    place = [i // size for i, size in zip(inside, block, strict=True)]
    out[(cell * batch + at[0], *place)] = x
    return out


def depth_to_space(x: Array, *, block_size: int, data_format: str = "NHWC") -> Array:
    """Channel ``(i * b + j) * c + k`` goes to row i and column j of its block, channel k."""
    source = x if data_format == "NHWC" else x.transpose(0, 2, 3, 1)
    n, height, width, channels = source.shape
    b, fewer = block_size, channels // block_size**2
    out = _blank((n, height * b, width * b, fewer), x)
    image, row, column, channel = everywhere(source.shape)
    cell, k = np.divmod(channel, max(fewer, 1))
    i, j = np.divmod(cell, b)
    out[image, row * b + i, column * b + j, k] = source
    return out if data_format == "NHWC" else out.transpose(0, 3, 1, 2)


def space_to_depth(x: Array, *, block_size: int, data_format: str = "NHWC") -> Array:
    """The pixel at row i and column j of a block goes to channels ``(i * b + j) * c + k``."""
    source = x if data_format == "NHWC" else x.transpose(0, 2, 3, 1)
    n, height, width, channels = source.shape
    b = block_size
    out = _blank((n, height // b, width // b, channels * b * b), x)
    image, row, column, k = everywhere(source.shape)
    channel = ((row % b) * b + column % b) * channels + k
    out[image, row // b, column // b, channel] = source
    return out if data_format == "NHWC" else out.transpose(0, 3, 1, 2)
