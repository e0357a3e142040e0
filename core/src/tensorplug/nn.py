"""Neural network ops: convolution, pooling, activation."""

from __future__ import annotations

from tensorplug.ops.activation import log_softmax, relu, sigmoid, softmax
from tensorplug.ops.convolution import conv2d
from tensorplug.ops.pooling import max_pool

__all__ = ["conv2d", "log_softmax", "max_pool", "relu", "sigmoid", "softmax"]
