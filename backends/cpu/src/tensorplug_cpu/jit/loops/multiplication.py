"""Products of matrices that are packed, in the order in which a tile reads them.

Blocks of rows of the first matrix stay in the second-level cache, panels of the second one in the
first-level cache, and a tile of the result in registers (Goto and van de Geijn 2008, "Anatomy of
high-performance matrix multiplication"; Van Zee and van de Geijn 2015, "BLIS").
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug_cpu.jit.codegen.compiler import MOST_FUNCTIONS
from tensorplug_cpu.jit.codegen.epilogues import apply_epilogue
from tensorplug_cpu.jit.codegen.functions import Function
from tensorplug_cpu.jit.loops.products import Size, Tile

if TYPE_CHECKING:
    from collections.abc import Iterator


class Codes(NamedTuple):
    """Integers that stand for floats, in two's complement if they are ``signed``.

    ``bits``: of each; of less than 8, a byte has several, from the lowest bits on. ``zero``,
    ``offset``: whether they stand for ``(code - zero) * scale + offset``, or without these.
    """

    bits: int
    signed: bool
    zero: bool
    offset: bool


class Layout(NamedTuple):
    """How the matrices lie.

    ``turned``: the first ones are [inner, rows]; rows of them are copied before they are read.
    ``panels``: the second ones lie in panels (``panels.to_panels``); else they are copied to
    panels, part by part. ``across``: then, they are [columns, inner]. ``codes``: what
    integers of the only second matrix stand for.
    """

    turned: bool
    panels: bool
    across: bool
    codes: Codes | None = None


@lru_cache(MOST_FUNCTIONS)
def multiply_function(dtype: str, size: Size, layout: Layout, epilogue: str, *, bias: bool) -> Any:
    """Return the function that computes parts of products, as a thread gets them.

    A part has some rows of tiles, and some columns. Its pointers: the first matrices; the second
    ones; the results; room for what is copied of the second ones, and then of the first ones; a
    number per column to add, and one to multiply negative sums with; what codes stand for, as
    matrices [blocks, columns]: scales, zero points, offsets; the counter of parts. Its
    integers: the number of parts, of blocks of rows and of columns in each product; the tiles of
    a column of the result, how many of them are not lower, and how many a block has; the rows,
    columns and terms of a product; the columns of a block; the terms that are added one after the
    other; the terms of all products together; the elements from a line of the first matrix to the
    next, and of the second one (of codes across: the words); those that are copied of the second
    matrix; the terms of a block, of which ``depth`` is a multiple.
    """
    f = Function(
        "multiply",
        dtype,
        (
            *("a", "b", "result", "room", "bias", "slope"),
            *("scale", "zero", "offset", "counter"),
        ),
        (
            *("parts", "blocks", "sides", "tiles", "tall", "group", "rows", "columns", "inner"),
            *("side", "depth", "length", "line_of_a", "line_of_b", "copied", "block"),
        ),
    )
    build, panel = f.builder, size.lanes * size.vectors
    panels = f["b"] if layout.panels else f["room"]
    rows_of_a = f.pointer_to(f["room"], f["copied"]) if layout.turned else f["a"]
    with f.taken(f["parts"]) as number:
        rest, side = build.sdiv(number, f["sides"]), build.srem(number, f["sides"])
        matrix, block = build.sdiv(rest, f["blocks"]), build.srem(rest, f["blocks"])
        of_a = f.multiply(matrix, f.multiply(f["rows"], f["inner"]))
        of_b = f.multiply(matrix, f.multiply(f["inner"], f["columns"]))
        of_result = f.multiply(matrix, f.multiply(f["rows"], f["columns"]))
        of_panels = f.multiply(f.multiply(matrix, f["inner"]), panel)
        first_tile = f.multiply(block, f["group"])
        tiles = first_tile, f.least(f.add(first_tile, f["group"]), f["tiles"])
        origin = f.multiply(first_tile, size.positions)
        if size.lower:
            low = f.add(f.multiply(first_tile, size.positions - 1), f["tall"])
            origin = f.least(origin, low)
        left = f.multiply(side, f["side"])
        right = f.least(f.add(left, f["side"]), f["columns"])
        with f.loop(0, f["inner"], f["depth"]) as begin:
            terms = f.least(f["depth"], f.subtract(f["inner"], begin))
            if layout.turned:
                for positions, row in _rows(f, size, tiles):
                    to = f.multiply(f.subtract(row, origin), terms)
                    _pack_rows(f, (rows_of_a, to), positions, (of_a, row, begin), terms)
            if not layout.panels:
                with f.loop(left, right, panel) as first:
                    to = f.multiply(f.subtract(first, left), terms)
                    _pack_panel(f, size, layout, (of_b, first, begin), (terms, to))
            with f.loop(left, right, panel) as first:
                if layout.panels:
                    weights = f.add(of_panels, f.multiply(first, f["length"]))
                    weights = f.add(weights, f.multiply(begin, panel))
                else:
                    weights = f.multiply(f.subtract(first, left), terms)
                for positions, row in _rows(f, size, tiles):
                    tile = Tile(f, size, positions)
                    target = f.add(of_result, f.multiply(row, f["columns"]), first)
                    for position in range(positions):
                        f.prefetch(f["result"], f.add(target, f.multiply(f["columns"], position)))
                    source = f.multiply(f.subtract(row, origin), terms)
                    apart, step = 1, positions
                    if not layout.turned:
                        source = f.add(of_a, f.multiply(row, f["line_of_a"]), begin)
                        apart, step = f["line_of_a"], 1
                    tile.clear()
                    with f.loop(0, terms) as term:
                        line = f.add(weights, f.multiply(term, panel))
                        vectors = [
                            f.load(panels, f.add(line, at * size.lanes), size.lanes)
                            for at in range(size.vectors)
                        ]
                        here = f.add(source, f.multiply(term, step))
                        tile.add(vectors, partial(_number, f, rows_of_a, here, apart))
                    _end(f, tile, (target, first, begin), epilogue, bias=bias)
    return f.compiled()


def _number(f: Function, pointer: Any, start: Any, apart: Any, position: int) -> Any:
    """Return the number of a position; they are ``apart`` elements from one to the next."""
    return f.load(pointer, f.add(start, f.multiply(apart, position)))


def _end(
    f: Function, tile: Tile, start: tuple[Any, Any, Any], epilogue: str, *, bias: bool
) -> None:
    """Add a tile to what is there of the terms before; after the last ones, do the rest.

    ``start``: where the tile begins in the results, its first column, its first term.
    """
    target, first, begin = start
    masks = tile.masks(first, f["columns"])
    for at, one, here in tile.results(target, f["columns"]):
        with f.when(f.less(0, begin)):
            earlier = tile.load(masks[at], f["result"], here)
            one.set(f.builder.fadd(one.get(), earlier))
        last = f.less(f.subtract(f["inner"], f["depth"]), f.add(begin, 1))
        with f.when(last):
            column = f.add(first, at * tile.lanes)
            numbers = [
                tile.load(masks[at], f[name], column) if used else None
                for name, used in (("bias", bias), ("slope", epilogue == "slope"))
            ]
            one.set(apply_epilogue(f, one.get(), epilogue, *numbers))
        tile.store(masks[at], one.get(), f["result"], here)


def _rows(f: Function, size: Size, tiles: tuple[Any, Any]) -> Iterator[tuple[int, Any]]:
    """Yield how many positions tiles have, and the first row of one, in the loop over them."""
    (first, last), positions = tiles, size.positions
    if not size.lower:
        with f.loop(first, last) as tile:
            yield positions, f.multiply(tile, positions)
        return
    with f.loop(first, f.least(last, f["tall"])) as tile:
        yield positions, f.multiply(tile, positions)
    with f.loop(f.most(first, f["tall"]), last) as tile:
        yield positions - 1, f.add(f.multiply(tile, positions - 1), f["tall"])


def _pack_rows(
    f: Function,
    target: tuple[Any, Any],
    positions: int,
    start: tuple[Any, Any, Any],
    terms: Any,
) -> None:
    """Copy some rows of a matrix that is turned, so that terms lie one after the other.

    ``start``: where the matrix begins, the first row, the first term.
    """
    (pointer, to), (matrix, row, term), line = target, start, f["line_of_a"]
    source = f.add(matrix, f.multiply(term, line), row)
    with f.loop(0, terms) as at:
        numbers = f.load(f["a"], f.add(source, f.multiply(at, line)), positions)
        f.store(numbers, pointer, f.add(to, f.multiply(at, positions)))


def _pack_panel(
    f: Function,
    size: Size,
    layout: Layout,
    start: tuple[Any, Any, Any],
    target: tuple[Any, Any],
) -> None:
    """Copy a panel of the second matrix, with zeros where columns are left over.

    ``start``: where the matrix begins, the first column, the first term.
    """
    (matrix, first, term), (terms, to), line = start, target, f["line_of_b"]
    panel, columns = size.lanes * size.vectors, f["columns"]
    if layout.codes is not None:
        _pack_codes(f, size, layout, start[1:], target)
        return
    if not layout.across:
        tile = Tile(f, size, 0)
        masks = tile.masks(first, columns)
        source = f.add(matrix, f.multiply(term, line), first)
        with f.loop(0, terms) as at:
            here, there = f.multiply(at, line), f.multiply(at, panel)
            for number, mask in enumerate(masks):
                offset = number * size.lanes
                value = tile.load(mask, f["b"], f.add(source, here, offset))
                f.store(value, f["room"], f.add(to, there, offset))
        return
    with f.loop(0, panel) as column:
        here, there = f.add(first, column), f.add(to, column)
        source = f.add(matrix, f.multiply(here, line), term)
        known = f.builder.select(f.less(here, columns), terms, f.number(0))
        with f.loop(0, known) as at:
            number = f.load(f["b"], f.add(source, at))
            f.store(number, f["room"], f.add(there, f.multiply(at, panel)))
        with f.loop(known, terms) as at:
            zero = f.number(0.0, f.element)
            f.store(zero, f["room"], f.add(there, f.multiply(at, panel)))


WORD: Final = 4  # bytes, in which neighbouring codes are read
_OF_BLOCKS: Final = ("scale", "zero", "offset")


def codes_of_word(bits: int) -> int:
    """Return how many codes are read at once from a row of a matrix that lies across."""
    return 8 * WORD // bits


def _pack_codes(
    f: Function, size: Size, layout: Layout, start: tuple[Any, Any], target: tuple[Any, Any]
) -> None:
    """Write what the codes of a panel stand for; zeros where columns are left over.

    Lanes are columns. Across, a word of each of them has several terms.
    """
    (first, term), (terms, to), codes = start, target, layout.codes
    assert codes is not None
    build, lanes, panel = f.builder, size.lanes, size.lanes * size.vectors
    number, byte = f.scalar("int32"), f.scalar("int8")
    words = f.vector(lanes, number)
    tile = Tile(f, size, 0)
    masks = tile.masks(first, f["columns"])
    together = codes_of_word(codes.bits) if layout.across else 1

    def read(at: Any, place: Any, mask: Any, columns: Any) -> list[Any]:
        """Return integers of some terms from ``at`` on."""
        if not layout.across:
            here = f.add(f.multiply(f.add(term, at), f["line_of_b"]), place)
            found = f.load_where(mask, f.number(0, f.vector(lanes, byte)), f["b"], here)
            return [(build.sext if codes.signed else build.zext)(found, words)]
        word = build.sdiv(f.add(term, at), f.number(together))
        begin = f.pointer_to(f["b"], word, number)
        found = f.gather_at(f.mask(0, lanes, lanes), f.number(0, words), begin, columns)
        result = []
        for which in range(together):
            high = f.number(8 * WORD - (which + 1) * codes.bits, words)
            low = f.number(8 * WORD - codes.bits, words)
            shift = build.ashr if codes.signed else build.lshr
            result.append(shift(build.shl(found, high), low))
        return result

    with f.loop(0, terms, f["block"]) as block:
        row = f.multiply(build.sdiv(f.add(term, block), f["block"]), f["columns"])
        for vector, mask in enumerate(masks):
            place = f.add(first, vector * lanes)
            scale, zero, offset = (
                tile.load(mask, f[name], f.add(row, place)) if there else None
                for name, there in zip(_OF_BLOCKS, (True, *codes[2:]), strict=True)
            )
            columns = build.add(f.spread(place, lanes), f.lane_numbers(lanes))
            if mask is not None:  # in the place of those left over, whose scale is 0, the last one
                last = f.spread(f.subtract(f["columns"], 1), lanes)
                columns = build.select(mask, columns, last)
            columns = build.mul(columns, f.spread(f["line_of_b"], lanes))
            with f.loop(block, f.add(block, f["block"]), together) as at:
                for which, integers in enumerate(read(at, place, mask, columns)):
                    value = build.sitofp(integers, f.vector(lanes))
                    value = value if zero is None else build.fsub(value, zero)
                    if offset is None:
                        value = build.fmul(value, scale)
                    else:
                        value = f.multiply_add(value, scale, offset)
                    there = f.multiply(f.add(at, which), panel)
                    f.store(value, f["room"], f.add(to, there, vector * lanes))
