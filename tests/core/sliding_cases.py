"""Where the gradients of convolution and pooling are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .samples import Case, apart, real
from .sliding import ONLY_CONVOLUTION, WINDOWS, Sliding, positions

if TYPE_CHECKING:
    import numpy as np

IN, OUT = 2, 3  # channels


def _image(window: Sliding, height_width: tuple[int, ...], channels: int, salt: int) -> np.ndarray:
    if window.data_format == "NCHW":
        return real(window.batch, channels, *height_width, salt=salt)
    return real(window.batch, *height_width, channels, salt=salt)


def convolution(window: Sliding) -> list[Case]:
    attributes = {
        **window.attributes(),
        "dilations": window.dilations,
        "data_format": window.data_format,
    }
    x = _image(window, window.image, IN, 0)
    filter_ = real(*window.taps, IN, OUT, salt=1)
    dy = _image(window, positions(window), OUT, 2)
    return [
        Case("Conv2D", window.what, {"x": x, "filter": filter_}, ("x", "filter"), attributes),
        Case(
            "Conv2DBackpropInput",
            window.what,
            {"dy": dy, "filter": filter_},
            ("dy", "filter"),
            {**attributes, "input_shape": x.shape},
        ),
        Case(
            "Conv2DBackpropFilter",
            window.what,
            {"x": x, "dy": dy},
            ("x", "dy"),
            {**attributes, "filter_shape": filter_.shape},
        ),
    ]


def pooling(window: Sliding) -> list[Case]:
    attributes = {**window.attributes(), "filter_size": window.taps}
    x = apart(window.batch, *window.image, IN)
    dy = _image(window, positions(window), IN, 2)
    return [
        Case("MaxPool", window.what, {"x": x}, ("x",), attributes),
        # Its third input, the pooled x, is made by the test: a gradient kernel is only
        # defined for an output that belongs to its input.
        Case("MaxPoolGrad", window.what, {"dy": dy, "input": x}, ("dy",), attributes),
    ]


SLIDING = [
    case
    for window in (*WINDOWS, *ONLY_CONVOLUTION)
    for case in (convolution(window) + (pooling(window) if window in WINDOWS else []))
]
