"""Pooling: what windows, regions or whole images hold, in one number by channel."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import UnsupportedError
from tensorplug_onnx.operators.windows import Windows, by_axis, split_padding, windows
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import as_host

if TYPE_CHECKING:
    from tensorplug_onnx.graph import Node

Ints = tuple[int, ...]

_WHOLE: Final = [(0, 0), (0, 0)]


def _pooled(
    x: Any, placed: Windows, kind: Literal["avg", "max"], pairs: list[tuple[int, int]]
) -> Any:
    """Return the largest elements or averages; ``pairs`` do not count."""
    if not 3 <= x.ndim <= 5:
        raise UnsupportedError(f"pooling over {x.ndim - 2} axes: there is that over one to three")
    y = tp.nn.pool(
        tp.moveaxis(x, 1, -1),
        placed.taps,
        kind,
        [(0, 0), *pairs, (0, 0)],
        dilations=placed.dilations,
        strides=placed.strides,
    )
    return tp.moveaxis(y, -1, 1)


@rule("MaxPool")
def largest(
    x: Any,
    *,
    node: Node,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints | None = None,
    kernel_shape: Ints,
    pads: Ints | None = None,
    storage_order: int = 0,
    strides: Ints | None = None,
) -> Any:
    placed = windows(
        x.shape[2:],
        kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        dilations=dilations,
        pads=pads,
        strides=strides,
    )
    y = _pooled(x, placed, "max", placed.pairs())
    if len(node.outputs) < 2 or not node.outputs[1]:
        return y
    return y, _places_of_largest(x, y, placed, storage_order)


def _places_of_largest(x: Any, y: Any, placed: Windows, storage_order: int) -> Any:
    """Return indices into the flattened x; with storage order 1, the first axis runs fastest."""
    at, inside = placed.places()
    count, taps = at.shape
    read = tp.take(tp.reshape(x, (*x.shape[:2], -1)), at, axis=2)
    top = tp.reshape(y, (*x.shape[:2], count, 1))
    equal = tp.equal(read, top)
    if tp.isdtype(x.dtype, "real floating"):
        equal = tp.logical_or(equal, tp.isnan(read))
    first = tp.argmax(tp.astype(tp.logical_and(equal, inside), tp.int32), axis=-1)
    if storage_order:
        by_axes = np.unravel_index(at, placed.sizes)
        at = np.ravel_multi_index(by_axes, placed.sizes, order="F")
    chosen = tp.take(at.astype(np.int64).ravel(), first + np.arange(count, dtype=np.int32) * taps)
    images = np.arange(prod(x.shape[:2]), dtype=np.int64).reshape(*x.shape[:2], 1)
    return tp.reshape(chosen + images * prod(placed.sizes), y.shape)


@rule("AveragePool")
def average(
    x: Any,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Ints | None = None,
    kernel_shape: Ints,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    placed = windows(
        x.shape[2:],
        kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        dilations=dilations,
        pads=pads,
        strides=strides,
    )
    if not count_include_pad:
        return _pooled(x, placed, "avg", placed.pairs())
    padded = tp.pad(x, _WHOLE + placed.pairs(beyond=False))
    return _pooled(padded, placed, "avg", [(0, more) for more in placed.beyond])


@rule("LpPool")
def norm(
    x: Any,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints | None = None,
    kernel_shape: Ints,
    p: float = 2,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    placed = windows(
        x.shape[2:],
        kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        dilations=dilations,
        pads=pads,
        strides=strides,
    )
    powers = tp.pad(_power(tp.abs(x), p), _WHOLE + placed.pairs())
    means = _pooled(powers, placed, "avg", [(0, 0)] * len(placed.taps))
    return _power(means * prod(placed.taps), 1 / p)


def _power(x: Any, p: float) -> Any:
    exact = {0.5: tp.sqrt, 1: tp.positive, 2: tp.square}
    return exact[p](x) if p in exact else tp.pow(x, p)


@rule("GlobalAveragePool")
def global_average(x: Any) -> Any:
    return tp.mean(x, axis=tuple(range(2, x.ndim)), keepdims=True)


@rule("GlobalMaxPool")
def global_largest(x: Any) -> Any:
    return tp.max(x, axis=tuple(range(2, x.ndim)), keepdims=True)


@rule("GlobalLpPool")
def global_norm(x: Any, *, p: float = 2) -> Any:
    sums = tp.sum(_power(tp.abs(x), p), axis=tuple(range(2, x.ndim)), keepdims=True)
    return _power(sums, 1 / p)


def _from_start(indices: Any, size: int) -> Any:
    """Return indices of which negative ones, which do not count from the end, are too large."""
    return tp.where(indices < 0, size, indices)


@rule("MaxUnpool", host=(2,))
def unpooled(
    x: Any,
    places: Any,
    output_shape: Any = None,
    *,
    kernel_shape: Ints,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """Indices refer to the smallest shape that gives x; a larger one is filled up with zeros."""
    rank = x.ndim - 2
    taps, steps = by_axis(kernel_shape, rank, "kernel_shape"), by_axis(strides, rank, "strides")
    before, after = split_padding(pads, rank)
    sizes = [
        (size - 1) * step - first - last + count
        for size, step, first, last, count in zip(
            x.shape[2:], steps, before, after, taps, strict=True
        )
    ]
    shape = (*x.shape[:2], *sizes)
    if places.shape != x.shape:
        raise ValueError(f"I has shape {list(places.shape)}, X {list(x.shape)}")
    zeros = tp.zeros((prod(shape),), dtype=x.dtype)
    at = _from_start(tp.reshape(places, (-1,)), zeros.size)
    flat = tp.scatter_along_axis(zeros, at, tp.reshape(x, (-1,)), axis=0)
    y = tp.reshape(flat, shape)
    if output_shape is None:
        return y
    more = [int(new) - old for new, old in zip(output_shape, shape, strict=True)]
    if min(more) < 0:
        raise ValueError(f"output_shape {output_shape.tolist()} is smaller than {list(shape)}")
    return tp.pad(y, [(0, n) for n in more])


@rule("MaxRoiPool")
def largest_of_regions(
    x: Any, rois: Any, *, pooled_shape: Ints, spatial_scale: float = 1.0
) -> Any:
    """Borders of regions are rounded, those of their bins include what they touch."""
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise ValueError(f"rois must be [regions, 5], not {list(rois.shape)}")
    by_axis(pooled_shape, 2, "pooled_shape")
    at = _from_start(tp.astype(rois[:, 0], tp.int32), x.shape[0])
    images = tp.take(x, at, axis=0)
    edges = tp.floor(rois[:, 1:] * spatial_scale + 0.5)
    y = tp.expand_dims(images, axis=2)  # [regions, channels, 1, height, width]
    rows = _bins(edges[:, 1], edges[:, 3], pooled_shape[0], x.shape[2])
    columns = _bins(edges[:, 0], edges[:, 2], pooled_shape[1], x.shape[3])
    y = tp.max(tp.where(rows[:, None, :, :, None], y, -tp.inf), axis=3)
    y = tp.max(tp.where(columns[:, None, None], tp.expand_dims(y, axis=3), -tp.inf), axis=4)
    filled = tp.logical_and(tp.any(rows, axis=2)[:, :, None], tp.any(columns, axis=2)[:, None])
    return tp.where(filled[:, None], y, 0)


def _bins(first: Any, last: Any, count: int, size: int) -> Any:
    """Return which elements of an axis belong to each bin: bool [regions, bins, elements]."""
    length = tp.maximum(last - first + 1, 1)[:, None] / count
    at = tp.arange(count, dtype=first.dtype)
    begin = tp.floor(at * length) + first[:, None]
    end = tp.ceil((at + 1) * length) + first[:, None]
    places = tp.arange(size, dtype=first.dtype)
    return tp.logical_and(places >= begin[:, :, None], places < end[:, :, None])


@rule("RoiAlign", since=16)
def aligned_regions(
    x: Any,
    rois: Any,
    batch_indices: Any,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Any:
    """Samples lie on a grid, so that rows and columns can be weighted one after the other."""
    if mode not in ("avg", "max"):
        raise ValueError(f"mode is {mode!r}")
    if rois.ndim != 2 or rois.shape[1] != 4 or batch_indices.shape != rois.shape[:1]:
        given = f"{list(rois.shape)} and {list(batch_indices.shape)}"
        raise ValueError(f"rois and batch_indices must be [regions, 4] and [regions], not {given}")
    by_axis((output_height, output_width), 2, "output_height and output_width")
    half = coordinate_transformation_mode == "half_pixel"
    edges = rois * spatial_scale - (0.5 if half else 0.0)
    images = tp.take(x, _from_start(batch_indices, x.shape[0]), axis=0)
    rows, columns = (
        _Samples(edges[:, at], edges[:, at + 2], bins, size, sampling_ratio, 0.0 if half else 1.0)
        for at, bins, size in ((1, output_height, x.shape[2]), (0, output_width, x.shape[3]))
    )
    if mode == "max":
        return _largest_of_samples(images, rows, columns)
    sums = rows.weights()[:, None] @ images @ tp.matrix_transpose(columns.weights())[:, None]
    count = tp.maximum(rows.counts * columns.counts, 1)
    return sums / count[:, None, None, None]


@rule("RoiAlign", since=10)
def aligned_regions_10(
    x: Any,
    rois: Any,
    batch_indices: Any,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Any:
    return aligned_regions(
        x,
        rois,
        batch_indices,
        coordinate_transformation_mode="output_half_pixel",
        mode=mode,
        output_height=output_height,
        output_width=output_width,
        sampling_ratio=sampling_ratio,
        spatial_scale=spatial_scale,
    )


class _Samples:
    """Where the bins of regions are sampled along an axis.

    ``counts``: the samples in each bin of a region, [regions]. ``places``: [regions, bins,
    samples], ``taken`` likewise: which of them count. ``size``: of the axis.
    """

    def __init__(
        self, first: Any, last: Any, bins: int, size: int, ratio: int, smallest: float
    ) -> None:
        length = tp.maximum(last - first, smallest) if smallest else last - first
        width = length / bins
        if ratio > 0:
            most, self.counts = ratio, tp.full(first.shape, ratio, dtype=first.dtype)
        else:  # as many as elements, in each region by itself
            self.counts = tp.maximum(tp.ceil(width), 0)
            most = int(as_host(self.counts).max(initial=1))
        bin_at = tp.arange(bins, dtype=first.dtype)[:, None]
        sample = tp.arange(most, dtype=first.dtype)
        count = tp.maximum(self.counts, 1)[:, None, None]
        begin, width = first[:, None, None], width[:, None, None]
        places = begin + bin_at * width + (sample + 0.5) * width / count
        inside = tp.logical_and(places >= -1, places <= size)
        self.size = size
        self.places = tp.clip(places, 0, size - 1)
        self.taken = tp.broadcast_to(sample < self.counts[:, None, None], places.shape)
        self.inside = tp.astype(inside, first.dtype)

    def weights(self) -> Any:
        """Return the weights of all elements of the axis: [regions, bins, size]."""
        elements = tp.arange(self.size, dtype=self.places.dtype)
        near = tp.maximum(1 - tp.abs(self.places[..., None] - elements), 0)
        taken = tp.astype(self.taken, near.dtype) * self.inside
        return tp.sum(near * taken[..., None], axis=2)

    def neighbours(self) -> tuple[Any, Any, Any]:
        """Return indices, weights and whether they count: each [regions, bins * samples * 2]."""
        low = tp.floor(self.places)
        above = self.places - low
        at = tp.stack([low, tp.minimum(low + 1, self.size - 1)], axis=-1)
        weights = tp.stack([1 - above, above], axis=-1) * self.inside[..., None]
        taken = tp.broadcast_to(self.taken[..., None], weights.shape)
        shape = (low.shape[0], 2 * low.shape[1] * low.shape[2])
        flat = tp.reshape(tp.astype(at, tp.int32), shape)
        return flat, tp.reshape(weights, shape), tp.reshape(taken, shape)


def _largest_of_samples(images: Any, rows: _Samples, columns: _Samples) -> Any:
    """Return the largest weighted neighbour, of all neighbours of all samples of a bin."""
    across, across_weights, across_taken = columns.neighbours()
    down, down_weights, down_taken = rows.neighbours()
    read = tp.take_along_axis(images, down[:, None, :, None], axis=2)
    read = tp.take_along_axis(read, across[:, None, None], axis=3)
    weighted = read * down_weights[:, None, :, None] * across_weights[:, None, None]
    taken = tp.logical_and(down_taken[:, None, :, None], across_taken[:, None, None])
    heights, widths = rows.places.shape[1], columns.places.shape[1]
    samples = 2 * rows.places.shape[2], 2 * columns.places.shape[2]
    shape = (*images.shape[:2], heights, samples[0], widths, samples[1])
    y = tp.max(tp.reshape(tp.where(taken, weighted, -tp.inf), shape), axis=(3, 5))
    some = tp.any(tp.reshape(taken, (taken.shape[0], 1, *shape[2:])), axis=(3, 5))
    return tp.where(some, y, 0)
