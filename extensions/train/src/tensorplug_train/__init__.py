"""Training: optimizers, learning-rate schedules, clipping of gradients.

Functions such as ``adam`` return optimizers as pure functions on trees of tensors; classes such
as ``Adam`` apply the same formulas to variables and hold the state. Both work in compiled
functions. A schedule can be passed wherever a learning rate is expected.
"""

from __future__ import annotations

from tensorplug_train import initializers, layers, metrics
from tensorplug_train.clipping import clip_by_global_norm, clip_by_norm, global_norm
from tensorplug_train.data import Batches, batches
from tensorplug_train.loss_scaling import LossScale, LossScaled
from tensorplug_train.optimizer import Optimizer
from tensorplug_train.optimizers import SGD, Adadelta, Adagrad, Adam, Adamax, Momentum, RMSProp
from tensorplug_train.rules import adadelta, adagrad, adam, adamax, adamw, momentum, rmsprop, sgd
from tensorplug_train.schedules import (
    constant,
    cosine_decay,
    exponential_decay,
    piecewise_constant,
    polynomial_decay,
    warmup,
)
from tensorplug_train.transformations import GradientTransformation, apply_updates

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "Adamax",
    "Batches",
    "GradientTransformation",
    "LossScale",
    "LossScaled",
    "Momentum",
    "Optimizer",
    "RMSProp",
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "apply_updates",
    "batches",
    "clip_by_global_norm",
    "clip_by_norm",
    "constant",
    "cosine_decay",
    "exponential_decay",
    "global_norm",
    "initializers",
    "layers",
    "metrics",
    "momentum",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "sgd",
    "warmup",
]
