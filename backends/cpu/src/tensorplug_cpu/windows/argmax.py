"""The argmax of each window: the first tap, in row-major order, that holds the largest element.

The work goes block by block, so that all operands stay in the cache.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tensorplug_cpu.windows.separable import tap_slices

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Windows
    from tensorplug_cpu.arrays import Array

    Index = tuple[slice, ...]
    Visit = Callable[[int, Index, Index, Array], None]


_BLOCK = 1 << 16  # windows: long enough to make little of Python, short enough for a cache


class WindowArgmax:
    """Finds the winning taps for arrays [batch, spatial axes, channels]."""

    def __init__(self, batch: int, windows: Windows, channels: int) -> None:
        first, *others = windows
        row = prod(other.out for other in others) * channels
        self.rows = max(1, _BLOCK // max(row, 1))  # of the first spatial axis, in a block
        self.images = max(1, self.rows // max(first.out, 1))
        self.batch = batch
        self._shape = (*(other.out for other in others), channels)
        self._out = first.out
        rest = list(product(*map(tap_slices, others)))
        self._blocks: list[tuple[int, int, list[tuple[int, Index, Index]]]] = []
        for start in range(0, first.out, self.rows):
            stop = min(start + self.rows, first.out)
            taps = list(product(tap_slices(first, start, stop), rest))
            seen = [
                (
                    number,
                    (slice(None), own[0], *(item[0] for item in more)),
                    (slice(None), own[1], *(item[1] for item in more)),
                )
                for number, (own, more) in enumerate(taps)
            ]
            # A tap that sees nothing in this block has an empty slice somewhere.
            kept = [item for item in seen if all(one != slice(0) for one in item[1])]
            self._blocks.append((start, stop, kept))

    def visit(self, x: Array, output: Array, visit: Callable[..., None]) -> None:
        """Call ``visit(images, tap, positions, elements, wins)`` for each tap in each block.

        ``images`` is a slice of the batch; ``positions`` and ``elements`` index what is left
        after it; ``wins`` says which of the positions the tap wins.
        """
        floating = x.dtype.kind == "f"
        for begin in range(0, self.batch, self.images):
            images = slice(begin, begin + self.images)
            source, largest = x[images], output[images]
            for start, stop, taps in self._blocks:
                block = largest[:, start:stop]
                undefined = floating and bool(np.isnan(np.maximum.reduce(block, axis=None)))
                settled = np.zeros(block.shape, bool)
                for number, positions, elements in taps:
                    tap, meant = source[elements], largest[positions]
                    wins = np.equal(tap, meant)
                    if undefined:
                        wins |= np.isnan(tap)
                    own = positions[1]
                    there = settled[:, own.start - start : own.stop - start, *positions[2:]]
                    np.greater(wins, there, out=wins)
                    np.logical_or(there, wins, out=there)
                    visit(images, number, positions, elements, wins)
