"""Which elements lie under which taps of a window, by position: any stride and padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tensorplug.plugin import Window
    from tensorplug_cpu.arrays import Array


@dataclass(frozen=True, slots=True)
class TapLists:
    """For each position the elements that it reads, in order, and by which tap.

    The links of position ``p`` are those from ``starts[p]`` up to ``starts[p + 1]``.
    """

    starts: Array
    elements: Array
    taps: Array

    @classmethod
    def forward(cls, window: Window) -> TapLists:
        """Return what each position of a window reads of its axis."""
        positions, taps = np.indices((window.out, window.filter))
        elements = positions * window.stride + taps * window.dilation - window.before
        inside = (elements >= 0) & (elements < window.size)
        return cls(_starts(inside.sum(axis=1)), elements[inside], taps[inside])

    @classmethod
    def backward(cls, window: Window) -> TapLists:
        """Return for each element of the axis the positions that read it."""
        ahead = cls.forward(window)
        positions = np.repeat(np.arange(window.out), np.diff(ahead.starts))
        order = np.argsort(ahead.elements, kind="stable")
        counts = np.bincount(ahead.elements, minlength=window.size)
        return cls(_starts(counts), positions[order], ahead.taps[order])

    def scaled(self, step: int, tap_step: int) -> TapLists:
        """Return the links with offsets instead of numbers."""
        return TapLists(self.starts, self.elements * step, self.taps * tap_step)

    def beside(self, inner: TapLists) -> TapLists:
        """Return the links of two axes as one; those of ``inner`` vary faster."""
        counts = np.multiply.outer(np.diff(self.starts), np.diff(inner.starts)).reshape(-1)
        own, other = [], []
        for position in range(len(self.starts) - 1):
            outer = np.arange(self.starts[position], self.starts[position + 1])
            for first, last in zip(inner.starts[:-1], inner.starts[1:], strict=True):
                pair = np.meshgrid(outer, np.arange(first, last), indexing="ij")
                own.append(pair[0].reshape(-1))
                other.append(pair[1].reshape(-1))
        a, b = (np.concatenate([*part, np.arange(0)]) for part in (own, other))
        return TapLists(
            _starts(counts),
            self.elements[a] + inner.elements[b],
            self.taps[a] + inner.taps[b],
        )

    def table(self) -> Array:
        """Return elements and taps side by side, for a native function."""
        return np.ascontiguousarray(np.stack([self.elements, self.taps], axis=1))


def _starts(counts: Array) -> Array:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
