"""Stacks of matrix products as native loops: convolutions of groups of channels, of one tap.

The rows of one matrix need not be neighbours: an image with channels last holds a row of each
group in turn. Rows are read where they lie, and results are written in the same order, so nothing
is copied before the products or after them. The last vector of a row has as few lanes as it needs,
which matters where a group has a few dozen channels.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug_cpu.jit.codegen.compiler import MOST_FUNCTIONS
from tensorplug_cpu.jit.codegen.epilogues import apply_epilogue
from tensorplug_cpu.jit.codegen.functions import Function, lanes
from tensorplug_cpu.jit.loops.calls import address, dense, is_large, is_worth, launch
from tensorplug_cpu.jit.loops.partitions import even
from tensorplug_cpu.jit.loops.products import most_positions
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.plugin import Shape
    from tensorplug_cpu.arrays import Array


_MOST_TERMS: Final = 512  # numbers added one after the other; more would lose digits
_MOST_COLUMNS: Final = 512  # wider matrices are better packed first
_BLOCKS: Final = 8  # of the rows of a matrix, at most, for threads to share
_PRODUCTS: Final = 1 << 17  # multiplications of a block, fewer of which are soon over


class Panel(NamedTuple):
    """Columns of a matrix of results from ``first`` up to ``stop``, cut into tiles of one size.

    A tile has ``height`` rows of ``vectors`` of ``lanes``; some lanes of the last may be idle.
    ``lower``: some tiles have a row less, so that none computes what another one has.
    """

    first: int
    stop: int
    lanes: int
    vectors: int
    height: int
    lower: bool = False


def cut(itemsize: int, rows: int, columns: int, *, whole: bool = False) -> tuple[Panel, ...]:
    """Return the panels of a matrix; ``rows``: of the smallest block.

    ``whole``: the only block has so many rows.

    A short vector at the end has tiles of its own: one tile with vectors of different lengths
    makes LLVM keep sums in memory.
    """
    most = lanes(itemsize)
    count, rest = divmod(columns, most)
    short = lanes(itemsize, rest) if rest else most
    if rest and short == most:
        count += 1
    vectors = next((number for number in (3, 2) if count % number == 0), min(count, 3))
    ranges = [
        (count // vectors * vectors * most, most, vectors),
        (count * most, most, count % vectors),
        (columns, short, 1),
    ]
    panels: list[Panel] = []
    first = 0
    for end, width, number in ranges:
        stop = min(end, columns)
        if stop > first:
            height = even(rows, most_positions(number))
            lower = whole and rows % height > 0
            panels.append(Panel(first, stop, width, number, height, lower))
            first = stop
    return tuple(panels)


def batched_product(
    a: Shape, b: Shape, dtype: np.dtype[Any], *, transpose_b: bool
) -> BatchedProduct | None:
    """Return the products of matrices [..., rows, inner] by as many [..., inner, columns].

    The second ones are [..., columns, inner] if ``transpose_b``. None where BLAS is as good, or
    there is only one product.
    """
    (*stack, rows, inner), (*others, _, columns) = a, b
    if transpose_b:
        columns = b[-2]
    if len(a) < 3 or stack != others or dtype.name not in {"float32", "float64"}:
        return None
    if inner > _MOST_TERMS or columns > _MOST_COLUMNS:
        return None
    if prod(stack) < 2 or not is_worth(prod(stack) * rows * inner * columns):
        return None
    sizes = rows, inner, columns
    return BatchedProduct(tuple(stack), sizes, dtype, transpose_b=transpose_b)


class BatchedProduct:
    """Products of the matrices of two stacks.

    Args:
        stack: the first axes of both.
        sizes: rows and inner size of the first matrices, and columns of the second ones.
        dtype: float32 or float64.
        transpose_b: whether the second ones are [..., columns, inner].

    """

    def __init__(
        self,
        stack: Shape,
        sizes: tuple[int, int, int],
        dtype: np.dtype[Any],
        *,
        transpose_b: bool = False,
    ) -> None:
        rows, inner, columns = sizes
        self._ends = (*stack, 1, columns)
        self._turned = transpose_b
        self.sizes, self.name = sizes, dtype.name  # which NumPy takes microseconds to tell
        blocks = max(
            1, min(_BLOCKS, rows * inner * columns // _PRODUCTS, rows // most_positions(1))
        )
        self.panels = cut(dtype.itemsize, rows // blocks, columns, whole=blocks == 1)
        self.integers = prod(stack) * blocks, blocks, rows, inner
        self.is_shared = is_large(prod(stack) * rows * inner * columns // 2)
        # The axis along which the groups of an image's channels lie: the last one with several.
        axis = max(axis for axis, length in enumerate(stack) if length > 1)
        self.groups = stack[axis]
        self.to_rows = (*range(axis), len(stack), *range(axis, len(stack)), len(stack) + 1)
        self.back = (*range(axis), *range(axis + 1, len(stack) + 1), axis, len(stack) + 1)
        result = (*stack, rows, columns)
        self.allocate = allocator(result, dtype)
        self.allocate_rows = allocator(tuple(result[at] for at in self.to_rows), dtype)

    def __call__(self, a: Array, b: Array, /, *epilogue: Any) -> Array:
        """Return the products; for ``epilogue`` see ``bind``."""
        return self.bind(b, *epilogue)(a)

    def bind(self, b: Array, /, *epilogue: Any) -> BoundProduct:
        """Return the products by ``b`` as a function of the first matrices.

        ``epilogue``: a bias and slopes, which broadcast to [..., 1, columns], and the name of an
        activation: see ``epilogues``.
        """
        *operands, name = epilogue or (None, None, "linear")
        ends = [None if each is None else np.broadcast_to(each, self._ends) for each in operands]
        matrices = b.swapaxes(-1, -2) if self._turned else b
        return BoundProduct(self, [matrices, *ends], name)


class BoundProduct:
    """Products of the matrices of a stack by constant ones, which are kept."""

    def __init__(
        self,
        product: BatchedProduct,
        constants: list[Array | None],
        epilogue: str,
    ) -> None:
        self._kept = [None if each is None else dense(each) for each in constants]
        self._pointers = [0 if each is None else address(each) for each in self._kept]
        self._product, self._epilogue = product, epilogue
        self._functions: dict[int, Any] = {}

    def __call__(self, a: Array) -> Array:
        """Return the products; their memory is in the order of ``a``'s."""
        product = self._product
        flags = a.transpose(product.to_rows).flags
        apart = flags.c_contiguous and flags.aligned and not a.flags.c_contiguous
        a = a if apart else dense(a)
        result = product.allocate_rows() if apart else product.allocate()
        groups = product.groups if apart else 1
        function = self._functions.get(groups) or self._compiled(groups)
        pointers = address(a), address(result), *self._pointers
        launch(function, pointers, product.integers, shared=product.is_shared)
        return result.transpose(product.back) if apart else result

    def _compiled(self, groups: int) -> Any:
        """Return the function for matrices of which so many have their rows in turn."""
        product = self._product
        has_bias = self._kept[1] is not None
        function = batched_function(
            product.name, product.panels, groups, self._epilogue, bias=has_bias
        )
        self._functions[groups] = function
        return function


