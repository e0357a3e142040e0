"""Optimizers for tensorplug as pure functions on trees of tensors.

>>> import tensorplug as tp
>>> optimizer = adamw(1e-3, weight_decay=0.01)
>>> params = {"w": tp.asarray([1.0, -2.0])}
>>> state = optimizer.init(params)
>>> gradients = tp.grad(lambda params: tp.sum(tp.square(params["w"])))(params)
>>> params, state = optimizer.update(params, state, gradients)
"""

from __future__ import annotations

from tensorplug_optimizers.clipping import clip_by_global_norm, global_norm
from tensorplug_optimizers.optimizer import Optimizer
from tensorplug_optimizers.rules import (
    adagrad,
    adam,
    adamax,
    adamw,
    momentum,
    nesterov,
    rmsprop,
    sgd,
)

__all__ = [
    "Optimizer",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "clip_by_global_norm",
    "global_norm",
    "momentum",
    "nesterov",
    "rmsprop",
    "sgd",
]
