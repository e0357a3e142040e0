"""The geometry of sliding windows: padding, strides, dilations and output sizes.

Padding follows TensorFlow. "same" pads so that the output has ceil(n / stride) positions; an odd
element goes after. "valid" does not pad. An int pads every side by that much. An explicit list
has one (before, after) pair per dimension of x, in its data format; the pairs of batch and
channels are zero. Kernels always get the explicit list. It includes what the rounding mode adds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorplug.contract import shapes
from tensorplug.contract.arguments import quoted
from tensorplug.contract.shapes import MOST_BYTES
from tensorplug.contract.spec import REQUIRED, Attribute
from tensorplug.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes

__all__ = [
    "Padding",
    "Window",
    "Windows",
    "arranged",
    "axes_attribute",
    "channel_axis",
    "pad_attribute",
    "pair_attribute",
    "rounding_attribute",
    "spatial_axes",
    "windows",
]

Pair = tuple[int, int]
Padding = str | int | tuple[Pair, ...]
_ROUND: dict[str | None, Callable[[float], int]] = {
    None: math.floor,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": lambda value: math.floor(value + 0.5),
}


@dataclass(frozen=True, slots=True)
class Window:
    """One axis of a sliding window.

    ``size`` is the length of the input axis, ``filter`` the number of taps, ``out`` the number
    of positions; ``before`` and ``after`` are the padding. If the rounding mode makes ``out``
    larger, ``after`` grows to cover it.
    """

    size: int
    filter: int
    stride: int
    dilation: int
    before: int
    after: int
    out: int

    @classmethod
    def of(
        cls,
        size: int,
        taps: int,
        stride: int,
        dilation: int,
        pad: str | Pair,
        rounding: str | None,
    ) -> Window:
        """Return the window of ``taps`` taps over an axis of ``size`` elements.

        Raises:
            ShapeError: the window does not fit.

        """
        reach = (taps - 1) * dilation + 1
        if pad == "same":
            out = -(-size // stride)
            total = max((out - 1) * stride + reach - size, 0)
            return cls(size, taps, stride, dilation, total // 2, total - total // 2, out)
        before, after = (0, 0) if isinstance(pad, str) else pad
        free = size + before + after - reach
        if free > MOST_BYTES:
            raise ShapeError(f"{size} elements padded by {before} and {after} are too many")
        out = _ROUND[rounding](free / stride) + 1
        if out < 0 or (free < 0 and size):
            raise ShapeError(
                f"a window of {taps} taps with dilation {dilation} does not fit into "
                f"{size} elements padded by {before} and {after}"
            )
        needed = (out - 1) * stride + reach - size - before
        return cls(size, taps, stride, dilation, before, max(after, needed), max(out, 0))


Windows = tuple[Window, ...]  # one per spatial axis, in the order of the axes


def windows(
    sizes: Shape,
    taps: Shape,
    strides: Shape,
    dilations: Shape,
    pad: Padding,
    rounding: str | None,
    spatial: Shape,
) -> Windows:
    """Return the windows of all spatial axes, which ``spatial`` lists by number.

    Raises:
        ShapeError: a window has no taps or does not fit, or batch or channels are padded.

    """
    if min(taps) < 1:
        raise ShapeError(f"a window must have at least one tap along each axis, got {list(taps)}")
    if isinstance(pad, tuple):
        if len(pad) != len(spatial) + 2:
            count = len(spatial) + 2
            raise ShapeError(f"pad must have {count} (before, after) pairs, got {len(pad)}")
        if any(any(pair) for at, pair in enumerate(pad) if at not in spatial):
            raise ShapeError(f"batch and channels cannot be padded, got pad {list(pad)}")
    return tuple(
        Window.of(size, count, stride, dilation, _along(pad, axis), rounding)
        for size, count, stride, dilation, axis in zip(
            sizes, taps, strides, dilations, spatial, strict=True
        )
    )


def _along(pad: Padding, axis: int) -> str | Pair:
    """Return the padding of one axis."""
    if isinstance(pad, str):
        return pad
    return (pad, pad) if isinstance(pad, int) else pad[axis]


_NUMERALS = {1: "one", 2: "two", 3: "three"}


def axes_attribute(count: int, default: Any = REQUIRED) -> Attribute:
    """Return an attribute of one positive int per spatial axis. One int stands for all axes.

    None stands for the default, if there is one.
    """

    def canonical(value: Any, _known: InputTypes) -> Shape:
        numbers = shapes.as_ints(default if value is None and default is not REQUIRED else value)
        if len(numbers) == 1:
            numbers *= count
        if len(numbers) != count or min(numbers) < 1:
            raise ArgumentError(
                f"must be a positive int or {_NUMERALS[count]} of them, got {quoted(value)}"
            )
        if max(numbers) >> 31:
            raise ArgumentError(f"must be less than 2**31, got {quoted(value)}")
        return numbers

    form = f"tuple of {_NUMERALS[count]} ints >= 1, one per spatial axis"
    return Attribute(canonical, default, form)


def pair_attribute(default: Any = REQUIRED) -> Attribute:
    """Return an attribute of two positive ints (height, width); one int stands for both."""
    return axes_attribute(2, default)


_COUNTS = {3: "three", 4: "four", 5: "five"}
_CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def pad_attribute(axes: int, operands: Callable[[InputTypes], tuple[Shape, Shape]]) -> Attribute:
    """Return a padding attribute: one (before, after) pair per dimension of x.

    Callers may also give "same", "valid" or an int. A spec declares this attribute after those
    that say how the window moves: ``strides``, ``dilations``, ``data_format`` and
    ``dim_rounding_mode``. The pairs include what the rounding mode adds.

    Args:
        axes: number of spatial axes.
        operands: returns the shape of x and the taps along each spatial axis.

    """

    def canonical(value: Any, known: InputTypes) -> tuple[Pair, ...]:
        pad = _checked_pad(value, axes)
        rounding = known.get("dim_rounding_mode", "floor")
        if isinstance(pad, str) and rounding != "floor":
            raise ArgumentError(
                f"must be a number or pairs where dim_rounding_mode is {rounding!r}, got "
                f"{quoted(pad)}"
            )
        return _explicit(pad, axes, *operands(known), known)

    form = (
        f"tuple of {_COUNTS[axes + 2]} pairs of ints >= 0, (before, after), one per dimension of "
        "the input; (0, 0) for batch and channels"
    )
    return Attribute(canonical, form=form)


def _checked_pad(value: Any, axes: int) -> Padding:
    if isinstance(value, str):
        if value not in ("same", "valid"):
            raise ArgumentError(f"must be 'same', 'valid', an int or pairs, got {quoted(value)}")
        return value
    if not isinstance(value, list | tuple):
        number = shapes.index(value)
        if number < 0:
            raise ArgumentError(f"must not be negative, got {number}")
        return number
    pairs = [shapes.as_shape(pair, "padding") for pair in value]
    if len(pairs) != axes + 2 or any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(
            f"must be {_COUNTS[axes + 2]} (before, after) pairs, got {quoted(value)}"
        )
    return tuple((pair[0], pair[1]) for pair in pairs)


def _explicit(
    pad: Padding, axes: int, x: Shape, taps: Shape, known: InputTypes
) -> tuple[Pair, ...]:
    """Return ``pad`` as pairs. The spec's rule reports shapes that do not fit."""
    spatial = spatial_axes(known.get("data_format", _CHANNELS_LAST[axes]))
    pairs = [(0, 0)] * (axes + 2) if isinstance(pad, str | int) else list(pad)
    if len(x) != axes + 2 or len(taps) != axes:
        return tuple(pairs)
    strides, dilations = known["strides"], known.get("dilations", (1,) * axes)
    rounding = known.get("dim_rounding_mode", "floor")
    for axis, count, stride, dilation in zip(spatial, taps, strides, dilations, strict=True):
        along = _along(pad, axis)
        try:
            window = Window.of(x[axis], count, stride, dilation, along, rounding)
        except ShapeError:  # the rule raises it again, with a better message
            pairs[axis] = (0, 0) if isinstance(along, str) else along
        else:
            pairs[axis] = (window.before, window.after)
    return tuple(pairs)


