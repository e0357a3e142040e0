"""Layers: frozen dataclasses whose tensors are what is trained (docs/layers.md).

A layer is a tree, so that gradients, optimizers, ``tp.vmap``, ``tp.compile`` and ``tp.save`` take
it as it is. Make one by its class method ``init``, which draws the weights, or from tensors.
"""

from __future__ import annotations

from tensorplug_train.layers.applying import LayerError, apply, initial_state
from tensorplug_train.layers.attention import MultiHeadAttention
from tensorplug_train.layers.convolution import Conv, ConvTranspose
from tensorplug_train.layers.linear import Embedding, Linear
from tensorplug_train.layers.noise import Dropout
from tensorplug_train.layers.normalization import (
    BatchNorm,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    RMSNorm,
)
from tensorplug_train.layers.recurrent import GRU, LSTM
from tensorplug_train.layers.sequential import Sequential
from tensorplug_train.layers.summary import Summary, summary

__all__ = [
    "GRU",
    "LSTM",
    "BatchNorm",
    "Conv",
    "ConvTranspose",
    "Dropout",
    "Embedding",
    "GroupNorm",
    "InstanceNorm",
    "LayerError",
    "LayerNorm",
    "Linear",
    "MultiHeadAttention",
    "RMSNorm",
    "Sequential",
    "Summary",
    "apply",
    "initial_state",
    "summary",
]
