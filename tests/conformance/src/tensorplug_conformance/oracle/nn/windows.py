"""Positions of the taps of a sliding window: an independent copy of TensorFlow's padding rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

Index = tuple[
    Any, ...
]  # of all of the first axis (the batch), and of those after the spatial ones
Tap = tuple[tuple[int, ...], Index, Index]  # which, positions of the output, elements under it


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: ``out`` positions, the first of which starts at ``-before``."""

    size: int
    taps: int
    stride: int
    dilation: int
    before: int
    out: int

    def inside(self, tap: int) -> list[tuple[int, int]]:
        """Return the positions at which a tap is not over padding, and the elements there."""
        pairs = (
            (position, position * self.stride + tap * self.dilation - self.before)
            for position in range(self.out)
        )
        return [(position, at) for position, at in pairs if 0 <= at < self.size]


def axis(size: int, taps: int, stride: int, dilation: int, pad: Any, rounding: str | None) -> Axis:
    """Return the axis for ``pad``: "same", "valid" or a (before, after) pair."""
    span = (taps - 1) * dilation + 1
    if pad == "same":
        out = math.ceil(size / stride)
        missing = max(0, (out - 1) * stride + span - size)
        return Axis(size, taps, stride, dilation, missing // 2, out)
    before, after = (0, 0) if pad == "valid" else pad
    steps = (before + size + after - span) / stride
    return Axis(size, taps, stride, dilation, before, _rounded(steps, rounding) + 1)


def _rounded(value: float, how: str | None) -> int:
    if how == "ceil":
        return math.ceil(value)
    return math.floor(value + 0.5 if how == "round" else value)


def several(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    """Return one number per axis, from an int or from as many ints."""
    return (value,) * count if isinstance(value, int) else tuple(value)


def all_axes(
    sizes: Sequence[int],
    taps: Sequence[int],
    *,
    strides: Any,
    pad: Any,
    dilations: Any = 1,
    data_format: str = "C",
    dim_rounding_mode: str | None = None,
) -> tuple[Axis, ...]:
    """Return the spatial axes in order; a data format ends with C where channels come last."""
    count = len(sizes)
    first = 1 if data_format.endswith("C") else 2
    steps, spreads = several(strides, count), several(dilations, count)
    items = []
    for i in range(count):
        if isinstance(pad, int):
            one: Any = (pad, pad)
        else:
            one = pad if isinstance(pad, str) else pad[first + i]
        items.append(axis(sizes[i], taps[i], steps[i], spreads[i], one, dim_rounding_mode))
    return tuple(items)


@lru_cache(maxsize=8)  # the slopes of a gradient ask for the same ones a hundred times
def places(axes: tuple[Axis, ...]) -> list[Tap]:
    """Return each tap with indices of the positions and of the elements where it is inside."""
    items = []
    for tap in product(*(range(window.taps) for window in axes)):
        pairs = [window.inside(number) for window, number in zip(axes, tap, strict=True)]
        if all(pairs):
            positions, elements = (
                np.ix_(*([pair[side] for pair in along] for along in pairs)) for side in (0, 1)
            )
            items.append((tap, (slice(None), *positions), (slice(None), *elements)))
    return items
