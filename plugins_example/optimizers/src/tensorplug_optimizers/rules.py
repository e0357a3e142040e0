"""The optimizers: each names its kernel, what it keeps, and PyTorch's defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug_optimizers import specs
from tensorplug_optimizers.optimizer import Optimizer

if TYPE_CHECKING:
    from tensorplug_optimizers.optimizer import LearningRate


def sgd(learning_rate: LearningRate = 1e-3, *, weight_decay: float = 0.0) -> Optimizer:
    """Return gradient descent: ``p -= rate * g``.

    Here and below ``p`` is a parameter, ``g`` its gradient, ``rate`` the learning rate: a number,
    a tensor of rank 0, or a function of the number of steps taken before. With ``weight_decay``
    ``g + weight_decay * p`` takes the gradient's place.

    Raises:
        ArgumentError: a number is negative or out of range; so for all of these functions.

    """
    return Optimizer("sgd", specs.SGD, {}, (), learning_rate, {"weight_decay": weight_decay})


def momentum(
    learning_rate: LearningRate = 1e-3,
    momentum: float = 0.9,
    *,
    nesterov: bool = False,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Return gradient descent with momentum: ``v = momentum * v + g``, then ``p -= rate * v``.

    With ``nesterov`` ``p -= rate * (g + momentum * v)``. v is the state's "velocity".

    Source: Sutskever, Martens, Dahl and Hinton, "On the importance of initialization and momentum
    in deep learning", 2013, in PyTorch's form, where the rate stands outside of v.

    """
    attributes = {"momentum": momentum, "nesterov": nesterov, "weight_decay": weight_decay}
    return Optimizer("momentum", specs.MOMENTUM, {"velocity": 0.0}, (), learning_rate, attributes)


def nesterov(
    learning_rate: LearningRate = 1e-3, momentum: float = 0.9, *, weight_decay: float = 0.0
) -> Optimizer:
    """Return ``momentum(..., nesterov=True)``."""
    attributes = {"momentum": momentum, "nesterov": True, "weight_decay": weight_decay}
    return Optimizer("nesterov", specs.MOMENTUM, {"velocity": 0.0}, (), learning_rate, attributes)


def adam(
    learning_rate: LearningRate = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    *,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Return Adam: steps of about ``rate``, from running means of gradients and of their squares.

    ``m = beta1 * m + (1 - beta1) * g``; ``s = beta2 * s + (1 - beta2) * g**2``; at step t, from 1,
    ``p -= rate * (m / (1 - beta1**t)) / (sqrt(s / (1 - beta2**t)) + epsilon)``. m is the state's
    "mean", s its "square".

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015.

    """
    attributes = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "weight_decay": weight_decay}
    return _adam("adam", learning_rate, attributes)


def adamw(
    learning_rate: LearningRate = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    *,
    weight_decay: float = 1e-2,
) -> Optimizer:
    """Return Adam with decoupled weight decay: ``p *= 1 - rate * weight_decay``, then as ``adam``.

    Gradients, and so their means, know nothing of the decay.

    Source: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.

    """
    attributes = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "weight_decay": weight_decay}
    return _adam("adamw", learning_rate, {**attributes, "decoupled": True})


def _adam(name: str, learning_rate: LearningRate, attributes: dict[str, Any]) -> Optimizer:
    slots = {"mean": 0.0, "square": 0.0}
    return Optimizer(name, specs.ADAM, slots, ("beta1", "beta2"), learning_rate, attributes)


def adamax(
    learning_rate: LearningRate = 2e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    *,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Return Adam with the largest recent gradient in the place of the mean square.

    ``m = beta1 * m + (1 - beta1) * g``; ``n = max(beta2 * n, |g| + epsilon)``; at step t, from 1,
    ``p -= rate / (1 - beta1**t) * m / n``. m is the state's "mean", n its "norm".

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015.

    """
    attributes = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "weight_decay": weight_decay}
    slots = {"mean": 0.0, "norm": 0.0}
    return Optimizer("adamax", specs.ADAMAX, slots, ("beta1",), learning_rate, attributes)


def adagrad(
    learning_rate: LearningRate = 1e-2,
    epsilon: float = 1e-10,
    *,
    initial_square: float = 0.0,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Return Adagrad: ``s = s + g**2``, then ``p -= rate * g / (sqrt(s) + epsilon)``.

    s, the state's "square", starts from ``initial_square``.

    Source: Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and
    stochastic optimization", 2011.

    """
    attributes = {"epsilon": epsilon, "weight_decay": weight_decay}
    slots = {"square": initial_square}
    return Optimizer("adagrad", specs.ADAGRAD, slots, (), learning_rate, attributes)


def rmsprop(
    learning_rate: LearningRate = 1e-2,
    decay: float = 0.99,
    epsilon: float = 1e-8,
    *,
    momentum: float = 0.0,
    centered: bool = False,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Return RMSProp: a step divided by the root of the running mean of squares.

    ``s = decay * s + (1 - decay) * g**2``; ``u = g / (sqrt(s) + epsilon)``; ``p -= rate * u``.
    With ``momentum`` ``v = momentum * v + u`` and ``p -= rate * v``. ``centered`` takes the square
    of the running mean m of gradients off s in the root. s, m and v are the state's "square",
    "mean" and "velocity", the last two where they are wanted.

    Source: Hinton, lecture 6 of "Neural networks for machine learning", 2012; centered: Graves,
    "Generating sequences with recurrent neural networks", 2013.

    """
    attributes = {
        "decay": decay,
        "momentum": momentum,
        "epsilon": epsilon,
        "weight_decay": weight_decay,
    }
    slots = {
        "square": 0.0,
        "mean": 0.0 if centered else None,
        "velocity": 0.0 if momentum else None,
    }
    return Optimizer("rmsprop", specs.RMSPROP, slots, (), learning_rate, attributes)
