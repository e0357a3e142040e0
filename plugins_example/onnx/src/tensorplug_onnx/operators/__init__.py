"""The rules, one module for each family of operators. To import this registers them."""

from __future__ import annotations

from tensorplug_onnx.operators import (
    casting,
    control,
    convolution,
    elementwise,
    indexing,
    linear_algebra,
    movement,
    pooling,
    quantization,
    reductions,
    sequences,
)

__all__ = [
    "casting",
    "control",
    "convolution",
    "elementwise",
    "indexing",
    "linear_algebra",
    "movement",
    "pooling",
    "quantization",
    "reductions",
    "sequences",
]