@lru_cache(MOST_FUNCTIONS)
def batched_function(
    dtype: str, panels: tuple[Panel, ...], groups: int, epilogue: str, *, bias: bool
) -> Any:
    """Return the function that computes blocks of rows, as a thread gets them.

    Its pointers: the first matrices and the results; the second matrices, dense; a number for
    each of their columns to add, and one to multiply negative sums with; the counter of blocks.
    Its integers: the number of blocks, of those of a matrix, of its rows; the inner size. A block
    has at least as many rows as a tile.

    ``groups``: how many matrices have their rows in turn.
    """
    f = Function(
        "stack",
        dtype,
        ("a", "result", "b", "bias", "slope", "counter"),
        ("count", "blocks", "rows", "inner"),
    )
    columns = panels[-1].stop
    rows, inner = f["rows"], f["inner"]
    step = f.multiply(inner, groups)  # the elements between rows of a first matrix
    with f.taken(f["count"]) as number:
        # Matrices whose rows lie in turn begin one row after the other. What is in the cache of
        # some rows serves all of them.
        group = f.builder.srem(number, f.number(groups))
        others = f.builder.sdiv(number, f.number(groups))
        block = f.builder.srem(others, f["blocks"])
        before = f.multiply(f.builder.sdiv(others, f["blocks"]), groups)
        matrix = f.add(before, group)
        low, high = (
            f.builder.sdiv(f.multiply(f.add(block, end), rows), f["blocks"]) for end in (0, 1)
        )
        first = f.add(f.multiply(before, rows), group)
        a, result = f.multiply(first, inner), f.multiply(first, columns)
        b, ends = f.multiply(matrix, f.multiply(inner, columns)), f.multiply(matrix, columns)
        for panel in panels:
            width = panel.lanes * panel.vectors
            with f.loop(panel.first, panel.stop, width) as column:
                for tile, start in _tiles(f, panel, low, high):
                    tile.choose(column)
                    here = f.add(a, f.multiply(start, step))
                    tile.clear()
                    weights = f.variable(f.add(b, column))
                    with f.loop(0, inner) as term:
                        row = tile.load(f["b"], weights.get())
                        tile.add(row, f.add(here, term), step)
                        weights.set(f.add(weights.get(), columns))
                    numbers = [
                        tile.load(f[name], f.add(ends, column)) if used else None
                        for name, used in (("bias", bias), ("slope", epilogue == "slope"))
                    ]
                    target = f.add(result, f.multiply(start, groups * columns), column)
                    tile.store(target, groups * columns, epilogue, numbers)
    return f.compiled()


