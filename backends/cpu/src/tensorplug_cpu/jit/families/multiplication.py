"""Products of matrices, or of stacks of them, that are packed first."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.execution.parallel import thread_count
from tensorplug_cpu.jit.loops.calls import address, dense
from tensorplug_cpu.jit.loops.multiplication import (
    WORD,
    Codes,
    Layout,
    codes_of_word,
    multiply_function,
)
from tensorplug_cpu.jit.loops.panels import to_panels
from tensorplug_cpu.jit.loops.partitions import even, make_calls, tile_size
from tensorplug_cpu.jit.loops.prepared import prepare
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Shape
    from tensorplug_cpu.arrays import Array

    Native = Callable[..., Array]


TERMS: Final = 384  # numbers added one after the other; of a panel, they stay in the first cache
_BLOCK: Final = 1 << 17  # elements of the first matrix in a block: of a second-level cache
_SECOND: Final = 1 << 16  # elements of the second matrix that a part copies: likewise
_PARTS: Final = 4  # for each thread beside the first, where there is work for so many
_BYTE: Final = 8  # bits
_READ: Final = 0.25  # what it takes to read an element once more, if to copy one takes 1


class Multiplication:
    """Products of matrices [..., rows, inner] by as many [..., inner, columns].

    Args:
        sizes: rows, inner size and columns of a product.
        result: shape of the results; of one product, the rows may be several axes.
        dtype: float32 or float64.
        turned: whether the first matrices are [..., inner, rows].
        across: whether the second ones are [..., columns, inner].
        block: neighbouring terms that share what codes stand for, if the only second matrix is
            one of codes (``by_codes``).

    """

    def __init__(
        self,
        sizes: tuple[int, int, int],
        result: Shape,
        dtype: np.dtype[Any],
        *,
        turned: bool = False,
        across: bool = False,
        block: int = 1,
    ) -> None:
        rows, inner, columns = sizes
        count = prod(result) // (rows * columns)
        self._size = size = tile_size(dtype, columns, rows)
        self._order = np.arange(count)
        self._sizes, self._name, self._type = sizes, dtype.name, dtype
        self._turned, self._across = turned, across
        positions, panel = size.positions, size.lanes * size.vectors
        tiles, depth = -(-rows // positions), block * even(inner // block, TERMS // block)
        self._block = block
        parts = max(1, -(-_PARTS * (thread_count() - 1) // count))
        most = even(tiles, max(1, _BLOCK // (depth * positions)))
        again = rows * inner * (1 if turned else _READ)

        def cost(sides: int, copied: int) -> tuple[float, int, int]:
            """Return what so many parts of the columns cost, their number and that of the rows."""
            blocks = min(tiles, max(-(-tiles // most), -(-parts // sides)))
            return blocks * copied + sides * again, sides, blocks

        self._of_parts = []
        for copied in (inner * columns, 0):  # of the second matrix: by each part, or before
            least = -(-depth * columns // _SECOND) if copied else 1
            possible = range(least, max(least, min(least + parts, columns // panel)) + 1)
            _, sides, blocks = min(cost(number, copied) for number in possible)
            group, side = -(-tiles // blocks), -(-columns // (sides * panel)) * panel
            blocks, sides = -(-tiles // group), -(-columns // side)
            integers = [
                *(count * blocks * sides, blocks, sides, tiles),
                *(rows - tiles * (positions - 1), group),
                *(rows, columns, inner, side, depth, count * inner),
            ]
            self._of_parts.append((integers, group * positions * depth, depth * side))
        self._allocate = allocator(result, dtype)
        self._work = count * prod(sizes)

    def __call__(self, a: Array, b: Array, *epilogue: Any) -> Array:
        """Return the products; for ``epilogue`` see ``convolution.Convolution``."""
        b, across = _laid(b, across=self._across)
        return self._filled(a, b, Layout(turned=False, panels=False, across=across), *epilogue)

    def by_codes(self, a: Array, b: Array, codes: Codes, numbers: Sequence[Array | None]) -> Array:
        """Return the product by what codes stand for, whose bytes are ``b``.

        ``numbers``: scales, zero points and offsets in float32, [inner / block, columns] each.
        """
        # Matrices of bytes with several codes are not read across, unless they lie so.
        b, across = _laid(b if codes.bits == _BYTE else dense(b), across=self._across)
        b = b.copy() if address(b) % WORD else b
        layout = Layout(turned=False, panels=False, across=across, codes=codes)
        return self._filled(a, b, layout, numbers=numbers)

    def bind(self, b: Array, *epilogue: Any) -> Native:
        """Return the products by ``b``, which is kept as loops read it."""
        form = "panels of products", self._size[:2], self._across
        kept = prepare(b, form, self._panels)
        layout = Layout(turned=False, panels=True, across=False)
        return lambda a: self._filled(a, kept.result, layout, *epilogue)

    def _panels(self, b: Array) -> Array:
        matrices = b.reshape(-1, *b.shape[-2:])
        matrices = matrices.swapaxes(1, 2) if self._across else matrices
        return to_panels(matrices, self._order, self._size)

    def _filled(
        self,
        a: Array,
        b: Array,
        layout: Layout,  # of the second matrices
        bias: Array | None = None,
        slope: Array | None = None,
        epilogue: str = "linear",
        numbers: Sequence[Array | None] = (None, None, None),
    ) -> Array:
        a, turned = _laid(a, across=self._turned)
        layout, result = layout._replace(turned=turned), self._allocate()
        function = multiply_function(
            self._name, self._size, layout, epilogue, bias=bias is not None
        )
        rows, inner, columns = self._sizes
        parts, of_a, of_b = self._of_parts[layout.panels]
        ends = [0 if array is None else address(array) for array in (bias, slope, *numbers)]
        across = inner // (1 if layout.codes is None else codes_of_word(layout.codes.bits))
        pointers = [address(a), address(b), address(result), *ends]
        integers = [
            *parts,
            *(rows if turned else inner, across if layout.across else columns),
            *(0 if layout.panels else of_b, self._block),
        ]
        make_calls([(function, pointers, integers)], of_a + of_b, self._type, self._work)
        return result


def _laid(matrices: Array, *, across: bool) -> tuple[Array, bool]:
    """Return matrices without gaps, and whether the last two axes are to be exchanged."""
    if matrices.ndim > 1 and not matrices.flags.c_contiguous:
        exchanged = matrices.swapaxes(-1, -2)
        if exchanged.flags.c_contiguous and exchanged.flags.aligned:
            return exchanged, not across
    return dense(matrices), across
