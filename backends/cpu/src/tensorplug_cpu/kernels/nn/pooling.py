"""Pooling: one axis after the other, and for gradients of the largest one tap after the other."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import dilated_pooling_windows, pooling_windows
from tensorplug.plugin import DType, TensorType, Windows, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import UNROUNDED, working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.families.pooling import first_equal, window_values
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.windows.argmax import WindowArgmax
from tensorplug_cpu.windows.separable import counts, few, images, joined, overlap, reduced, spread
from tensorplug_cpu.windows.sliding import room
from tensorplug_cpu.windows.tiles import Tiles, covered, tiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

Attributes = dict[str, Any]

_ROWS = 16  # channels up to which rows of windows are faster than their taps


def _lowest(dtype: DType) -> Array:
    """Return a value that never exceeds an element."""
    if dtype in dt.FLOATING:
        return np.array(-np.inf, dtype.numpy)
    return np.array(dtype.min, dtype.numpy)


class _Pooling:
    """What all kernels of one call share: its windows, and arrays as the steps take them.

    Channels that come first, and few that come last, are taken for images of one channel each;
    the latter not where whole ``rows`` are walked along.
    """

    def __init__(
        self, x: TensorType, out: TensorType, windows: Windows, form: str, *, rows: bool = False
    ) -> None:
        self.windows, self.out = windows, out
        self.axis = form.index("C")
        self.batch, self.channels = x.shape[0], x.shape[self.axis]
        self.apart = self.axis == 1 or (few(self.channels) and not rows)
        if self.apart:
            self.batch, self.inner = self.batch * self.channels, 1
        else:
            self.inner = self.channels
        self.taken_shape = (self.batch, *(window.size for window in windows), self.inner)

    def taken(self, x: Array) -> Array:
        return images(x, self.axis) if self.apart else x

    def restored(self, x: Array) -> Array:
        return joined(x, self.channels, self.axis) if self.apart else x

    def counts(self, dtype: np.dtype[Any]) -> Array:
        """Return how many elements the windows hold, for broadcasting."""
        number = np.ones((), np.float64)
        for at, window in enumerate(self.windows):
            along = counts(window)
            if not (along == window.filter).all():
                rest = len(self.windows) - at
                number = number * along.reshape(window.out, *(1,) * rest)
            else:
                number = number * window.filter
        return number.astype(dtype)

    def values(self, kind: str, dtype: np.dtype[Any], *, back: bool = False) -> Call | None:
        """Return native loops over windows, None where there are none for these."""
        if self.axis != self.out.rank - 1:
            return None
        return window_values(
            self.windows, self.out.shape[0], self.channels, dtype, kind, back=back
        )

    def first_equal(self) -> Call | None:
        """Return native loops that give dy to the largest, None where there are none."""
        if self.axis != self.out.rank - 1:
            return None
        return first_equal(
            self.windows,
            self.out.shape[0],
            self.channels,
            self.out.dtype.numpy,
            adding=any(map(overlap, self.windows)),
            covered=covered(self.windows),
        )

    def winners(self) -> WindowArgmax:
        return WindowArgmax(self.batch, self.windows, self.inner)

    def tiles(self) -> Tiles:
        return Tiles(self.batch, self.windows, self.inner)


def _nothing(out: TensorType) -> Call:
    shape, dtype = out.shape, out.dtype.numpy
    return lambda *_arrays: np.zeros(shape, dtype)


def _largest(pooling: _Pooling) -> Call:
    """Take the maximum along one axis after the other."""
    if not pooling.out.size:
        return _nothing(pooling.out)
    native = pooling.values("largest", pooling.out.dtype.numpy)
    if native is not None:
        return without_warnings(native)
    lowest = _lowest(pooling.out.dtype)

    def run(x: Array) -> Array:
        taken = pooling.taken(x)
        return pooling.restored(reduced(taken, pooling.windows, np.maximum, lowest))

    return without_warnings(run)


def _average(pooling: _Pooling) -> Call:
    """Add along one axis after the other, and divide."""
    if not pooling.out.size:
        return _nothing(pooling.out)
    narrow = pooling.out.dtype.numpy
    work = working(pooling.out.dtype)
    native = pooling.values("average", work)
    if native is not None:
        return without_warnings(
            lambda x: native(x.astype(work, copy=False)).astype(narrow, copy=False)
        )
    number = pooling.counts(work)

    def run(x: Array) -> Array:
        taken = pooling.taken(x).astype(work, copy=False)
        total = reduced(taken, pooling.windows, np.add, 0)
        total /= number
        return pooling.restored(total.astype(narrow, copy=False))

    return without_warnings(run)


def _shared(pooling: _Pooling) -> Call:
    """Divide, and spread along one axis after the other."""
    narrow = pooling.out.dtype.numpy
    if not pooling.out.size or not all(window.out for window in pooling.windows):
        return _nothing(pooling.out)
    work = working(pooling.out.dtype)
    number = pooling.counts(work)
    native = pooling.values("sum", work, back=True)
    if native is not None:

        def run_native(dy: Array, _input: Array) -> Array:
            wide: Array = native(np.divide(dy, number, dtype=work))
            return wide.astype(narrow, copy=False)

        return without_warnings(run_native)
    if tiled(pooling.windows):
        tiles = pooling.tiles()

        def run_tiles(dy: Array, _input: Array) -> Array:
            share = np.divide(pooling.taken(dy), number, dtype=work).astype(narrow, copy=False)
            return pooling.restored(tiles.spread(share, pooling.taken_shape))

        return without_warnings(run_tiles)

    def run(dy: Array, _input: Array) -> Array:
        share = np.divide(pooling.taken(dy), number, dtype=work)
        return pooling.restored(spread(share, pooling.windows).astype(narrow, copy=False))

    return without_warnings(run)


def _to_largest(pooling: _Pooling, *, rows: bool) -> Call:
    """Add dy to the first tap, in row-major order, whose element is the window's maximum.

    ``rows``: by whole rows, where windows tile the image.
    """
    if not pooling.out.size or not all(window.out for window in pooling.windows):
        return _nothing(pooling.out)
    native = pooling.first_equal()
    if native is not None:
        return without_warnings(native)
    if rows:
        tiles = pooling.tiles()

        def run_tiles(dy: Array, x: Array, output: Array) -> Array:
            cotangents, source, largest = (pooling.taken(array) for array in (dy, x, output))
            return pooling.restored(tiles.to_first_equal(cotangents, source, largest))

        return without_warnings(run_tiles)
    winners = pooling.winners()
    adding = any(map(overlap, pooling.windows))
    whole_image = covered(pooling.windows)
    # dy or 0.0, as a product of its bits: several times as fast as choosing by a random mask,
    # and infinities times 0 do not become NaN.
    whole = np.dtype(f"i{pooling.out.dtype.itemsize}")

    def run(dy: Array, x: Array, output: Array) -> Array:
        source, largest, cotangents = (pooling.taken(array) for array in (x, output, dy))
        result = room(source.shape, dy.dtype)
        if not whole_image:
            result.fill(0)
        bits, target_bits = cotangents.view(whole), result.view(whole)

        def give(images: slice, _tap: int, positions: Any, elements: Any, wins: Array) -> None:
            own = bits[images][positions]
            if adding:
                part = np.multiply(own, wins).view(dy.dtype)
                target = result[images][elements]
                np.add(target, part, out=target)
            else:
                np.multiply(own, wins, out=target_bits[images][elements])

        winners.visit(source, largest, give)
        return pooling.restored(result)

    return without_warnings(run)


def _form(attributes: Attributes) -> str:
    return str(attributes.get("data_format", "NHWC"))


def _over_windows(pool: Callable[[_Pooling], Call]) -> Callable[..., Call]:
    def prepare(x: TensorType, *, attributes: Attributes, out: TensorType) -> Call:
        at = pooling_windows(x.shape, **attributes)
        return pool(_Pooling(x, out, at, _form(attributes)))

    return prepare


for _spec in (specs.MAX_POOL, specs.MAX_POOL_3D):
    kernels.prepare(_spec, because="faster")(_over_windows(_largest))
for _spec in (specs.AVG_POOL, specs.AVG_POOL_3D):
    kernels.prepare(_spec, because="faster")(_over_windows(_average))


for _spec in (specs.AVG_POOL_GRAD, specs.AVG_POOL_3D_GRAD):

    @kernels.prepare(_spec, because="faster")
    def avg_pool_grad(
        dy: TensorType, input: TensorType, *, attributes: Attributes, out: TensorType
    ) -> Call:
        """Divide dy equally among the elements of a window."""
        at = pooling_windows(input.shape, **attributes)
        return _shared(_Pooling(input, out, at, _form(attributes), rows=tiled(at)))


for _spec in (specs.MAX_POOL_GRAD, specs.MAX_POOL_3D_GRAD):

    @kernels.prepare(_spec, because="faster", dtypes=UNROUNDED)
    def max_pool_grad(
        dy: TensorType,
        input: TensorType,
        output: TensorType,
        *,
        attributes: Attributes,
        out: TensorType,
    ) -> Call:
        """Add dy to the largest element."""
        at = pooling_windows(input.shape, **attributes)
        form = _form(attributes)
        rows = tiled(at) and form.endswith("C") and 1 < input.shape[-1] <= _ROWS
        return _to_largest(_Pooling(input, out, at, form, rows=rows), rows=rows)


@kernels.prepare(specs.POOL, because="faster")
def pool(input: TensorType, *, pooling_type: str, attributes: Attributes, out: TensorType) -> Call:
    """Take the largest or the average."""
    at = dilated_pooling_windows(input.shape, **attributes)
    pooling = _Pooling(input, out, at, "N" + "." * len(at) + "C")
    return _largest(pooling) if pooling_type == "max" else _average(pooling)


@kernels.prepare(specs.MAX_POOL_WITH_ARGMAX, because="faster")
def max_pool_with_argmax(
    x: TensorType,
    *,
    filter_size: tuple[int, ...],
    strides: tuple[int, ...],
    pad: Any,
    include_batch_in_index: bool,
    out: tuple[TensorType, TensorType],
) -> Call:
    """Take the largest, find the first tap that holds it, and compute its position."""
    at = pooling_windows(x.shape, filter_size=filter_size, strides=strides, pad=pad)
    pooling = _Pooling(x, out[0], at, "NHWC")
    if not out[0].size:
        return lambda _x: [_nothing(type_)() for type_ in out]
    find = _largest(pooling)
    winners = pooling.winners()
    taps = list(product(*(range(window.filter) for window in at)))
    steps = [prod(x.shape[axis + 1 :]) for axis in range(4)]  # between neighbours, flattened
    shifts = [window.dilation * step for window, step in zip(at, steps[1:], strict=False)]
    # Of no tap at all, and of each tap: how far its element lies behind the window's corner.
    offsets = np.array([0, *(np.dot(tap, shifts) for tap in taps)], np.int32)
    corner = _corners(out[0].shape, at, steps, batch=include_batch_in_index)
    chosen = np.uint8 if len(taps) < 255 else np.int32

    def run(x: Array) -> list[Array]:
        result = find(x)
        source, largest = pooling.taken(x), pooling.taken(result)
        winner = np.zeros(largest.shape, chosen)

        def note(images: slice, tap: int, positions: Any, _elements: Any, wins: Array) -> None:
            own = winner[images][positions]
            own += np.multiply(wins, chosen(tap + 1), dtype=chosen)

        winners.visit(source, largest, note)
        numbers = pooling.restored(winner)
        indexes = corner + offsets[numbers]
        indexes[numbers == 0] = -1
        return [result, indexes]

    return without_warnings(run)


def _corners(shape: tuple[int, ...], windows: Windows, steps: list[int], *, batch: bool) -> Array:
    """Return the position of each window's first tap in the flattened input."""
    number: Any = np.arange(shape[-1])
    for axis, window in enumerate(windows, start=1):
        along = (np.arange(window.out) * window.stride - window.before) * steps[axis]
        number = number + along.reshape(window.out, *(1,) * (3 - axis))
    if batch:
        number = number + np.arange(shape[0]).reshape(-1, 1, 1, 1) * steps[0]
    return np.asarray(number, np.int32)
