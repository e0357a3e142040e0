"""Neural network ops: convolution, pooling, activation."""

from __future__ import annotations

from tensorplug.ops.activation import (
    elu,
    gelu,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    step,
)
from tensorplug.ops.convolution import conv2d
from tensorplug.ops.pooling import max_pool

__all__ = [
    "conv2d",
    "elu",
    "gelu",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "max_pool",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "step",
]