def rounding_attribute() -> Attribute:
    """Return the attribute dim_rounding_mode: "floor", "round", "ceil", or None for "floor"."""

    def canonical(value: Any, _known: InputTypes) -> str:
        if not isinstance(value, str | None) or value not in _ROUND:
            raise ArgumentError(f"must be 'floor', 'round', 'ceil' or None, got {quoted(value)}")
        return value or "floor"

    form = "'floor', 'round' or 'ceil'; pad includes what it adds; None becomes 'floor'"
    return Attribute(canonical, None, form)


# A data format names the axes in order: N is the batch, C the channels, D, H and W are spatial.


def channel_axis(data_format: str) -> int:
    """Return the axis of the channels: 3 for NHWC, 1 for NCHW.

    ``data_format``: the name of one of the two.
    """
    return data_format.index("C")


def spatial_axes(data_format: str) -> Shape:
    """Return the spatial axes: (1, 2) for NHWC, (2, 3) for NCHW, (1, 2, 3) for NDHWC.

    ``data_format``: the name of one of the three.
    """
    return tuple(at for at, letter in enumerate(data_format) if letter not in "NC")


def arranged(batch: int, sizes: Shape, channels: int, data_format: str) -> Shape:
    """Return a shape in ``data_format``; ``sizes`` are those of the spatial axes."""
    if data_format[-1] == "C":
        return (batch, *sizes, channels)
    return (batch, channels, *sizes)
