"""Neural network ops: convolution, pooling, activation, normalization, recurrent cells."""

from __future__ import annotations

from tensorplug.ops.nn.activation import (
    elu,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    softmax,
    softplus,
    step,
)
from tensorplug.ops.nn.convolution.convolution import conv1d, conv2d, conv2d_transpose
from tensorplug.ops.nn.convolution.depthwise import depthwise_conv2d, separable_conv2d
from tensorplug.ops.nn.convolution.dilated_pooling import pool
from tensorplug.ops.nn.convolution.morphology import dilation2d
from tensorplug.ops.nn.convolution.pooling import (
    avg_pool,
    avg_pool3d,
    max_pool,
    max_pool3d,
    max_pool_with_argmax,
)
from tensorplug.ops.nn.convolution.volumes import conv3d, conv3d_transpose
from tensorplug.ops.nn.fused import fused_conv2d, fused_depthwise_conv2d, fused_matmul
from tensorplug.ops.nn.gaussian_error import gelu
from tensorplug.ops.nn.layer_normalization import layer_norm
from tensorplug.ops.nn.normalization import (
    Moments,
    batch_norm,
    local_response_normalization,
    moments,
    moving_average,
)
from tensorplug.ops.nn.recurrent import basic_lstm_cell, multi_rnn_cell
from tensorplug.ops.nn.regularization import dropout
from tensorplug.ops.nn.sigmoid_linear import silu

__all__ = [
    "Moments",
    "avg_pool",
    "avg_pool3d",
    "basic_lstm_cell",
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "depthwise_conv2d",
    "dilation2d",
    "dropout",
    "elu",
    "fused_conv2d",
    "fused_depthwise_conv2d",
    "fused_matmul",
    "gelu",
    "layer_norm",
    "leaky_relu",
    "local_response_normalization",
    "log_sigmoid",
    "log_softmax",
    "max_pool",
    "max_pool3d",
    "max_pool_with_argmax",
    "moments",
    "moving_average",
    "multi_rnn_cell",
    "pool",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "step",
]
