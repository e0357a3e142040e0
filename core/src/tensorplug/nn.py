"""Neural network ops: convolution, pooling, activation, normalization, recurrent cells."""

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
from tensorplug.ops.normalization import (
    Moments,
    batch_norm,
    local_response_normalization,
    moments,
    moving_average,
)
from tensorplug.ops.pooling import max_pool
from tensorplug.ops.recurrent import basic_lstm_cell, multi_rnn_cell
from tensorplug.ops.regularization import dropout

__all__ = [
    "Moments",
    "basic_lstm_cell",
    "batch_norm",
    "conv2d",
    "dropout",
    "elu",
    "gelu",
    "leaky_relu",
    "local_response_normalization",
    "log_sigmoid",
    "log_softmax",
    "max_pool",
    "moments",
    "moving_average",
    "multi_rnn_cell",
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