def _tiles(f: Function, panel: Panel, low: Any, high: Any) -> Iterator[tuple[_Tile, Any]]:
    """Yield the tiles of a panel, and where one begins, in the loop over them."""
    height = panel.height
    if not panel.lower:
        with f.loop(low, high, height) as start:
            # The last tile overlaps the one before; a shorter one would need its own code.
            yield _Tile(f, panel, height), f.least(start, f.subtract(high, height))
        return
    length = f.subtract(high, low)
    count = f.builder.sdiv(f.add(length, height - 1), f.number(height))
    tall = f.subtract(length, f.multiply(count, height - 1))
    end = f.add(low, f.multiply(tall, height))
    with f.loop(low, end, height) as start:
        yield _Tile(f, panel, height), start
    with f.loop(end, high, height - 1) as start:
        yield _Tile(f, panel, height - 1), start


class _Tile:
    """The sums of a tile of a panel, in registers."""

    def __init__(self, f: Function, panel: Panel, height: int) -> None:
        self._f, self._panel = f, panel
        self.width = panel.lanes * panel.vectors
        self._zero = f.number(0.0, f.vector(panel.lanes))
        self._sums = [
            [f.variable(self._zero) for _ in range(panel.vectors)] for _ in range(height)
        ]
        self._mask: Any | None = None  # of the last vector

    def choose(self, column: Any) -> None:
        """Make the tile begin at ``column``."""
        f, panel = self._f, self._panel
        if (panel.stop - panel.first) % self.width:
            last = f.add(column, self.width - panel.lanes)
            self._mask = f.mask(last, panel.stop, panel.lanes)

    def clear(self) -> None:
        for row in self._sums:
            for one in row:
                one.set(self._zero)

    def load(self, pointer: Any, offset: Any) -> list[Any]:
        """Return the vectors of a row of numbers."""
        f, width = self._f, self._panel.lanes
        count = self._panel.vectors - (self._mask is not None)
        row = [f.load(pointer, f.add(offset, at * width), width) for at in range(count)]
        if self._mask is not None:
            last = f.add(offset, count * width)
            row.append(f.load_where(self._mask, self._zero, pointer, last))
        return row

    def add(self, row: list[Any], offset: Any, step: Any) -> None:
        """Add the product of numbers of the first matrix, ``step`` apart, and a row."""
        f = self._f
        for line, sums in enumerate(self._sums):
            number = f.spread(
                f.load(f["a"], f.add(offset, f.multiply(step, line))), self._panel.lanes
            )
            for one, vector in zip(sums, row, strict=True):
                one.set(f.multiply_add(number, vector, one.get()))

    def store(
        self, target: Any, step: int, epilogue: str, numbers: list[list[Any] | None]
    ) -> None:
        """End the sums and write them to rows that are ``step`` apart."""
        f = self._f
        for line, sums in enumerate(self._sums):
            for at, one in enumerate(sums):
                value = apply_epilogue(
                    f, one.get(), epilogue, *[row and row[at] for row in numbers]
                )
                here = f.add(target, line * step + at * self._panel.lanes)
                if self._mask is not None and at == len(sums) - 1:
                    f.store_where(self._mask, value, f["result"], here)
                else:
                    f.store(value, f["result"], here)
