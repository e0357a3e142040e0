"""Depthwise convolution on NHWC arrays, and its gradients, as native loops.

The image is read in place, without padding: see ``windows``. With several filters per channel,
channels are repeated, so that each has one.

By hand, for the forms took 1.8 to 2.9 times as long.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.jit.codegen.functions import lanes
from tensorplug_cpu.jit.loops.calls import address, dense, is_large, is_worth, launch
from tensorplug_cpu.jit.loops.strips import find_strips, values_function
from tensorplug_cpu.jit.loops.tap_lists import TapLists
from tensorplug_cpu.jit.loops.windows import depthwise_filter_function
from tensorplug_cpu.memory.pool import allocator
from tensorplug_cpu.windows.multipliers import merged, repeated

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Shape, Windows
    from tensorplug_cpu.arrays import Array

    Native = Callable[..., Array]


_PARTS: Final = 16  # pieces of the work
_HARD: Final = 4  # multiplications of another convolution that take NumPy as long as one of these
_ROWS: Final = 64  # rows of dy whose products are added one after the other


def channel_vectors(dtype: np.dtype[Any], channels: int) -> tuple[int, int, bool]:
    """Return lanes and vectors of a block of channels, and whether these are whole blocks."""
    width = lanes(dtype.itemsize, channels)
    count = -(-channels // width)
    vectors = next(number for number in (4, 3, 2, 1) if count % number == 0)
    return width, vectors, channels % (width * vectors) == 0


class DepthwiseSums:
    """Sums of products, channel by channel: the convolution, or the gradient of its image.

    Args:
        at: the windows.
        batch: the number of images.
        channels: of the source and of the result.
        dtype: float32 or float64.
        back: whether the source is dy, and the result the gradient of the image.

    """

    def __init__(
        self, at: Windows, batch: int, channels: int, dtype: np.dtype[Any], *, back: bool
    ) -> None:
        rows, columns = at
        link = TapLists.backward if back else TapLists.forward
        shape = [window.size if back else window.out for window in at]
        source = [window.out if back else window.size for window in at]
        row_links = link(rows).scaled(source[1] * channels, columns.filter * channels)
        column_links = link(columns).scaled(channels, channels)
        self._tables = [
            table for links in (row_links, column_links) for table in (links.starts, links.table())
        ]
        self._shape, self._name = (batch, *shape, channels), dtype.name
        self._allocate = allocator(self._shape, dtype)
        self._pointers = [*map(address, self._tables)]
        self._image = prod(source) * channels
        self._vectors = channel_vectors(dtype, channels)
        self._work = prod(self._shape) * prod(window.filter for window in at)
        pixel_bytes = channels * dtype.itemsize
        self._strips = None if back else find_strips(columns, pixel_bytes, self._work, "weighted")

    def __call__(
        self,
        source: Array,
        filter: Array,
        bias: Array | None = None,
        slope: Array | None = None,
        epilogue: str = "linear",
    ) -> Array:
        """Return the sums of ``source`` [N,H,W,C] with ``filter`` [KH,KW,C]; see ``epilogues``."""
        source, filter = dense(source), dense(filter)
        result = self._allocate()
        batch, rows, columns, channels = self._shape
        call = values_function(
            self._name,
            channels,
            self._vectors,
            self._strips,
            "weighted",
            epilogue,
            bias=bias is not None,
        )
        arrays = (source, filter, result, bias, slope)
        pointers = [0 if array is None else address(array) for array in arrays] + self._pointers

        grain = -(-batch * rows // _PARTS)
        integers = (batch * rows, grain, rows, columns, channels, self._image)
        launch(call, pointers, integers, shared=is_large(self._work))
        return result


class DepthwiseFilterGradient:
    """The gradient of a filter [KH,KW,C] from images [N,H,W,C] and dy [N,OH,OW,C]."""

    def __init__(self, at: Windows, batch: int, channels: int, dtype: np.dtype[Any]) -> None:
        rows, columns = at
        links = TapLists.forward(rows).scaled(columns.size * channels, columns.filter * channels)
        self._tables = [links.starts, links.table(), _row_taps(at, channels)]
        self._pointers = [*map(address, self._tables)]
        self._shape: Shape = (rows.filter, columns.filter, channels)
        self._rows, self._columns, self._channels = rows.out, columns.out, channels
        self._image = rows.size * columns.size * channels
        self._step = columns.stride * channels
        self._vectors = channel_vectors(dtype, channels)
        self._type, self._name = dtype, dtype.name
        self._batch = batch
        self._work = batch * rows.out * columns.out * prod(self._shape)

    def __call__(self, x: Array, dy: Array) -> Array:
        """Return the gradient."""
        x, dy = dense(x), dense(dy)
        width, vectors, whole = self._vectors
        call = depthwise_filter_function(self._name, width, vectors, whole=whole)
        count = self._batch * self._rows
        grain = -(-count // max(1, min(_ROWS, count // _ROWS)))
        totals = np.zeros((-(-count // grain), *self._shape), self._type)
        integers = (
            *(count, grain, self._rows, self._columns, self._channels),
            *(self._image, self._step, self._shape[1], totals[0].size),
        )
        pointers = (*map(address, (x, dy, totals)), *self._pointers)
        launch(call, pointers, integers, shared=is_large(self._work))
        return np.asarray(np.add.reduce(totals, axis=0))


def _row_taps(at: Windows, channels: int) -> Array:
    """Return for each tap of a row its positions, and its offsets in image and filter."""
    window = at[1]
    table = np.zeros((window.filter, 4), np.int64)
    for tap in range(window.filter):
        shift = tap * window.dilation - window.before
        low = max(0, -(shift // window.stride))
        high = min(window.out, (window.size - 1 - shift) // window.stride + 1)
        table[tap] = (low, max(low, high), shift * channels, tap * channels)
    return table


def _products(at: Windows, batch: int, filter: Shape) -> int:
    return batch * prod(window.out for window in at) * prod(filter)


def forward(at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]) -> _Forward | None:
    """Return the convolution of images with a filter [KH,KW,C,M], None if it is not worthwhile."""
    *sizes, channels, multiplier = filter
    if not is_worth(_HARD * _products(at, batch, filter)):
        return None
    run = DepthwiseSums(at, batch, channels * multiplier, dtype, back=False)

    return _Forward(run, sizes, multiplier)


class _Forward:
    """A depthwise convolution of images with a filter [KH,KW,C,M]."""

    def __init__(self, run: DepthwiseSums, sizes: list[int], multiplier: int) -> None:
        self._run, self._shape, self._multiplier = run, (*sizes, -1), multiplier

    def __call__(self, x: Array, filter: Array, *epilogue: Any) -> Array:
        return self._run(repeated(x, self._multiplier), filter.reshape(self._shape), *epilogue)

    def bind(self, filter: Array, *epilogue: Any) -> Native:
        """Return the convolution of images with this filter."""
        taps = dense(filter.reshape(self._shape))
        return lambda x: self._run(repeated(x, self._multiplier), taps, *epilogue)


def gradient_of_image(
    at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]
) -> Native | None:
    """Return the gradient of images, from dy and a filter [KH,KW,C,M]; None as ``forward``."""
    *sizes, channels, multiplier = filter
    if not is_worth(_HARD * _products(at, batch, filter)):
        return None
    run = DepthwiseSums(at, batch, channels * multiplier, dtype, back=True)
    return lambda dy, taps: merged(run(dy, taps.reshape(*sizes, -1)), channels, multiplier)


def gradient_of_filter(
    at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]
) -> Native | None:
    """Return the gradient of a filter [KH,KW,C,M], from images and dy; None as ``forward``."""
    *_, channels, multiplier = filter
    if not is_worth(_HARD * _products(at, batch, filter)):
        return None
    run = DepthwiseFilterGradient(at, batch, channels * multiplier, dtype)
    return lambda x, dy: run(repeated(x, multiplier), dy).reshape(filter)
