"""Shapes that products, convolutions, pools and recurrent layers usually have.

Enlarged cases of these kernels would be odd: long and thin matrices, filters of a hundred places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.case import Case
from tensorplug_conformance.reporting.roofline import SIZES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus


_LETTERS: Final[Mapping[str, tuple[int, ...]]] = {
    "n": (64, 256, 1024),  # of a square
    "s": (14, 28, 56),  # places along an image,
    "h": (7, 14, 28),  # and half of them
    "d": (8, 16, 32),  # along a volume,
    "e": (4, 8, 16),  # and half of them
    "c": (8, 32, 64),  # channels
    "b": (4, 8, 16),  # batch
    "t": (8, 16, 32),  # steps
    "u": (32, 64, 128),  # units, and three and four times as many
    "g": (96, 192, 384),
    "l": (128, 256, 512),
    "q": (16, 64, 256),  # words
}
"""What the letters of the table below stand for, in each size."""

_SAME: Final = {"strides": 1, "pad": "same"}
_HALF: Final = {"filter_size": 2, "strides": 2, "pad": "valid"}
_IMAGE: Final = "1 s s c"
_VOLUME: Final = "1 d d d c"

TYPICAL: Final[Mapping[str, tuple[tuple[str | None, ...], Mapping[str, Any]]]] = {
    "BatchMatMul": (("n n", "n n"), {}),
    "_FusedMatMul": (("n n", "n n", "n", None), {"activation": "relu"}),
    "Conv2D": ((_IMAGE, "3 3 c c"), _SAME),
    "Conv2DBackpropFilter": ((_IMAGE, _IMAGE), {**_SAME, "filter_shape": "3 3 c c"}),
    "Conv2DBackpropInput": ((_IMAGE, "3 3 c c"), {**_SAME, "input_shape": _IMAGE}),
    "FusedConv2D": ((_IMAGE, "3 3 c c", "c", None), {**_SAME, "activation": "relu"}),
    "Conv3D": ((_VOLUME, "3 3 3 c 8"), _SAME),
    "Conv3DBackpropFilterV2": ((_VOLUME, "1 d d d 8"), {**_SAME, "filter_shape": "3 3 3 c 8"}),
    "Conv3DBackpropInputV2": (("1 d d d 8", "3 3 3 c 8"), {**_SAME, "input_shape": _VOLUME}),
    "DepthwiseConv2dNative": ((_IMAGE, "3 3 c 1"), _SAME),
    "DepthwiseConv2dNativeBackpropFilter": (
        (_IMAGE, _IMAGE),
        {**_SAME, "filter_shape": "3 3 c 1"},
    ),
    "DepthwiseConv2dNativeBackpropInput": (
        (_IMAGE, "3 3 c 1"),
        {**_SAME, "input_shape": _IMAGE},
    ),
    "FusedDepthwiseConv2D": ((_IMAGE, "3 3 c 1", "c", None), {**_SAME, "activation": "relu"}),
    "Dilation2D": ((_IMAGE, "3 3 c"), _SAME),
    "Dilation2DBackpropFilter": ((_IMAGE, "3 3 c", _IMAGE), _SAME),
    "Dilation2DBackpropInput": ((_IMAGE, "3 3 c", _IMAGE), _SAME),
    "AvgPool": ((_IMAGE,), _HALF),
    "AvgPoolGrad": (("1 h h c", _IMAGE), _HALF),
    "AvgPool3D": ((_VOLUME,), _HALF),
    "AvgPool3DGrad": (("1 e e e c", _VOLUME), _HALF),
    "MaxPool": ((_IMAGE,), _HALF),
    "MaxPoolGrad": (("1 h h c", _IMAGE, "largest"), _HALF),
    "MaxPoolWithArgmax": ((_IMAGE,), _HALF),
    "MaxPool3D": ((_VOLUME,), _HALF),
    "MaxPool3DGrad": (("1 e e e c", _VOLUME, "largest"), _HALF),
    "Pool": ((_IMAGE,), {"window_shape": 2, "pooling_type": "max", "strides": 2, "pad": "valid"}),
    "ScaledDotProductAttention": (("8 q 64", "8 q 64", "8 q 64", None, None, None), {}),
    "GRU": (("b t g", "u g", "g", "b u", None), {}),
    "GRUGrad": (("b t u", "b t g", "u g", "g", "b u", "b t u", None), {}),
    "LSTM": (("b t l", "u l", "b u", "b u", None), {}),
    "LSTMGrad": (
        ("b t u", "b t u", "b t l", "u l", "b u", "b u", "b t u", "b t u", None),
        {},
    ),
}
"""Kernels, the shapes of their inputs, and their attributes; shapes in letters, NHWC.

``largest``: the largest number in each window of the input before it.
"""


def typical_case(kernel: str, size: str, corpus: Corpus) -> Case | None:
    """Return a call of a kernel in typical shapes; None if the table does not have it."""
    if kernel not in TYPICAL:
        return None
    inputs, attributes = TYPICAL[kernel]
    at = list(SIZES).index(size)

    def shape(text: str) -> tuple[int, ...]:
        return tuple(_LETTERS[n][at] if n in _LETTERS else int(n) for n in text.split())

    operands: list[Array | None] = []
    for text in inputs:
        if text == "largest":
            operands.append(_largest(operands[-1], attributes["filter_size"]))
        else:
            operands.append(None if text is None else corpus.ordinary(shape(text), -1.0, 1.0))
    settings = {
        name: shape(value) if name.endswith("_shape") and isinstance(value, str) else value
        for name, value in attributes.items()
    }
    return Case(size, tuple(operands), settings)


def _largest(x: Array | None, window: int) -> Array:
    """Return the largest number of each window; windows do not overlap, and fill the input."""
    assert x is not None  # by the table
    array = x
    for axis in range(1, x.ndim - 1):
        split = (*array.shape[:axis], -1, window, *array.shape[axis + 1 :])
        array = array.reshape(split).max(axis + 1)
    return array
