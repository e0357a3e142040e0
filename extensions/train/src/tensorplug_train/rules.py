"""The formulas of the optimizers, with the defaults of TensorFlow.js.

``w`` is a parameter, ``g`` its gradient, ``lr`` the learning rate. The values left of ``=`` are
the state, which is 0 before the first step unless a function says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug_train.rule import Rule, decayed

if TYPE_CHECKING:
    from tensorplug import Tensor
    from tensorplug_train.rule import LearningRate, Mask, Numbers, Slots
    from tensorplug_train.transformation import GradientTransformation

EPSILON: Final = 1e-7


def sgd(
    learning_rate: LearningRate = 0.01, *, weight_decay: float = 0.0, mask: Mask | None = None
) -> GradientTransformation:
    """Return gradient descent: ``w -= lr * g``.

    Here and below, ``learning_rate`` is a number, a tensor of rank 0, or a schedule: a function
    of the number of steps taken before (int32 of rank 0) that returns one of these. With
    ``weight_decay``, ``g + weight_decay * w`` takes the place of g. ``mask`` says which parameters
    decay: a tree of bools like the parameters, or a function of these that returns one, such as
    ``lambda params: tp.tree_map(lambda w: w.ndim > 1, params)``, which spares biases.

    A rate that a program changes between steps is a ``Variable(..., trainable=False)``.

    Examples:
        >>> optimizer, w = tp.train.sgd(0.25), tp.asarray(1.0)
        >>> state = optimizer.init(w)
        >>> for _ in range(2):
        ...     w, state = optimizer.step(tp.asarray(2.0), state, w)
        ...     print(round(float(w), 4))
        0.5
        0.0

    """

    def formula(g: Tensor, _: Slots, numbers: Numbers) -> tuple[Tensor, Any]:
        return g, numbers.rate(g.dtype)

    return Rule("sgd", {}, formula, learning_rate, weight_decay=weight_decay, mask=mask)


def momentum(
    learning_rate: LearningRate = 0.01,
    momentum: float = 0.9,
    *,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    mask: Mask | None = None,
) -> GradientTransformation:
    """Return gradient descent with momentum: ``v = momentum * v + g``, then ``w -= lr * v``.

    With ``nesterov``, it is ``w -= lr * (g + momentum * v)``. v is the slot ``"velocity"``.
    (Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013.)

    ``learning_rate``, ``weight_decay`` and ``mask``: as for ``sgd``.

    Examples:
        >>> optimizer, w = tp.train.momentum(0.1), tp.asarray(1.0)
        >>> state = optimizer.init(w)
        >>> for _ in range(2):
        ...     w, state = optimizer.step(tp.asarray(2.0), state, w)
        ...     print(round(float(w), 4))
        0.8
        0.42

    """

    def formula(g: Tensor, slots: Slots, numbers: Numbers) -> tuple[Tensor, Any]:
        v = slots["velocity"] = tp.multiply_add(slots["velocity"], momentum, g)
        return tp.multiply_add(v, momentum, g) if nesterov else v, numbers.rate(g.dtype)

    slots = {"velocity": 0.0}
    return Rule("momentum", slots, formula, learning_rate, weight_decay=weight_decay, mask=mask)


def adagrad(
    learning_rate: LearningRate = 0.01,
    initial_accumulator_value: float = 0.1,
    *,
    weight_decay: float = 0.0,
    mask: Mask | None = None,
) -> GradientTransformation:
    """Return Adagrad: ``s = s + g**2``, then ``w -= lr * g / sqrt(s + 1e-7)``.

    s, the slot ``"squares"``, starts from ``initial_accumulator_value``. (Duchi, Hazan and Singer,
    "Adaptive subgradient methods for online learning and stochastic optimization", 2011.)

    ``learning_rate``, ``weight_decay`` and ``mask``: as for ``sgd``.

    Examples:
        >>> optimizer, w = tp.train.adagrad(0.1), tp.asarray(1.0)
        >>> w, state = optimizer.step(tp.asarray(2.0), optimizer.init(w), w)
        >>> round(float(w), 4)
        0.9012

    """

    def formula(g: Tensor, slots: Slots, numbers: Numbers) -> tuple[Tensor, Any]:
        s = slots["squares"] = slots["squares"] + tp.square(g)
        return g / tp.sqrt(s + EPSILON), numbers.rate(g.dtype)

    slots = {"squares": initial_accumulator_value}
    return Rule("adagrad", slots, formula, learning_rate, weight_decay=weight_decay, mask=mask)


def adadelta(
    learning_rate: LearningRate = 0.001, rho: float = 0.95, epsilon: float = EPSILON
) -> GradientTransformation:
    """Return Adadelta: steps in the units of ``w``, from running means of squares.

    ``s = rho * s + (1 - rho) * g**2``; ``d = sqrt(u + epsilon) / sqrt(s + epsilon) * g``;
    ``u = rho * u + (1 - rho) * d**2``; ``w -= lr * d``. s and u are the slots ``"squares"`` and
    ``"updates"``. (Zeiler, "ADADELTA: an adaptive learning rate method", 2012.)

    ``learning_rate``: as for ``sgd``.

    Examples:
        >>> optimizer, w = tp.train.adadelta(1.0), tp.asarray(1.0)
        >>> w, state = optimizer.step(tp.asarray(2.0), optimizer.init(w), w)
        >>> round(float(w), 4)
        0.9986

    """

    def formula(g: Tensor, slots: Slots, numbers: Numbers) -> tuple[Tensor, Any]:
        s = slots["squares"] = mean(slots["squares"], tp.square(g), rho)
        u = slots["updates"]
        d = tp.sqrt(u + epsilon) / tp.sqrt(s + epsilon) * g
        slots["updates"] = mean(u, tp.square(d), rho)
        return d, numbers.rate(g.dtype)

    slots = {"squares": 0.0, "updates": 0.0}
    return Rule("adadelta", slots, formula, learning_rate)


def adam(
    learning_rate: LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = EPSILON,
    *,
    weight_decay: float = 0.0,
    mask: Mask | None = None,
) -> GradientTransformation:
    """Return Adam: steps of about ``lr``, from running means of gradients and of their squares.

    ``m = beta1 * m + (1 - beta1) * g``; ``s = beta2 * s + (1 - beta2) * g**2``; at step t
    ``w -= lr * (m / (1 - beta1**t)) / (sqrt(s / (1 - beta2**t)) + epsilon)``. m and s are the
    slots ``"means"`` and ``"squares"``. (Kingma and Ba, "Adam: a method for stochastic
    optimization", 2015.)

    ``learning_rate``, ``weight_decay`` and ``mask``: as for ``sgd``.

    Examples:
        >>> optimizer, w = tp.train.adam(0.1), tp.asarray(1.0)
        >>> w, state = optimizer.step(tp.asarray(2.0), optimizer.init(w), w)
        >>> round(float(w), 4)
        0.9

    """
    return _adam("adam", learning_rate, beta1, beta2, epsilon, weight_decay, mask)


def adamw(
    learning_rate: LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    *,
    weight_decay: float = 0.01,
    mask: Mask | None = None,
) -> GradientTransformation:
    """Return Adam with decoupled weight decay: ``w *= 1 - lr * weight_decay``, then as ``adam``.

    Gradients, and so their means, know nothing of the decay. Defaults are PyTorch's. (Loshchilov
    and Hutter, "Decoupled weight decay regularization", 2019.)

    ``beta1``, ``beta2``, ``epsilon``: as for ``adam``; ``learning_rate``, ``mask``: for ``sgd``.

    Examples:
        >>> optimizer, w = tp.train.adamw(0.1, weight_decay=0.5), tp.asarray(1.0)
        >>> w, state = optimizer.step(tp.asarray(2.0), optimizer.init(w), w)
        >>> round(float(w), 4)
        0.85

    """
    return _adam("adamw", learning_rate, beta1, beta2, epsilon, weight_decay, mask, decoupled=True)


def _adam(
    name: str,
    learning_rate: LearningRate,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    mask: Mask | None,
    *,
    decoupled: bool = False,
) -> GradientTransformation:
    def formula(g: Tensor, slots: Slots, numbers: Numbers) -> tuple[Tensor, Any]:
        direction = adam_direction(g, slots, numbers, beta1, beta2, epsilon)
        return direction, numbers.rate(g.dtype) / numbers.correction(beta1, g.dtype)

    return Rule(
        name,
        {"means": 0.0, "squares": 0.0},
        formula,
        learning_rate,
        weight_decay=weight_decay,
        mask=mask,
        decoupled=decoupled,
    )


def adamax(
    learning_rate: LearningRate = 0.002,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = EPSILON,
    decay: float = 0.0,
    *,
    weight_decay: float = 0.0,
    mask: Mask | None = None,
) -> GradientTransformation:
    """Return Adam with the largest recent gradient instead of the mean square.

    ``m = beta1 * m + (1 - beta1) * g``; ``n = max(beta2 * n, |g|)``; at step t
    ``w -= lr / (1 + decay * (t - 1)) / (1 - beta1**t) * m / (n + epsilon)``. m and n are the
    slots ``"means"`` and ``"norms"``. (Kingma and Ba 2015, section 7.)

    ``learning_rate``, ``weight_decay`` and ``mask``: as for ``sgd``.

    Examples:
        >>> optimizer, w = tp.train.adamax(0.1), tp.asarray(1.0)
        >>> w, state = optimizer.step(tp.asarray(2.0), optimizer.init(w), w)
        >>> round(float(w), 4)
        0.9

    """

    def formula(g: Tensor, slots: Slots, numbers: Numbers) -> tuple[Tensor, Any]:
        m = slots["means"] = mean(slots["means"], g, beta1)
        n = slots["norms"] = tp.maximum(slots["norms"] * beta2, tp.abs(g))
        rate = decayed(numbers, decay, g.dtype)
        return m / (n + epsilon), rate / numbers.correction(beta1, g.dtype)

    slots = {"means": 0.0, "norms": 0.0}
    return Rule("adamax", slots, formula, learning_rate, weight_decay=weight_decay, mask=mask)


def rmsprop(
    learning_rate: LearningRate = 0.01,
    decay: float = 0.9,
    momentum: float = 0.0,
    epsilon: float = EPSILON,
    *,
    centered: bool = False,
    weight_decay: float = 0.0,
    mask: Mask | None = None,
) -> GradientTransformation:
    """Return RMSProp: a step divided by the root of the running mean of squares.

    ``s = decay * s + (1 - decay) * g**2``; ``v = momentum * v + lr * g / sqrt(s + epsilon)``;
    ``w -= v``. ``centered`` subtracts the square of the running mean of g from s in the root. The
    slots are ``"squares"``, ``"means"`` and ``"velocity"``. (Hinton, lecture 6 of "Neural networks
    for machine learning", 2012; Graves, "Generating sequences with recurrent neural networks",
    2013.)

    ``learning_rate``, ``weight_decay`` and ``mask``: as for ``sgd``.

    Examples:
        >>> optimizer, w = tp.train.rmsprop(0.1), tp.asarray(1.0)
        >>> w, state = optimizer.step(tp.asarray(2.0), optimizer.init(w), w)
        >>> round(float(w), 4)
        0.6838

    """

    def formula(g: Tensor, slots: Slots, numbers: Numbers) -> tuple[Tensor, Any]:
        s = slots["squares"] = mean(slots["squares"], tp.square(g), decay)
        if centered:
            centre = slots["means"] = mean(slots["means"], g, decay)
            s = tp.maximum(s - tp.square(centre), 0.0)  # rounding may make it negative
        change = g / tp.sqrt(s + epsilon) * numbers.rate(g.dtype)
        v = slots["velocity"] = tp.multiply_add(slots["velocity"], momentum, change)
        return v, 1.0

    slots = {"squares": 0.0, "means": 0.0, "velocity": 0.0}
    return Rule("rmsprop", slots, formula, learning_rate, weight_decay=weight_decay, mask=mask)


def adam_direction(
    g: Tensor, slots: Slots, numbers: Numbers, beta1: float, beta2: float, epsilon: float
) -> Tensor:
    """Return Adam's direction before the bias of the mean of gradients is corrected."""
    m = slots["means"] = mean(slots["means"], g, beta1)
    s = slots["squares"] = mean(slots["squares"], tp.square(g), beta2)
    # Not the root of a quotient, which may overflow, nor a quotient of roots, which takes longer.
    return m / (tp.sqrt(s) * tp.rsqrt(numbers.correction(beta2, g.dtype)) + epsilon)


def mean(old: Tensor, new: Tensor, keep: Any) -> Tensor:
    """Return the running mean, with weight ``keep`` for the old value."""
    return tp.multiply_add(old, keep, new * (1.0 - keep))
