"""The kernel specs: one step of each rule, for one parameter.

``p`` is the parameter, ``g`` its gradient; what has a prime is an output. Where ``weight_decay``
is not 0, ``g + weight_decay * p`` stands for ``g`` (unless ``decoupled``). Constants such as
``1 - beta1`` are formed in double precision and rounded once. What changes from step to step, the
learning rate and what corrects the bias, comes in tensors of rank 0: a compiled program is right
for every step, and no host has to wait for a device.

=============  ===================================================================================
SgdStep        ``p' = p - rate g``
MomentumStep   ``v' = momentum v + g``; ``p' = p - rate v'``;
               with ``nesterov`` ``p' = p - rate (g + momentum v')``
AdamStep       ``m' = beta1 m + (1 - beta1) g``; ``s' = beta2 s + (1 - beta2) g**2``;
               ``p' = p - rate (m' / mean_correction) / (sqrt(s' / square_correction) + epsilon)``,
               where for the first p stands ``p (1 - rate weight_decay)`` if ``decoupled``
AdamaxStep     m' as above; ``n' = max(beta2 n, |g|)``;
               ``p' = p - rate (m' / mean_correction) / (n' + epsilon)``
AdagradStep    ``s' = s + g**2``; ``p' = p - rate g / sqrt(s' + epsilon)``
RMSPropStep    ``s' = decay s + (1 - decay) g**2``; ``p' = p - rate g / sqrt(s' + epsilon)``;
               with a mean ``m' = decay m + (1 - decay) g``, and ``max(s' - m'**2, 0)`` for ``s'``
               in the root, which rounding might make negative;
               with a velocity ``v' = momentum v + rate g / sqrt(...)``, ``p' = p - v'``
=============  ===================================================================================

These are the formulas of ``rules``, those of TensorFlow.js. SGD, momentum, Adam and AdamW are also
PyTorch's.
"""

from __future__ import annotations

import math
from typing import Any, Final

from tensorplug.plugin import (
    ArgumentError,
    Attribute,
    DTypeError,
    InputTypes,
    KernelSpec,
    ShapeError,
    TensorType,
    attributes,
)
from tensorplug.plugin import dtypes as dt

# float16 has too few bits for means of squares; ``Optimizer`` steps in float32 for it.
_ACCEPTED: Final = frozenset({dt.float32, dt.float64})


def _number(default: float, *, below: float = math.inf) -> Attribute:
    """Return a number from 0 up to ``below``, exclusively."""

    def canonical(value: Any, _known: InputTypes) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < below:
            bound = "finite" if math.isinf(below) else f"less than {below:g}"
            raise ArgumentError(f"must be a number, not negative and {bound}, got {value!r}")
        return float(value)

    return Attribute(canonical, default)


def _stepped(arrays: dict[str, TensorType], **numbers: TensorType) -> tuple[TensorType, ...]:
    """Return the type of the parameter for all arrays but the gradient, after checking all."""
    parameter = arrays["parameter"]
    for name, array in (*arrays.items(), *numbers.items()):
        if array.dtype is not parameter.dtype:
            raise DTypeError(f"{name} must be {parameter.dtype}, as parameter is")
    for name, array in arrays.items():
        if array.shape != parameter.shape:
            raise ShapeError(f"{name} must have the shape of parameter")
    for name, number in numbers.items():
        if number.rank:
            raise ShapeError(f"{name} must be of rank 0")
    return (parameter,) * (len(arrays) - 1)


def _sgd(parameter: TensorType, gradient: TensorType, rate: TensorType) -> TensorType:
    return _stepped({"parameter": parameter, "gradient": gradient}, rate=rate)[0]


def _momentum(
    parameter: TensorType, gradient: TensorType, velocity: TensorType, rate: TensorType
) -> tuple[TensorType, ...]:
    arrays = {"parameter": parameter, "gradient": gradient, "velocity": velocity}
    return _stepped(arrays, rate=rate)


