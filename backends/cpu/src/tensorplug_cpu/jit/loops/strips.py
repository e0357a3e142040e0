"""Loops over windows, channel by channel, with rows cut into strips of neighbouring positions.

Windows of neighbours overlap. The sums of a strip stay in registers, so that an element, or a
weight, is loaded once for all positions of the strip. Which taps lie on the image is known when a
loop is written: only the first positions of a row and the last ones lack some.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug_cpu.jit.codegen.compiler import MOST_FUNCTIONS
from tensorplug_cpu.jit.codegen.epilogues import apply_epilogue
from tensorplug_cpu.jit.codegen.functions import Function, lanes
from tensorplug_cpu.jit.codegen.processor import registers
from tensorplug_cpu.jit.loops.windows import (
    TABLES,
    combined,
    links,
    stretch,
    taken_rows,
    window_function,
)

if TYPE_CHECKING:
    from tensorplug.plugin import Window


_LEAST: Final = 1 << 16
_MOST_TAPS: Final = 7  # of a row
_MOST_POSITIONS: Final = 14  # of a strip
_FEW_POSITIONS: Final = 6  # likewise, where all positions fall into the same few sets of a cache
_COLLIDING: Final = 1024  # bytes
_MOST_COMPARED: Final = 3  # taps of a row whose largest element is searched for
_SPARE: Final = 3  # registers for an element, and for what LLVM needs besides

Taps = tuple[tuple[int, int], ...]  # of each position: the first one, and the one after the last


class Strips(NamedTuple):
    """How a row of positions is cut.

    ``first``, ``last``: the taps of the positions of the first strip and of the last one. If there
    are two strips, they may overlap; if there is one, ``last`` is empty. ``between``: positions
    of each other strip, whose windows have all taps; no more than there are between the two.
    """

    taps: int
    stride: int
    dilation: int
    before: int
    first: Taps
    last: Taps
    between: int


def find_strips(window: Window, pixel_bytes: int, products: int, kind: str) -> Strips | None:
    """Return the strips of a row; None if windows are wide, or many are not whole.

    None too where strips were measured to gain nothing: windows do not overlap, or a sum or a
    largest element takes no longer without. For ``kind`` see ``windows.window_function``.

    Args:
        window: along a row.
        pixel_bytes: the bytes of the channels at a position.
        products: the elements that all windows together read; None if they are few, since each
            geometry, and number of channels, has its own function.
        kind: what is computed.

    """
    if window.filter > _MOST_TAPS or not window.out or products < _LEAST:
        return None
    collides = pixel_bytes % _COLLIDING == 0
    if window.filter <= window.stride:
        return None
    if kind != "weighted" and (collides or window.stride > 1):
        return None
    if kind == "largest" and window.filter > _MOST_COMPARED:
        return None
    taps = [_find_taps(window, at) for at in range(window.out)]
    most = _FEW_POSITIONS if collides else _MOST_POSITIONS
    most = min(most, registers() - window.filter - _SPARE)
    strips = -(-window.out // most)
    count = -(-window.out // strips)
    if any(own != (0, window.filter) for own in taps[count:-count]):
        return None
    last = taps[-count:] if window.out > count else []
    between = -(-(window.out - 2 * count) // (strips - 2)) if strips > 2 else 0
    sizes = window.filter, window.stride, window.dilation, window.before
    return Strips(*sizes, tuple(taps[:count]), tuple(last), between)


def _find_taps(window: Window, position: int) -> tuple[int, int]:
    """Return the taps of a position that lie on the image."""
    begin = position * window.stride - window.before
    low = max(0, -(begin // window.dilation))
    high = min(window.filter, (window.size - 1 - begin) // window.dilation + 1)
    return low, max(low, high)


def values_function(
    dtype: str,
    channels: int,
    vectors: tuple[int, int, bool],
    strips: Strips | None,
    kind: str,
    epilogue: str = "linear",
    *,
    bias: bool = False,
) -> Any:
    """Return ``strip_function``, or ``windows.window_function`` if there are no strips."""
    if strips is not None:
        return strip_function(dtype, channels, strips, kind, epilogue, bias=bias)
    width, count, whole = vectors
    return window_function(dtype, width, count, kind, epilogue, whole=whole, bias=bias)


@lru_cache(MOST_FUNCTIONS)
def strip_function(
    dtype: str,
    channels: int,
    strips: Strips,
    kind: str,
    epilogue: str = "linear",
    *,
    bias: bool = False,
) -> Any:
    """Return ``windows.window_function`` for so many channels, and for the strips of a row.

    It takes the same arguments, of which it does not need the links of columns.
    """
    f = Function(
        "strips",
        dtype,
        ("source", "weights", "result", "bias", "slope", *TABLES, "counter"),
        ("total", "grain", "rows", "columns", "channels", "image"),
    )
    width = min(lanes(8 if dtype == "float64" else 4), 1 << (channels.bit_length() - 1))
    strip = _Strip(f, channels, strips, kind, width)
    count, between = len(strips.first), strips.between
    with taken_rows(f) as row:
        image = f.builder.sdiv(row, f["rows"])
        strip.row_links = stretch(f, f["row_starts"], f.builder.srem(row, f["rows"]))
        strip.source = f.multiply(image, f["image"])
        target = f.multiply(f.multiply(row, f["columns"]), channels)

        def compute(start: Any, taps: Taps) -> None:
            with f.loop(0, channels, width) as tile_start:
                channel = f.least(tile_start, channels - width)  # some channels once more
                numbers = [
                    f.load(f[name], channel, width) if used else None
                    for name, used in (("bias", bias), ("slope", epilogue == "slope"))
                ]
                strip.compute(start, channel, taps)
                begin = f.add(target, f.multiply(start, channels), channel)
                for position, own in enumerate(taps):
                    value = apply_epilogue(f, strip.value(position, own), epilogue, *numbers)
                    f.store(value, f["result"], f.add(begin, position * channels))

        compute(0, strips.first)
        if strips.last:
            end = f.subtract(f["columns"], count)
            if between:
                with f.loop(count, end, between) as position:
                    compute(
                        f.least(position, f.subtract(end, between)), ((0, strips.taps),) * between
                    )
            compute(end, strips.last)
    return f.compiled()


class _Strip:
    """The sums of neighbouring positions, one vector of channels each."""

    def __init__(self, f: Function, channels: int, strips: Strips, kind: str, width: int) -> None:
        self._f, self._channels, self._strips, self._kind = f, channels, strips, kind
        self._width, type_ = width, f.vector(width)
        self._lowest = f.number(float("-inf") if kind == "largest" else 0.0, type_)
        self._totals = [f.variable(self._lowest) for _ in strips.first]
        self.row_links: Any = None
        self.source: Any = None  # where the image begins

    def compute(self, start: Any, channel: Any, taps: Taps) -> None:
        """Compute the sums of positions from ``start`` on, of which each has its ``taps``."""
        f, strips = self._f, self._strips
        # Which taps of which positions read an element, by its distance from the first window.
        reads: dict[int, list[tuple[int, int]]] = {}
        for position, own in enumerate(taps):
            self._totals[position].set(self._lowest)
            for tap in range(*own):
                shift = position * strips.stride + tap * strips.dilation - strips.before
                reads.setdefault(shift, []).append((position, tap))
        begin = f.multiply(start, strips.stride * self._channels)
        with links(f, f["row_links"], *self.row_links) as (element, tap_row):
            here = f.add(self.source, element, channel, begin)
            weights: dict[int, Any] = {}
            for shift in sorted(reads):
                x = f.load(f["source"], f.add(here, shift * self._channels), self._width)
                for position, tap in reads[shift]:
                    if self._kind == "weighted" and tap not in weights:
                        offset = f.add(tap_row, channel, tap * self._channels)
                        weights[tap] = f.load(f["weights"], offset, self._width)
                    total = self._totals[position]
                    total.set(combined(f, self._kind, total.get(), x, weights.get(tap)))

    def value(self, position: int, taps: tuple[int, int]) -> Any:
        """Return what there is to end with at a position."""
        f, total = self._f, self._totals[position].get()
        if self._kind != "average":
            return total
        first, last = self.row_links
        count = f.multiply(f.subtract(last, first), taps[1] - taps[0])
        number = f.builder.sitofp(count, f.element)
        return f.builder.fdiv(total, f.spread(number, self._width))
