"""The rules, one module for each family of operators. To import this registers them."""

from __future__ import annotations

from tensorplug_onnx.operators import (
    boxes,
    casting,
    constants,
    control,
    convolution,
    elementwise,
    images,
    indexing,
    linear_algebra,
    movement,
    normalization,
    pooling,
    quantization,
    rearranging,
    recurrent,
    reductions,
    sequences,
    text,
)

__all__ = [
    "boxes",
    "casting",
    "constants",
    "control",
    "convolution",
    "elementwise",
    "images",
    "indexing",
    "linear_algebra",
    "movement",
    "normalization",
    "pooling",
    "quantization",
    "rearranging",
    "recurrent",
    "reductions",
    "sequences",
    "text",
]
