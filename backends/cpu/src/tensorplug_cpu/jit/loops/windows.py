"""The native loops over windows that treat each channel apart: depthwise products, and pooling.

A vector holds neighbouring channels. Every position has a list of the elements that it reads, so
that padding is never made, and strides and dilations cost nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from tensorplug_cpu.jit.codegen.epilogues import apply_epilogue
from tensorplug_cpu.jit.codegen.functions import Function

if TYPE_CHECKING:
    from collections.abc import Iterator


TABLES = ("row_starts", "row_links", "column_starts", "column_links")


class _Channels:
    """Some vectors of neighbouring channels; with ``whole`` vectors no lane is idle."""

    def __init__(self, f: Function, lanes: int, vectors: int, *, whole: bool) -> None:
        self.f, self.lanes, self.vectors, self.whole = f, lanes, vectors, whole
        self.type = f.vector(lanes)
        self.masks: list[Any] = []

    @contextmanager
    def blocks(self, first: Any, last: Any) -> Iterator[Any]:
        """Run the block for each block of channels."""
        f = self.f
        with f.loop(first, last, self.lanes * self.vectors) as channel:
            if not self.whole:
                starts = [f.add(channel, at * self.lanes) for at in range(self.vectors)]
                self.masks = [f.mask(start, last, self.lanes) for start in starts]
            yield channel

    def load(self, pointer: Any, offset: Any, at: int) -> Any:
        f = self.f
        offset = f.add(offset, at * self.lanes)
        if self.whole:
            return f.load(pointer, offset, self.lanes)
        return f.load_where(self.masks[at], f.number(0.0, self.type), pointer, offset)

    def store(self, value: Any, pointer: Any, offset: Any, at: int) -> None:
        f = self.f
        offset = f.add(offset, at * self.lanes)
        if self.whole:
            f.store(value, pointer, offset)
        else:
            f.store_where(self.masks[at], value, pointer, offset)


@contextmanager
def links(f: Function, table: Any, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
    """Run the block for each link of a position, with the offset of the element and of the tap."""
    with f.loop(first, last) as link:
        entry = f.multiply(link, 2)
        yield f.whole(table, entry), f.whole(table, f.add(entry, 1))


def stretch(f: Function, starts: Any, position: Any) -> tuple[Any, Any]:
    """Return the first link of a position, and the one after the last."""
    return f.whole(starts, position), f.whole(starts, f.add(position, 1))


@cache
def window_function(
    dtype: str,
    lanes: int,
    vectors: int,
    kind: str,
    epilogue: str = "linear",
    *,
    whole: bool,
    bias: bool = False,
) -> Any:
    """Return the function that computes rows of windows.

    Its pointers: the source; the weights [taps, channels]; the result; a number per channel to
    add, and one to multiply negative sums with; the tables of links of rows and of columns, each
    as starts and pairs of offsets; the counter of rows. Its integers: the rows of all images,
    those that a thread takes at once, the rows of an image, the positions in a row, the channels,
    the elements of an image.

    ``kind``: "weighted" for sums of products, "sum", "average", or "largest". ``whole``: the
    channels are a multiple of ``lanes * vectors``.
    """
    f = Function(
        "windows",
        dtype,
        ("source", "weights", "result", "bias", "slope", *TABLES, "counter"),
        ("total", "grain", "rows", "columns", "channels", "image"),
    )
    block = _Channels(f, lanes, vectors, whole=whole)
    lowest = f.number(float("-inf") if kind == "largest" else 0.0, block.type)
    totals = [f.variable(lowest) for _ in range(vectors)]
    channels, columns = f["channels"], f["columns"]
    with taken_rows(f) as row:
        image = f.builder.sdiv(row, f["rows"])
        row_links = stretch(f, f["row_starts"], f.builder.srem(row, f["rows"]))
        start = f.multiply(image, f["image"])
        with f.loop(0, columns) as column:
            column_links = stretch(f, f["column_starts"], column)
            target = f.multiply(f.add(f.multiply(row, columns), column), channels)
            with block.blocks(0, channels) as channel:
                for total in totals:
                    total.set(lowest)
                with (
                    links(f, f["row_links"], *row_links) as (element, tap),
                    links(f, f["column_links"], *column_links) as (more, more_tap),
                ):
                    offsets = f.add(start, element, channel, more), f.add(tap, channel, more_tap)
                    for at, total in enumerate(totals):
                        total.set(_step(block, kind, total.get(), offsets, at))
                for at, total in enumerate(totals):
                    value = total.get()
                    if kind == "average":
                        count = f.multiply(_length(f, row_links), _length(f, column_links))
                        number = f.builder.sitofp(count, f.element)
                        value = f.builder.fdiv(value, f.spread(number, lanes))
                    if bias or epilogue != "linear":
                        numbers = [
                            block.load(f[name], channel, at) if used else None
                            for name, used in (("bias", bias), ("slope", epilogue == "slope"))
                        ]
                        value = apply_epilogue(f, value, epilogue, *numbers)
                    block.store(value, f["result"], f.add(target, channel), at)
    return f.compiled()


@contextmanager
def taken_rows(f: Function) -> Iterator[Any]:
    """Run the block for each row that this thread takes."""
    with f.taken(f["total"], f["grain"]) as first:
        last = f.least(f.add(first, f["grain"]), f["total"])
        with f.loop(first, last) as row:
            yield row


def _length(f: Function, stretch: tuple[Any, Any]) -> Any:
    return f.subtract(stretch[1], stretch[0])


def _step(block: _Channels, kind: str, total: Any, offsets: tuple[Any, Any], at: int) -> Any:
    """Return ``total`` with one more element."""
    f = block.f
    x = block.load(f["source"], offsets[0], at)
    weight = block.load(f["weights"], offsets[1], at) if kind == "weighted" else None
    return combined(f, kind, total, x, weight)


def combined(f: Function, kind: str, total: Any, x: Any, weight: Any | None) -> Any:
    """Return ``total`` with one more element; for ``kind`` see ``window_function``."""
    if kind == "weighted":
        return f.multiply_add(x, weight, total)
    if kind == "largest":
        return f.builder.select(exceeds(f, x, total), x, total)
    return f.builder.fadd(total, x)


def exceeds(f: Function, x: Any, largest: Any) -> Any:
    """Return whether x is greater, or NaN, which exceeds every number."""
    greater = f.builder.fcmp_ordered(">", x, largest)
    return f.builder.or_(greater, f.builder.fcmp_unordered("uno", x, x))


@cache
def depthwise_filter_function(dtype: str, lanes: int, vectors: int, *, whole: bool) -> Any:
    """Return the function that adds the gradient of a depthwise filter over rows.

    Its pointers: the source, dy, gradients [taps, channels] of parts of the rows, to which is
    added; the links of rows, as in ``window_function``; for each tap of a row the first position
    and the last at which it lies on elements, the offset of the element at position 0, and its
    offset in the gradient; the counter of rows. Its integers: the rows of all images, those of a
    part, the rows of an image, the positions in a row, the channels, the elements of an image, of
    those between positions, the taps of a row, the elements of a gradient.
    """
    f = Function(
        "depthwise_filter",
        dtype,
        ("source", "dy", "result", "row_starts", "row_links", "taps", "counter"),
        ("total", "grain", "rows", "columns", "channels", "image", "step", "count", "size"),
    )
    block = _Channels(f, lanes, vectors, whole=whole)
    chains = max(1, 4 // vectors)  # sums side by side, since one addition waits for another
    zero = f.number(0.0, block.type)
    totals = [[f.variable(zero) for _ in range(vectors)] for _ in range(chains)]
    channels, columns = f["channels"], f["columns"]

    def add(position: Any, source: Any, upstream: Any, chain: list[Any]) -> None:
        here = f.add(source, f.multiply(position, f["step"]))
        there = f.add(upstream, f.multiply(position, channels))
        for at, total in enumerate(chain):
            x = block.load(f["source"], here, at)
            total.set(f.multiply_add(x, block.load(f["dy"], there, at), total.get()))

    with taken_rows(f) as row:
        start = f.multiply(f.builder.sdiv(row, f["rows"]), f["image"])
        row_links = stretch(f, f["row_starts"], f.builder.srem(row, f["rows"]))
        part = f.multiply(f.builder.sdiv(row, f["grain"]), f["size"])
        dy_row = f.multiply(f.multiply(row, columns), channels)
        with (
            block.blocks(0, channels) as channel,
            links(f, f["row_links"], *row_links) as (element, tap),
            f.loop(0, f["count"]) as number,
        ):
            entry = f.multiply(number, 4)
            low, high, shift, more_tap = (f.whole(f["taps"], f.add(entry, n)) for n in range(4))
            source = f.add(start, element, shift, channel)
            upstream = f.add(dy_row, channel)
            for chain in totals:
                for total in chain:
                    total.set(zero)
            rest = f.subtract(high, f.builder.srem(f.subtract(high, low), f.number(chains)))
            with f.loop(low, rest, chains) as position:
                for at, chain in enumerate(totals):
                    add(f.add(position, at), source, upstream, chain)
            with f.loop(rest, high) as position:
                add(position, source, upstream, totals[0])
            target = f.add(part, tap, more_tap, channel)
            for at in range(vectors):
                total = block.load(f["result"], target, at)
                for chain in totals:
                    total = f.builder.fadd(total, chain[at].get())
                block.store(total, f["result"], target, at)
    return f.compiled()


@cache
def first_equal_function(
    dtype: str, lanes: int, vectors: int, *, whole: bool, adding: bool, covered: bool
) -> Any:
    """Return the function that gives dy to the first element of a window that is its largest.

    Its pointers: the source, the largest, dy, the result, and tables of links as in
    ``window_function``; the counter of parts. Its integers: the parts, which are some channels of
    an image, the parts of an image, the channels of a part; the rows of an image, the positions in
    a row, the channels, the elements of an image.

    ``adding``: windows overlap. ``covered``: they leave no element out.
    """
    f = Function(
        "first_equal",
        dtype,
        ("source", "largest", "dy", "result", *TABLES, "counter"),
        ("parts", "parts_of_image", "width", "rows", "columns", "channels", "image"),
    )
    block = _Channels(f, lanes, vectors, whole=whole)
    channels, columns = f["channels"], f["columns"]
    blank = f.number(0.0, block.type)
    none = f.builder.fcmp_ordered("<", blank, blank)
    winners = [f.variable(none) for _ in range(vectors)]
    with f.taken(f["parts"]) as part:
        image = f.builder.sdiv(part, f["parts_of_image"])
        low = f.multiply(f.builder.srem(part, f["parts_of_image"]), f["width"])
        high = f.least(f.add(low, f["width"]), channels)
        start = f.multiply(image, f["image"])
        if adding or not covered:
            with (
                f.loop(start, f.add(start, f["image"]), channels) as position,
                block.blocks(low, high) as channel,
            ):
                for at in range(vectors):
                    block.store(blank, f["result"], f.add(position, channel), at)
        with f.loop(0, f["rows"]) as row, f.loop(0, columns) as column:
            row_links = stretch(f, f["row_starts"], row)
            column_links = stretch(f, f["column_starts"], column)
            window = f.add(f.multiply(image, f["rows"]), row)
            window = f.multiply(f.add(f.multiply(window, columns), column), channels)
            with block.blocks(low, high) as channel:
                own = f.add(window, channel)
                largest, upstream = (
                    [block.load(f[name], own, at) for at in range(vectors)]
                    for name in ("largest", "dy")
                )
                for one in winners:
                    one.set(none)
                with (
                    links(f, f["row_links"], *row_links) as (element, _),
                    links(f, f["column_links"], *column_links) as (more, _),
                ):
                    offset = f.add(start, element, channel, more)
                    for at, one in enumerate(winners):
                        x = block.load(f["source"], offset, at)
                        equal = f.builder.or_(
                            f.builder.fcmp_ordered("==", x, largest[at]),
                            f.builder.fcmp_unordered("uno", x, x),
                        )
                        wins = f.builder.and_(equal, f.builder.not_(one.get()))
                        one.set(f.builder.or_(equal, one.get()))
                        value = f.builder.select(wins, upstream[at], blank)
                        if adding:
                            earlier = block.load(f["result"], offset, at)
                            value = f.builder.fadd(earlier, value)
                        block.store(value, f["result"], offset, at)
    return f.compiled()
