"""Sliding windows that differ in everything that can go wrong, for convolution and pooling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Sliding:
    """A window over an image: what convolution and pooling are tried with."""

    what: str
    image: tuple[int, int]
    taps: tuple[int, int]
    strides: int | tuple[int, int] = 1
    pad: Any = "valid"
    dilations: int | tuple[int, int] = 1
    rounding: str | None = None
    data_format: str = "NHWC"
    batch: int = 2

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that convolution and pooling share."""
        return {"strides": self.strides, "pad": self.pad, "dim_rounding_mode": self.rounding}


WINDOWS = (  # none of them sees nothing but padding: the maximum of that is -inf
    Sliding("valid", (4, 5), (2, 3)),
    Sliding("1 by 1", (2, 3), (1, 1)),
    Sliding("whole image", (3, 2), (3, 2)),
    Sliding("same, odd remainder", (4, 5), (2, 2), pad="same"),
    Sliding("same, stride 2", (5, 4), (3, 3), 2, "same"),
    Sliding("strides 2 and 3", (5, 7), (2, 2), (2, 3)),
    Sliding("stride beyond window", (6, 7), (2, 2), 3),
    Sliding("same, stride beyond window", (5, 7), (2, 1), 3, "same"),
    Sliding("remainder unused", (6, 6), (3, 3), 2),
    Sliding("pad 1", (3, 4), (3, 2), 2, 1),
    Sliding("explicit pads", (4, 3), (2, 2), 1, ((0, 0), (1, 0), (0, 1), (0, 0))),
    Sliding("ceil", (4, 5), (2, 2), 3, 0, rounding="ceil"),
    Sliding("ceil with pad", (5, 4), (3, 3), (2, 2), 1, rounding="ceil"),
    Sliding("round", (5, 6), (2, 2), 2, 0, rounding="round"),
    Sliding("no images", (3, 3), (2, 2), batch=0),
    Sliding("no rows, same", (0, 4), (2, 3), (1, 2), "same"),
    Sliding("no columns, same", (3, 0), (3, 3), 2, "same"),
    Sliding("no columns, valid", (3, 0), (2, 1)),
)
ONLY_CONVOLUTION = (
    Sliding("wide pads", (4, 3), (2, 2), 1, ((0, 0), (3, 0), (0, 2), (0, 0))),
    Sliding("ceil into padding", (5, 4), (2, 3), 2, 1, rounding="ceil"),
    Sliding("dilation 2", (5, 6), (2, 3), 1, "valid", 2),
    Sliding("dilations 1 and 2, same", (4, 5), (2, 2), 1, "same", (1, 2)),
    Sliding("dilation and stride", (7, 6), (2, 2), 2, "same", 2),
    Sliding("dilation and pads", (4, 4), (2, 2), 2, ((0, 0), (2, 1), (1, 0), (0, 0)), 3),
    Sliding("channels first", (4, 5), (2, 3), 2, "same", data_format="NCHW"),
    Sliding(
        "channels first, pads",
        (4, 3),
        (2, 2),
        1,
        ((0, 0), (0, 0), (1, 0), (0, 2)),
        2,
        data_format="NCHW",
    ),
)


def positions(window: Sliding) -> tuple[int, ...]:
    """Return how many positions the window has, by hand: TensorFlow's and tfjs's formulas."""
    at = 1 if window.data_format == "NHWC" else 2
    return tuple(_positions(window, axis, at + axis) for axis in (0, 1))


def _positions(window: Sliding, axis: int, dimension: int) -> int:
    size, taps = window.image[axis], window.taps[axis]
    stride = int(np.broadcast_to(window.strides, 2)[axis])
    dilation = int(np.broadcast_to(window.dilations, 2)[axis])
    if window.pad == "same":
        return int(np.ceil(size / stride))
    padding = 0
    if isinstance(window.pad, int):
        padding = 2 * window.pad
    elif window.pad != "valid":
        padding = sum(window.pad[dimension])
    exact = (size + padding - (taps - 1) * dilation - 1) / stride
    rounded = {None: np.floor, "ceil": np.ceil, "round": np.round}[window.rounding](exact)
    return int(rounded) + 1
