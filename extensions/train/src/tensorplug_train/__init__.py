"""Training: optimizers, learning-rate schedules, clipping of gradients.

Functions such as ``adam`` return optimizers as pure functions on trees of tensors, which can also
update variables (``minimize``). Both work in compiled functions. A schedule can be passed wherever
a learning rate is expected.
"""

from __future__ import annotations

from tensorplug_train import initializers, layers, metrics
from tensorplug_train.clipping import clip_by_global_norm, clip_by_norm, global_norm
from tensorplug_train.composition import accumulate, chain, ema
from tensorplug_train.data import Batches, batches, padded_batches
from tensorplug_train.fitting.callbacks import CsvLog, EarlyStopping, Epoch, TensorBoardLog
from tensorplug_train.fitting.checkpoints import Checkpoints
from tensorplug_train.fitting.curves import curves
from tensorplug_train.fitting.fit import Fit, fit
from tensorplug_train.fitting.learning_rates import LearningRates, find_learning_rate
from tensorplug_train.fitting.objective import Outcome, supervised
from tensorplug_train.large_scale import adafactor, lamb, lion
from tensorplug_train.loss_scaling import LossScale, LossScaled
from tensorplug_train.quasi_newton import lbfgs
from tensorplug_train.rules import (
    adadelta,
    adagrad,
    adam,
    adamax,
    adamw,
    momentum,
    rmsprop,
    sgd,
)
from tensorplug_train.schedules import (
    constant,
    cosine_decay,
    exponential_decay,
    one_cycle,
    piecewise_constant,
    polynomial_decay,
    warmup,
)
from tensorplug_train.transformation import GradientTransformation, apply_updates

__all__ = [
    "Batches",
    "Checkpoints",
    "CsvLog",
    "EarlyStopping",
    "Epoch",
    "Fit",
    "GradientTransformation",
    "LearningRates",
    "LossScale",
    "LossScaled",
    "Outcome",
    "TensorBoardLog",
    "accumulate",
    "adadelta",
    "adafactor",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "apply_updates",
    "batches",
    "chain",
    "clip_by_global_norm",
    "clip_by_norm",
    "constant",
    "cosine_decay",
    "curves",
    "ema",
    "exponential_decay",
    "find_learning_rate",
    "fit",
    "global_norm",
    "initializers",
    "lamb",
    "layers",
    "lbfgs",
    "lion",
    "metrics",
    "momentum",
    "one_cycle",
    "padded_batches",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "sgd",
    "supervised",
    "warmup",
]