def _adam(
    parameter: TensorType,
    gradient: TensorType,
    mean: TensorType,
    square: TensorType,
    rate: TensorType,
    mean_correction: TensorType,
    square_correction: TensorType,
) -> tuple[TensorType, ...]:
    arrays = {"parameter": parameter, "gradient": gradient, "mean": mean, "square": square}
    return _stepped(
        arrays, rate=rate, mean_correction=mean_correction, square_correction=square_correction
    )


def _adamax(
    parameter: TensorType,
    gradient: TensorType,
    mean: TensorType,
    norm: TensorType,
    rate: TensorType,
    mean_correction: TensorType,
) -> tuple[TensorType, ...]:
    arrays = {"parameter": parameter, "gradient": gradient, "mean": mean, "norm": norm}
    return _stepped(arrays, rate=rate, mean_correction=mean_correction)


def _adagrad(
    parameter: TensorType, gradient: TensorType, square: TensorType, rate: TensorType
) -> tuple[TensorType, ...]:
    arrays = {"parameter": parameter, "gradient": gradient, "square": square}
    return _stepped(arrays, rate=rate)


def _rmsprop(
    parameter: TensorType,
    gradient: TensorType,
    square: TensorType,
    mean: TensorType | None,
    velocity: TensorType | None,
    rate: TensorType,
) -> tuple[TensorType, ...]:
    arrays = {"parameter": parameter, "gradient": gradient, "square": square}
    arrays |= {"mean": mean} if mean else {}
    arrays |= {"velocity": velocity} if velocity else {}
    return _stepped(arrays, rate=rate)


_WEIGHT_DECAY: Final = {"weight_decay": _number(0.0)}
_MEANS: Final = {
    "beta1": _number(0.9, below=1),
    "beta2": _number(0.999, below=1),
    "epsilon": _number(1e-8),
}

SGD = KernelSpec(
    "SgdStep",
    ("parameter", "gradient", "rate"),
    _sgd,
    attributes=_WEIGHT_DECAY,
    accepts=_ACCEPTED,
)
MOMENTUM = KernelSpec(
    "MomentumStep",
    ("parameter", "gradient", "velocity", "rate"),
    _momentum,
    attributes={
        "momentum": _number(0.9),
        "nesterov": attributes.flag(default=False),
        **_WEIGHT_DECAY,
    },
    outputs=("new_parameter", "new_velocity"),
    accepts=_ACCEPTED,
)
ADAM = KernelSpec(
    "AdamStep",
    ("parameter", "gradient", "mean", "square", "rate", "mean_correction", "square_correction"),
    _adam,
    attributes={**_MEANS, **_WEIGHT_DECAY, "decoupled": attributes.flag(default=False)},
    outputs=("new_parameter", "new_mean", "new_square"),
    accepts=_ACCEPTED,
)
ADAMAX = KernelSpec(
    "AdamaxStep",
    ("parameter", "gradient", "mean", "norm", "rate", "mean_correction"),
    _adamax,
    attributes={**_MEANS, **_WEIGHT_DECAY},
    outputs=("new_parameter", "new_mean", "new_norm"),
    accepts=_ACCEPTED,
)
ADAGRAD = KernelSpec(
    "AdagradStep",
    ("parameter", "gradient", "square", "rate"),
    _adagrad,
    attributes={"epsilon": _number(1e-10), **_WEIGHT_DECAY},
    outputs=("new_parameter", "new_square"),
    accepts=_ACCEPTED,
)
# The new parameter and square, then the new mean and velocity, each where it was given.
RMSPROP = KernelSpec(
    "RMSPropStep",
    ("parameter", "gradient", "square", "mean?", "velocity?", "rate"),
    _rmsprop,
    attributes={
        "decay": _number(0.99, below=1),
        "momentum": _number(0.0),
        "epsilon": _number(1e-8),
        **_WEIGHT_DECAY,
    },
    outputs=("outs[]",),
    accepts=_ACCEPTED,
)

SPECS: Final = (SGD, MOMENTUM, ADAM, ADAMAX, ADAGRAD, RMSPROP)
