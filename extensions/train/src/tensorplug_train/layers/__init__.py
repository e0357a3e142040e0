"""Layers: frozen dataclasses whose tensors are what is trained (docs/layers.md).

A layer is a tree, so that gradients, optimizers, ``tp.vmap``, ``tp.compile`` and ``tp.save`` take
it as it is. Make one by its class method ``init``, which draws the weights, or from tensors.
"""

from __future__ import annotations

from tensorplug_train.layers.applying import LayerError, apply, initial_state
from tensorplug_train.layers.linear import Embedding, Linear
from tensorplug_train.layers.sequential import Sequential

__all__ = [
    "Embedding",
    "LayerError",
    "Linear",
    "Sequential",
    "apply",
    "initial_state",
]
