"""The steps from other ops, for every backend that we wrote no kernel for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.plugin import DecompositionTable
from tensorplug_train import specs

if TYPE_CHECKING:
    from tensorplug import Tensor

decompositions = DecompositionTable(reads=())


def _decayed(gradient: Tensor, parameter: Tensor, weight_decay: float) -> Tensor:
    """Leave the gradient alone where there is no decay: 0 times an infinite parameter is NaN."""
    return gradient + parameter * weight_decay if weight_decay else gradient


def _mean(old: Tensor, new: Tensor, keep: float) -> Tensor:
    """Return the running mean of which a share ``keep`` stays."""
    return old * keep + new * (1.0 - keep)


@decompositions.of(specs.SGD)
def sgd(parameter: Tensor, gradient: Tensor, rate: Tensor, *, weight_decay: float) -> Tensor:
    """Fall along the gradient."""
    return parameter - _decayed(gradient, parameter, weight_decay) * rate


@decompositions.of(specs.MOMENTUM)
def momentum(
    parameter: Tensor,
    gradient: Tensor,
    velocity: Tensor,
    rate: Tensor,
    *,
    momentum: float,
    nesterov: bool,
    weight_decay: float,
) -> tuple[Tensor, Tensor]:
    """Fall along the velocity, or ahead of it."""
    g = _decayed(gradient, parameter, weight_decay)
    v = velocity * momentum + g
    return parameter - (g + v * momentum if nesterov else v) * rate, v


@decompositions.of(specs.ADAM)
def adam(
    parameter: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    rate: Tensor,
    mean_correction: Tensor,
    square_correction: Tensor,
    *,
    attributes: dict[str, Any],
) -> tuple[Tensor, Tensor, Tensor]:
    """Divide by roots instead of rooting a quotient, which might overflow."""
    weight_decay, decoupled = attributes["weight_decay"], attributes["decoupled"]
    g = gradient if decoupled else _decayed(gradient, parameter, weight_decay)
    start = parameter * (1.0 - rate * weight_decay) if decoupled else parameter
    m = _mean(mean, g, attributes["beta1"])
    s = _mean(square, g * g, attributes["beta2"])
    scale = tp.sqrt(s) / tp.sqrt(square_correction) + attributes["epsilon"]
    return start - m / scale * (rate / mean_correction), m, s


@decompositions.of(specs.ADAMAX)
def adamax(
    parameter: Tensor,
    gradient: Tensor,
    mean: Tensor,
    norm: Tensor,
    rate: Tensor,
    mean_correction: Tensor,
    *,
    attributes: dict[str, Any],
) -> tuple[Tensor, Tensor, Tensor]:
    """Add epsilon to the norm, which may be 0."""
    g = _decayed(gradient, parameter, attributes["weight_decay"])
    m = _mean(mean, g, attributes["beta1"])
    n = tp.maximum(norm * attributes["beta2"], tp.abs(g))
    return parameter - m / (n + attributes["epsilon"]) * (rate / mean_correction), m, n


@decompositions.of(specs.ADAGRAD)
def adagrad(
    parameter: Tensor,
    gradient: Tensor,
    square: Tensor,
    rate: Tensor,
    *,
    epsilon: float,
    weight_decay: float,
) -> tuple[Tensor, Tensor]:
    """Add up all squares there ever were."""
    g = _decayed(gradient, parameter, weight_decay)
    s = square + g * g
    return parameter - g / tp.sqrt(s + epsilon) * rate, s


@decompositions.of(specs.RMSPROP)
def rmsprop(
    parameter: Tensor,
    gradient: Tensor,
    square: Tensor,
    mean: Tensor | None,
    velocity: Tensor | None,
    rate: Tensor,
    *,
    attributes: dict[str, Any],
) -> list[Tensor]:
    """Return the slots in the order of the inputs."""
    decay = attributes["decay"]
    g = _decayed(gradient, parameter, attributes["weight_decay"])
    s = _mean(square, g * g, decay)
    kept, under = [s], s
    if mean is not None:
        m = _mean(mean, g, decay)
        kept.append(m)
        under = tp.maximum(s - m * m, 0.0)
    move = g / tp.sqrt(under + attributes["epsilon"]) * rate
    if velocity is not None:
        move = velocity * attributes["momentum"] + move
        kept.append(move)
    return [parameter - move, *kept]
