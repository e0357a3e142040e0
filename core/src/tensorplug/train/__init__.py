"""Training: optimizers, learning-rate schedules, clipping of gradients.

Functions such as ``adam`` return optimizers as pure functions on trees of tensors; classes such
as ``Adam`` apply the same formulas to variables and hold the state. Both work in compiled
functions. A schedule can be passed wherever a learning rate is expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from tensorplug.tensors.call_hints import hinting_all
from tensorplug.train.clipping import clip_by_global_norm, clip_by_norm, global_norm
from tensorplug.train.loss_scaling import LossScale, LossScaled
from tensorplug.train.optimizer import Optimizer
from tensorplug.train.optimizers import SGD, Adadelta, Adagrad, Adam, Adamax, Momentum, RMSProp
from tensorplug.train.rules import adadelta, adagrad, adam, adamax, momentum, rmsprop, sgd
from tensorplug.train.schedules import (
    constant,
    cosine_decay,
    exponential_decay,
    piecewise_constant,
    polynomial_decay,
    warmup,
)
from tensorplug.train.transformations import GradientTransformation, apply_updates

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "Adamax",
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
    "apply_updates",
    "clip_by_global_norm",
    "clip_by_norm",
    "constant",
    "cosine_decay",
    "exponential_decay",
    "global_norm",
    "momentum",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "sgd",
    "warmup",
]

hinting_all(globals(), __all__)

if not TYPE_CHECKING:  # it would make every name valid

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> NoReturn:
        from tensorplug.introspection import spellings  # only where a name is missing

        raise spellings.missing(__name__, name)
