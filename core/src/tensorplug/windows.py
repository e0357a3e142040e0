"""The geometry of sliding windows: padding, strides, dilations and output sizes in 2-D.

Padding follows TensorFlow: "same" pads so that the output has ceil(n / stride) positions, the
odd element after; "valid" pads nothing; an int pads that much on every side; an explicit list
has one (before, after) pair per dimension of x in its data format, zero for batch and channels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorplug import shapes
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.spec import REQUIRED, Attribute

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.shapes import Shape
    from tensorplug.spec import InputTypes

__all__ = ["Padding", "Window", "pad_attribute", "pair_attribute", "rounding_attribute"]

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

    ``size``: of the input; ``filter``: taps; ``before`` and ``after``: padding; ``out``:
    positions. Where a rounding mode makes ``out`` larger, ``after`` grows to cover it.
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
            ShapeError: when not even one position fits.

        """
        reach = (taps - 1) * dilation + 1
        if pad == "same":
            out = -(-size // stride)
            total = max((out - 1) * stride + reach - size, 0)
            return cls(size, taps, stride, dilation, total // 2, total - total // 2, out)
        before, after = (0, 0) if isinstance(pad, str) else pad
        free = size + before + after - reach
        out = _ROUND[rounding](free / stride) + 1
        if out < 0 or (free < 0 and size):
            raise ShapeError(
                f"a window of {taps} taps with dilation {dilation} does not fit into "
                f"{size} elements padded by {before} and {after}"
            )
        needed = (out - 1) * stride + reach - size - before
        return cls(size, taps, stride, dilation, before, max(after, needed), max(out, 0))


def windows(
    height_width: Pair,
    taps: Pair,
    strides: Pair,
    dilations: Pair,
    pad: Padding,
    rounding: str | None,
    spatial: Pair,
) -> tuple[Window, Window]:
    """Return the windows of both axes; ``spatial`` are their positions in the data format.

    Raises:
        ShapeError: when a window has no taps or does not fit, or batch or channels are padded.

    """
    if min(taps) < 1:
        raise ShapeError(f"a window must have taps, got {list(taps)}")
    if isinstance(pad, tuple) and any(any(pad[at]) for at in range(4) if at not in spatial):
        raise ShapeError(f"batch and channels cannot be padded, got pad {list(pad)}")
    result = []
    for at in (0, 1):
        if isinstance(pad, str):
            one: str | Pair = pad
        elif isinstance(pad, int):
            one = (pad, pad)
        else:
            one = pad[spatial[at]]
        result.append(
            Window.of(height_width[at], taps[at], strides[at], dilations[at], one, rounding)
        )
    return result[0], result[1]


def pair_attribute(default: Any = REQUIRED) -> Attribute:
    """Return an attribute of two positive ints (height, width); one int stands for both."""

    def canonical(value: Any, _known: InputTypes) -> Pair:
        given = shapes.as_ints(value)
        pair = given * 2 if len(given) == 1 else given
        if len(pair) != 2 or min(pair) < 1:
            raise ArgumentError(f"must be a positive int or two of them, got {value!r}")
        return (pair[0], pair[1])

    return Attribute(canonical, default)


def pad_attribute() -> Attribute:
    """Return a padding attribute: "same", "valid", an int, or one pair per dimension."""

    def canonical(value: Any, _known: InputTypes) -> Padding:
        if isinstance(value, str):
            if value not in ("same", "valid"):
                raise ArgumentError(f"must be 'same', 'valid', an int or pairs, got {value!r}")
            return value
        if not isinstance(value, list | tuple):
            number = shapes.index(value)
            if number < 0:
                raise ArgumentError(f"must not be negative, got {number}")
            return number
        pairs = [shapes.as_shape(each, "padding") for each in value]
        if len(pairs) != 4 or any(len(pair) != 2 for pair in pairs):
            raise ArgumentError(f"needs four (before, after) pairs, got {value!r}")
        return tuple((pair[0], pair[1]) for pair in pairs)

    return Attribute(canonical)


def rounding_attribute() -> Attribute:
    """Return tfjs's dim_rounding_mode: None (as floor), "floor", "round" or "ceil"."""

    def canonical(value: Any, known: InputTypes) -> str | None:
        if not isinstance(value, str | None) or value not in _ROUND:
            raise ArgumentError(f"must be 'floor', 'round', 'ceil' or None, got {value!r}")
        if value is not None and isinstance(known.get("pad"), str):
            raise ArgumentError("needs a numeric pad; 'same' and 'valid' leave nothing to round")
        return value

    return Attribute(canonical, None)


def spatial_axes(data_format: str) -> Pair:
    """Return the axes of height and width: (1, 2) for NHWC, (2, 3) for NCHW."""
    return (1, 2) if data_format == "NHWC" else (2, 3)


def arranged(batch: int, height_width: Pair, channels: int, data_format: str) -> Shape:
    """Return a shape in ``data_format``."""
    if data_format == "NHWC":
        return (batch, *height_width, channels)
    return (batch, channels, *height_width)
