"""Windows that slide over the spatial axes: of convolutions and of pooling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_onnx.values import Host


Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Windows:
    """Where the windows lie, by spatial axis.

    ``taps``: elements of a window; ``dilations``: their distance. ``before`` and ``after``: the
    padding that the node asks for, as far as windows reach into it. ``beyond``: what windows
    read behind it, where their number was rounded up. ``counts``: the number of windows.
    """

    sizes: Sizes
    taps: Sizes
    strides: Sizes
    dilations: Sizes
    before: Sizes
    after: Sizes
    beyond: Sizes
    counts: Sizes

    def pairs(self, *, beyond: bool = True) -> list[tuple[int, int]]:
        """Return the padding of each axis, with or without what lies behind it."""
        return [
            (before, after + more * beyond)
            for before, after, more in zip(self.before, self.after, self.beyond, strict=True)
        ]

    def places(self) -> tuple[Host, Host]:
        """Return what each window reads: int32 and bool [windows, taps].

        The first array has indices into the flattened spatial axes, the second says which are
        not padding (whose index is 0).
        """
        axes = [
            np.arange(count)[:, None] * stride + np.arange(taps) * dilation - before
            for count, stride, taps, dilation, before in zip(
                self.counts, self.strides, self.taps, self.dilations, self.before, strict=True
            )
        ]
        rank = len(axes)
        flat = np.zeros((1,) * (2 * rank), np.int64)
        inside = np.ones((1,) * (2 * rank), np.bool_)
        for axis, (places, size) in enumerate(zip(axes, self.sizes, strict=True)):
            shape = [1] * (2 * rank)
            shape[axis], shape[rank + axis] = places.shape
            spread = places.reshape(shape)
            flat = flat * size + spread
            inside = inside & (spread >= 0) & (spread < size)
        shape = [int(np.prod(self.counts)), int(np.prod(self.taps))]
        return np.where(inside, flat, 0).astype(np.int32).reshape(shape), inside.reshape(shape)


def by_axis(values: Sequence[int] | None, rank: int, name: str) -> Sizes:
    """Return an attribute with a positive number for each spatial axis; by default 1."""
    found = (1,) * rank if values is None else tuple(values)
    if len(found) != rank or min(found, default=1) < 1:
        raise ValueError(f"{name} must be {rank} positive numbers, is {list(found)}")
    return found


def split_padding(pads: Sequence[int] | None, rank: int) -> tuple[Sizes, Sizes]:
    """Return the attribute ``pads`` as paddings before and after each axis; by default 0."""
    found = (0,) * (2 * rank) if pads is None else tuple(pads)
    if len(found) != 2 * rank or min(found, default=0) < 0:
        raise ValueError(f"pads must be {2 * rank} numbers from 0 on, is {list(found)}")
    return found[:rank], found[rank:]


def windows(
    sizes: Sequence[int],
    kernel_shape: Sequence[int],
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Windows:
    """Return the windows of a node.

    Args:
        sizes: of the spatial axes.
        kernel_shape: the number of taps by axis.
        auto_pad: as ONNX says.
        ceil_mode: whether the number of windows is rounded up. A window that would start behind
            the elements is left out.
        dilations: as ONNX says.
        pads: as ONNX says.
        strides: as ONNX says.

    Raises:
        ValueError: an attribute does not fit, or a window is larger than what it slides over.

    """
    rank = len(sizes)
    taps = by_axis(kernel_shape, rank, "kernel_shape")
    steps = by_axis(strides, rank, "strides")
    gaps = by_axis(dilations, rank, "dilations")
    before, after = split_padding(pads, rank)
    spans = tuple((count - 1) * gap + 1 for count, gap in zip(taps, gaps, strict=True))
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        totals = [
            max((-(-size // step) - 1) * step + span - size, 0)
            for size, step, span in zip(sizes, steps, spans, strict=True)
        ]
        smaller, larger = [n // 2 for n in totals], [n - n // 2 for n in totals]
        upper = auto_pad == "SAME_UPPER"
        before, after = map(tuple, (smaller, larger) if upper else (larger, smaller))
    elif auto_pad == "VALID":
        before = after = (0,) * rank
    elif auto_pad not in ("NOTSET", ""):
        raise ValueError(f"auto_pad is {auto_pad!r}")
    counts, ends = [], []
    for size, step, span, first, last in zip(sizes, steps, spans, before, after, strict=True):
        room = first + size + last - span
        if room < 0:
            raise ValueError(f"a window of {span} is larger than {size} with pads {first}, {last}")
        count = (-(-room // step) if ceil_mode else room // step) + 1
        if ceil_mode and (count - 1) * step >= size + first:
            count -= 1
        counts.append(count)
        ends.append(max((count - 1) * step + span - size - first, 0))
    return Windows(
        tuple(sizes),
        taps,
        steps,
        gaps,
        before,
        tuple(map(min, after, ends)),
        tuple(max(end - last, 0) for end, last in zip(ends, after, strict=True)),
        tuple(counts),
    )
