"""Convolutions. ONNX has the channels on axis 1, in the filters too."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import UnsupportedError
from tensorplug_onnx.operators.windows import Windows, by_axis, split_padding, windows
from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from collections.abc import Sequence

Ints = tuple[int, ...]

_FORMATS: Final = {2: "NCHW", 3: "NCDHW"}


def _spatial_rank(x: Any, w: Any, kernel_shape: Sequence[int] | None) -> int:
    """Return the number of spatial axes; the filters must fit to it and to ``kernel_shape``."""
    rank: int = x.ndim - 2
    if w.ndim != x.ndim or rank < 1:
        raise ValueError(f"X and W must have the same rank from 3 on, not {x.ndim} and {w.ndim}")
    if kernel_shape is not None and tuple(kernel_shape) != w.shape[2:]:
        raise ValueError(f"kernel_shape is {list(kernel_shape)}, W has {list(w.shape[2:])}")
    return rank


def _placed(x: Any, w: Any, kernel_shape: Sequence[int] | None, **attributes: Any) -> Windows:
    rank = _spatial_rank(x, w, kernel_shape)
    return windows(x.shape[-rank:], w.shape[2:], **attributes)


def _in_planes(x: Any, w: Any, *by_axis: Any) -> tuple[Any, ...]:
    """Return the operands of a convolution of rows as those of one of planes of height 1."""
    if x.ndim > 3:
        return x, w, *by_axis
    return tp.expand_dims(x, axis=2), tp.expand_dims(w, axis=2), *((1, *one) for one in by_axis)


def _of(functions: dict[int, Any], x: Any) -> tuple[Any, str]:
    rank = x.ndim - 2
    if rank not in functions:
        raise UnsupportedError(
            f"a convolution over {rank} axes: there are those over one to three"
        )
    return functions[rank], _FORMATS[rank]


def _with_bias(y: Any, b: Any) -> Any:
    if b is None:
        return y
    if b.shape != y.shape[1:2]:
        raise ValueError(f"B must have shape [{y.shape[1]}], has {list(b.shape)}")
    return y + tp.reshape(b, (-1, *(1,) * (y.ndim - 2)))


@rule("Conv")
def convolution(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    placed = _placed(
        x, w, kernel_shape, auto_pad=auto_pad, dilations=dilations, pads=pads, strides=strides
    )
    images, filters, steps, gaps = _in_planes(x, w, placed.strides, placed.dilations)
    function, data_format = _of({2: tp.nn.conv2d, 3: tp.nn.conv3d}, images)
    pairs = [(0, 0)] * (images.ndim - len(placed.sizes)) + placed.pairs()
    y = function(
        images,
        tp.permute_dims(filters, (*range(2, filters.ndim), 1, 0)),
        steps,
        pairs,
        data_format=data_format,
        dilations=gaps,
        groups=group,
    )
    return _with_bias(tp.squeeze(y, axis=2) if x.ndim == 3 else y, b)


def _extent(
    full: Sequence[int],
    sizes: Sequence[int],
    steps: Sequence[int],
    auto_pad: str,
    pads: Ints | None,
    output_shape: Ints | None,
) -> tuple[Ints, Ints]:
    """Return where the result of a transposed convolution begins in the full one; its sizes."""
    rank = len(full)
    if output_shape is not None:
        out: Ints = tuple(output_shape)[-rank:]
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        out = tuple(size * step for size, step in zip(sizes, steps, strict=True))
    else:
        before, after = split_padding(None if auto_pad == "VALID" else pads, rank)
        return before, tuple(n - a - b for n, a, b in zip(full, before, after, strict=True))
    if len(out) != rank or min(out) < 0:
        raise ValueError(f"output_shape must be {rank} sizes, is {list(out)}")
    totals = [max(n - size, 0) for n, size in zip(full, out, strict=True)]
    return tuple(n // 2 if auto_pad == "SAME_UPPER" else n - n // 2 for n in totals), out


def _fitted(y: Any, begin: Sequence[int], sizes: Sequence[int]) -> Any:
    """Return the part of ``y`` that begins there; 0 where it reaches over the end."""
    if min(sizes, default=1) < 1:
        raise ValueError(f"the result would have the sizes {list(sizes)}")
    ends = [first + size for first, size in zip(begin, sizes, strict=True)]
    lacking = [max(end - size, 0) for end, size in zip(ends, y.shape[2:], strict=True)]
    if any(lacking):
        y = tp.pad(y, [(0, 0), (0, 0), *((0, n) for n in lacking)])
    return y[(..., *(slice(first, end) for first, end in zip(begin, ends, strict=True)))]


@rule("ConvTranspose")
def transposed_convolution(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    output_padding: Ints | None = None,
    output_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """What the whole filters reach is computed first, then cropped or extended by zeros."""
    rank = _spatial_rank(x, w, kernel_shape)
    if group < 1 or x.shape[1] != w.shape[0] or x.shape[1] % group:
        raise ValueError(f"{group} groups of {x.shape[1]} channels, {w.shape[0]} of them in W")
    steps, gaps = by_axis(strides, rank, "strides"), by_axis(dilations, rank, "dilations")
    reached = tuple(
        (size - 1) * step + (taps - 1) * gap + 1
        for size, step, taps, gap in zip(x.shape[2:], steps, w.shape[2:], gaps, strict=True)
    )
    more = output_padding or (0,) * rank
    full = [size + extra for size, extra in zip(reached, more, strict=True)]
    begin, out = _extent(full, x.shape[2:], steps, auto_pad, pads, output_shape)
    images, filters, planes, steps, gaps = _in_planes(x, w, reached, steps, gaps)
    function, data_format = _of({2: tp.nn.conv2d_transpose, 3: tp.nn.conv3d_transpose}, images)
    y = function(
        images,
        tp.permute_dims(filters, (*range(2, filters.ndim), 1, 0)),
        (x.shape[0], w.shape[1] * group, *planes),
        steps,
        data_format=data_format,
        dilations=gaps,
        groups=group,
    )
    return _with_bias(_fitted(tp.squeeze(y, axis=2) if x.ndim == 3 else y, begin, out), b)


def _sums_of_products(
    columns: Any, w: Any, group: int, counts: Sequence[int], multiply: Any = tp.matmul
) -> Any:
    """Return a convolution.

    Args:
        columns: what the windows read, [batch, channels, taps, windows].
        w: the filters.
        group: of channels.
        counts: the number of windows by axis.
        multiply: the product of matrices.

    """
    batch, channels, taps, count = columns.shape
    filters = w.shape[0]
    if group < 1 or filters % group or w.shape[1] * group != channels:
        raise ValueError(f"{group} groups of {channels} channels do not fit to W {list(w.shape)}")
    rows = tp.reshape(w, (group, filters // group, -1))
    matrices = tp.reshape(columns, (batch, group, channels // group * taps, count))
    return tp.reshape(multiply(rows, matrices), (batch, filters, *counts))


@rule("ConvInteger")
def convolution_of_integers(
    x: Any,
    w: Any,
    x_zero_point: Any = None,
    w_zero_point: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """What the windows read makes a matrix: sums of products of integers are exact."""
    placed = _placed(
        x, w, kernel_shape, auto_pad=auto_pad, dilations=dilations, pads=pads, strides=strides
    )
    zero = tp.zeros((), dtype=x.dtype) if x_zero_point is None else tp.reshape(x_zero_point, ())
    of_filters = w_zero_point
    if of_filters is not None and of_filters.ndim:
        of_filters = tp.reshape(of_filters, (-1,))
        if of_filters.shape[0] > 1:
            of_filters = tp.reshape(of_filters, (group, -1, 1))

    def multiply(rows: Any, matrices: Any) -> Any:
        return tp.quantized_matmul(rows, matrices, a_zero_point=of_filters, b_zero_point=zero)

    at, inside = placed.places()
    read = tp.take(tp.reshape(x, (*x.shape[:2], -1)), at.T, axis=2)
    columns = tp.where(inside.T, read, zero)
    return _sums_of_products(columns, w, group, placed.counts, multiply)


@rule("QLinearConv")
def quantized_convolution(
    x: Any,
    x_scale: Any,
    x_zero_point: Any,
    w: Any,
    w_scale: Any,
    w_zero_point: Any,
    y_scale: Any,
    y_zero_point: Any,
    b: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    sums = convolution_of_integers(
        x,
        w,
        x_zero_point,
        w_zero_point,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    sums = tp.astype(_with_bias(sums, b), tp.float32)
    scale = tp.reshape(x_scale * w_scale, (-1, *(1,) * (x.ndim - 2)))
    return tp.quantize(sums * scale, tp.reshape(y_scale, ()), tp.reshape(y_zero_point, ()))


def _read_between(images: Any, places: Any, sizes: Sequence[int]) -> Any:
    """Return images [batch, channels, elements] read at places [axes, batch, n], linearly.

    What lies outside of the axes is 0. The result is [batch, channels, n].
    """
    low = tp.floor(places)
    above = places - low
    read: Any = 0
    flat: Any
    weight: Any
    inside: Any
    for corner in product((0, 1), repeat=len(sizes)):
        flat, weight, inside = 0, 1, True
        for axis, (upper, size) in enumerate(zip(corner, sizes, strict=True)):
            at = low[axis] + upper
            inside = tp.logical_and(inside, tp.logical_and(at >= 0, at < size))
            flat = flat * size + tp.astype(tp.clip(at, 0, size - 1), tp.int32)
            weight = weight * (above[axis] if upper else 1 - above[axis])
        values = tp.take_along_axis(images, tp.expand_dims(flat, axis=1), axis=2)
        weights = tp.astype(tp.expand_dims(weight, axis=1), images.dtype)
        read = read + tp.where(tp.expand_dims(inside, axis=1), values * weights, 0)
    return read


@rule("DeformConv")
def deformable_convolution(
    x: Any,
    w: Any,
    offset: Any,
    b: Any = None,
    mask: Any = None,
    *,
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    offset_group: int = 1,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """Each tap reads between elements; offsets hold one number by axis for each tap."""
    placed = _placed(x, w, kernel_shape, dilations=dilations, pads=pads, strides=strides)
    rank = len(placed.sizes)
    batch, channels = x.shape[:2]
    taps, count = prod(placed.taps), prod(placed.counts)
    if channels % offset_group:
        raise ValueError(f"{offset_group} groups of offsets for {channels} channels")
    first = np.array(placed.before)
    of_windows = np.indices(placed.counts).reshape(rank, 1, -1)
    of_taps = np.indices(placed.taps).reshape(rank, -1, 1)
    steps, gaps = np.array(placed.strides), np.array(placed.dilations)
    scaled = of_windows * steps[:, None, None] + of_taps * gaps[:, None, None]
    precise = tp.float64 if str(offset.dtype) == "float64" else tp.float32  # at least
    moved = tp.reshape(tp.astype(offset, precise), (batch * offset_group, taps, rank, count))
    base = tp.asarray(scaled - first[:, None, None], dtype=precise)
    places = tp.permute_dims(moved, (2, 0, 1, 3)) + tp.expand_dims(base, axis=1)
    images = tp.reshape(x, (batch * offset_group, channels // offset_group, -1))
    read = _read_between(images, tp.reshape(places, (rank, -1, taps * count)), placed.sizes)
    columns = tp.reshape(read, (batch, offset_group, -1, taps, count))
    if mask is not None:
        columns = columns * tp.reshape(mask, (batch, offset_group, 1, taps, count))
    columns = tp.reshape(columns, (batch, channels, taps, count))
    return _with_bias(_sums_of_products(columns, w, group, placed.counts), b)


@rule("Col2Im", host=(1, 2))
def columns_to_image(
    columns: Any,
    image_shape: Any,
    block_shape: Any,
    *,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    sizes, block = tuple(map(int, image_shape)), tuple(map(int, block_shape))
    placed = windows(sizes, block, dilations=dilations, pads=pads, strides=strides)
    at, inside = placed.places()
    count, taps = at.shape
    if columns.ndim != 3 or columns.shape[1] % taps or columns.shape[2] != count:
        raise ValueError(
            f"for {taps} taps and {count} windows, the columns must be "
            f"[batch, channels * {taps}, {count}], not {list(columns.shape)}"
        )
    parts = tp.reshape(columns, (columns.shape[0], -1, taps, count))
    places = np.where(inside, at, -1).T  # of padding, which is dropped
    sums = tp.unsorted_segment_sum(tp.permute_dims(parts, (2, 3, 0, 1)), places, prod(sizes))
    return tp.reshape(tp.permute_dims(sums, (1, 2, 0)), (*parts.shape[:2], *sizes))
