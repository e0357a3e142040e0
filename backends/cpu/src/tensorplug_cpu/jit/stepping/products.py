"""The native function for small products of matrices, which one thread computes.

A tile of the result stays in registers, as in convolutions (``loops.products``). The second matrix
is read as it is, since what fits into the nearest cache needs no panels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tensorplug_cpu.jit.codegen.compiler import MOST_FUNCTIONS
from tensorplug_cpu.jit.codegen.functions import Function, lanes
from tensorplug_cpu.jit.loops.products import most_positions

if TYPE_CHECKING:
    from collections.abc import Callable


class Tile(NamedTuple):
    """The part of a result that stays in registers: rows, and vectors of columns.

    ``full``: whether the columns are so many that no vector has lanes to leave out.
    """

    lanes: int
    rows: int
    vectors: int
    full: bool


def choose_tile(rows: int, columns: int, itemsize: int) -> Tile:
    """Return the tile that takes the fewest instructions for a result of this size."""
    wide = lanes(itemsize, columns)
    count = -(-columns // wide)

    def shape(vectors: int) -> tuple[int, int]:
        return vectors, min(rows, most_positions(vectors))

    def instructions(shape: tuple[int, int]) -> int:
        vectors, high = shape
        tiles = -(-count // vectors) * -(-rows // high)
        return tiles * max(vectors * high + vectors, 8)  # the sums of 8 hide how long each takes

    vectors, high = min(map(shape, range(1, min(count, 4) + 1)), key=instructions)
    return Tile(wide, high, vectors, columns % (wide * vectors) == 0)


@lru_cache(MOST_FUNCTIONS)
def product_function(dtype: str, tile: Tile) -> Callable[..., None]:
    """Return the function.

    Its block: the addresses of a, b and the result; their numbers of matrices, rows, columns and
    terms; elements between matrices, rows and columns of a, matrices and rows of b, and matrices
    of the result, whose rows follow one another.
    """
    wide, high, vectors, full = tile
    f = Function("product", dtype, ("block",), ())
    block = f["block"]
    a, b, result = (f.pointer_at(block, at) for at in range(3))
    matrices, rows, columns, terms, *steps = (f.whole(block, 3 + at) for at in range(10))
    of_a, row, inner, of_b, line, of_result = steps
    zero = f.number(0.0, f.vector(wide))
    sums = [[f.variable(zero) for _ in range(vectors)] for _ in range(high)]
    with f.loop(0, matrices) as matrix, f.loop(0, columns, vectors * wide) as first:
        numbers = [f.add(first, at * wide) for at in range(vectors)]
        masks = [None if full else f.mask(number, columns, wide) for number in numbers]
        right = f.add(f.multiply(matrix, of_b), first)
        with f.loop(0, rows, high) as begin:
            start = f.least(begin, f.subtract(rows, high))  # some rows twice, to the same effect
            left = f.add(f.multiply(matrix, of_a), f.multiply(start, row))
            for each in sums:
                for one in each:
                    one.set(zero)
            with f.loop(0, terms) as term:
                here = f.add(right, f.multiply(term, line))
                values = [
                    f.load(b, f.add(here, at * wide), wide)
                    if mask is None
                    else f.load_where(mask, zero, b, f.add(here, at * wide))
                    for at, mask in enumerate(masks)
                ]
                there = f.add(left, f.multiply(term, inner))
                for position, each in enumerate(sums):
                    number = f.load(a, f.add(there, f.multiply(row, position)))
                    spread = f.spread(number, wide)
                    for one, value in zip(each, values, strict=True):
                        one.set(f.multiply_add(spread, value, one.get()))
            for position, each in enumerate(sums):
                target = f.add(
                    f.multiply(matrix, of_result), f.multiply(f.add(start, position), columns)
                )
                for one, number, mask in zip(each, numbers, masks, strict=True):
                    if mask is None:
                        f.store(one.get(), result, f.add(target, number))
                    else:
                        f.store_where(mask, one.get(), result, f.add(target, number))
    return f.compiled()
