"""Copies of arrays whose last axis is short, and was another one in memory.

Shuffles of channels are such copies, and images with few channels whose channels were first. NumPy
copies them element by element. Here a vector of each channel is loaded, and lanes are stored in
turn.

By hand, for a group took 0.7 to 1.2 times as long for long rows of float32, 1.4 times for short
ones, and 2.3 times for bytes.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, Final

from tensorplug_cpu.jit.codegen.compiler import MOST_FUNCTIONS
from tensorplug_cpu.jit.codegen.functions import Function, lanes
from tensorplug_cpu.jit.codegen.settings import is_worthwhile
from tensorplug_cpu.jit.loops.calls import address, is_large, launch
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    import numpy as np

    from tensorplug.plugin import Shape
    from tensorplug_cpu.arrays import Array


_MOST: Final = 8  # elements of the last axis
_LEAST: Final = 4  # elements that are neighbours in memory
_SLOW: Final = 4  # elements of a long loop that take as long as NumPy takes to copy one
_PARTS: Final = 16  # pieces of the work


def find_interleaver(shape: Shape, dtype: np.dtype[Any]) -> Interleaver | None:
    """Return what copies arrays of a shape and dtype; None where NumPy does it as fast."""
    if len(shape) < 2 or not 2 <= shape[-1] <= _MOST:
        return None
    if dtype.itemsize not in {1, 2, 4, 8} or not is_worthwhile(_SLOW * prod(shape)):
        return None
    return Interleaver(shape, dtype)


class Interleaver:
    """Copies an array whose last axis was another one when its elements were in order."""

    def __init__(self, shape: Shape, dtype: np.dtype[Any]) -> None:
        self._allocate = allocator(shape, dtype)
        self._shape, self._itemsize = shape, dtype.itemsize
        self._is_shared = is_large(prod(shape))
        rank = len(shape)
        # By the axis that the last one was: the permutation back, and the length of what it was
        # put behind.
        self._arrangements = [
            ((*range(axis), rank - 1, *range(axis, rank - 1)), prod(shape[axis:-1]))
            for axis in reversed(range(rank - 1))
            if prod(shape[axis:-1]) >= _LEAST
        ]

    def __call__(self, x: Array) -> Array | None:
        """Return a copy in row-major order; None if ``x`` lies in another way."""
        for perm, length in self._arrangements:
            flags = x.transpose(perm).flags
            if flags.c_contiguous and flags.aligned:
                return self._copied(x, length)
        return None

    def _copied(self, x: Array, length: int) -> Array:
        count = self._shape[-1]
        rows = x.size // (length * count)
        width = min(lanes(self._itemsize), _floor(length))
        result = self._allocate()
        function = interleaving_function(self._itemsize, count, width)
        pointers, integers = (address(x), address(result)), (rows, -(-rows // _PARTS), length)
        launch(function, pointers, integers, shared=self._is_shared)
        return result


def _floor(number: int) -> int:
    """Return the largest power of two up to ``number``."""
    return 1 << (number.bit_length() - 1)


@lru_cache(MOST_FUNCTIONS)
def interleaving_function(itemsize: int, count: int, width: int) -> Any:
    """Return the function that copies matrices [count, length] to [length, count].

    Its pointers: source and result; the counter of matrices. Its integers: the matrices, those
    that a thread takes at once, the length, of at least ``width``.
    """
    f = Function(
        "interleave",
        f"int{8 * itemsize}",
        ("source", "result", "counter"),
        ("total", "grain", "length"),
    )
    order = [row * width + lane for lane in range(width) for row in range(count)]
    with f.taken(f["total"], f["grain"]) as first:
        last = f.least(f.add(first, f["grain"]), f["total"])
        with f.loop(first, last) as matrix:
            begin = f.multiply(matrix, f.multiply(f["length"], count))
            with f.loop(0, f["length"], width) as tile_start:
                # The last vector overlaps the one before: a shorter one would need a mask.
                at = f.least(tile_start, f.subtract(f["length"], width))
                vectors = [
                    f.load(f["source"], f.add(begin, f.multiply(f["length"], row), at), width)
                    for row in range(count)
                ]
                while len(vectors) > 1:
                    pairs = zip(vectors[::2], [*vectors[1::2], vectors[-1]], strict=False)
                    vectors = [f.joined(one, other) for one, other in pairs]
                interleaved = f.pick(vectors[0], order)
                f.store(interleaved, f["result"], f.add(begin, f.multiply(at, count)))
    return f.compiled()
