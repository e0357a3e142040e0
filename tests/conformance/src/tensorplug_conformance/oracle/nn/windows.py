"""Positions of the taps of a sliding window: an independent copy of TensorFlow's padding rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Array

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Index = tuple[Array, Array]  # output and input positions, ready to index with
Tap = tuple[int, int, int]  # output position, tap, input position


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: ``out`` positions, the first of which starts at ``-before``."""

    size: int
    taps: int
    stride: int
    dilation: int
    before: int
    out: int

    def inside(self) -> Iterator[Tap]:
        """Yield every (output position, tap, input position) that is not padding."""
        for position in range(self.out):
            for tap in range(self.taps):
                at = position * self.stride + tap * self.dilation - self.before
                if 0 <= at < self.size:
                    yield position, tap, at


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


def pair(value: int | Sequence[int]) -> tuple[int, int]:
    """Return (height, width), from an int or from two."""
    height, width = several(value, 2)
    return height, width


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


def places(axes: Sequence[Axis]) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
    """Yield each tap with indices of the positions and of the elements where it is inside.

    The indices select all of the first axis (the batch) and of those after the spatial ones.
    """
    for tap in product(*(range(window.taps) for window in axes)):
        pairs = [
            [(p, at) for p, number, at in window.inside() if number == wanted]
            for window, wanted in zip(axes, tap, strict=True)
        ]
        if all(pairs):
            positions = np.ix_(*([p for p, _ in found] for found in pairs))
            elements = np.ix_(*([at for _, at in found] for found in pairs))
            yield tap, (slice(None), *positions), (slice(None), *elements)


def both(
    sizes: tuple[int, int],
    taps: tuple[int, int],
    *,
    strides: Any,
    pad: Any,
    dilations: Any = 1,
    data_format: str = "NHWC",
    dim_rounding_mode: str | None = None,
) -> tuple[Axis, Axis]:
    """Return the axes of height and width."""
    height, width = all_axes(
        sizes,
        taps,
        strides=strides,
        pad=pad,
        dilations=dilations,
        data_format=data_format,
        dim_rounding_mode=dim_rounding_mode,
    )
    return height, width


def taps(height: Axis, width: Axis) -> Iterator[tuple[int, int, Index, Index]]:
    """Yield each tap (i, j) with the rows and the columns at which it is not over padding."""
    for i in range(height.taps):
        rows = [(p, at) for p, tap, at in height.inside() if tap == i]
        for j in range(width.taps):
            columns = [(q, at) for q, tap, at in width.inside() if tap == j]
            if rows and columns:
                down, across = np.array(rows).T[..., None], np.array(columns).T[:, None, :]
                yield i, j, (down[0], down[1]), (across[0], across[1])
