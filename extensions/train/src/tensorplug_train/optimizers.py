"""The optimizers that update variables, one class per formula of ``rules``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug_train import rules
from tensorplug_train.optimizer import Optimizer
from tensorplug_train.rules import EPSILON

if TYPE_CHECKING:
    from tensorplug_train.loss_scaling import LossScale
    from tensorplug_train.transformations import GradientTransformation, LearningRate


class SGD(Optimizer):
    """Gradient descent: ``w -= lr * g``.

    ``learning_rate``: a number, or a function of the step; ``loss_scale``: a ``LossScale`` for
    narrow floats, or None.

    Examples:
        >>> w = tp.Variable(1.0)
        >>> optimizer = tp.train.SGD(0.25)
        >>> values = [float(optimizer.minimize(lambda: w**2, [w])) for _ in range(3)]
        >>> [round(value, 4) for value in values]
        [1.0, 0.25, 0.0625]

    """

    def __init__(
        self, learning_rate: LearningRate = 0.01, *, loss_scale: LossScale | None = None
    ) -> None:
        super().__init__(learning_rate, loss_scale)

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.sgd(learning_rate)


class Momentum(Optimizer):
    """Gradient descent with momentum; see ``momentum``.

    ``learning_rate``: a number, or a function of the step; ``nesterov``: whether the step looks
    ahead; ``loss_scale``: a ``LossScale`` for narrow floats, or None.

    Examples:
        >>> w = tp.Variable(1.0)
        >>> optimizer = tp.train.Momentum(0.1)
        >>> values = [float(optimizer.minimize(lambda: w**2, [w])) for _ in range(3)]
        >>> [round(value, 4) for value in values]
        [1.0, 0.64, 0.2116]

    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        momentum: float = 0.9,
        *,
        nesterov: bool = False,
        loss_scale: LossScale | None = None,
    ) -> None:
        super().__init__(learning_rate, loss_scale)
        self.momentum = momentum
        self.nesterov = nesterov

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.momentum(learning_rate, self.momentum, nesterov=self.nesterov)


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of squares; see ``adagrad``.

    ``learning_rate``: a number, or a function of the step; ``initial_accumulator_value``: the
    sum's start; ``loss_scale``: a ``LossScale`` for narrow floats, or None.

    Examples:
        >>> w = tp.Variable(1.0)
        >>> optimizer = tp.train.Adagrad(0.1)
        >>> values = [float(optimizer.minimize(lambda: w**2, [w])) for _ in range(3)]
        >>> [round(value, 4) for value in values]
        [1.0, 0.8122, 0.6968]

    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        initial_accumulator_value: float = 0.1,
        *,
        loss_scale: LossScale | None = None,
    ) -> None:
        super().__init__(learning_rate, loss_scale)
        self.initial_accumulator_value = initial_accumulator_value

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.adagrad(learning_rate, self.initial_accumulator_value)


class Adadelta(Optimizer):
    """Steps in the units of the variable, from running means of squares; see ``adadelta``.

    ``learning_rate``: a number, or a function of the step; ``rho``: of the running means;
    ``epsilon``: keeps the roots from 0; ``loss_scale``: a ``LossScale`` for narrow floats, or
    None.

    Examples:
        >>> w = tp.Variable(1.0)
        >>> optimizer = tp.train.Adadelta(1.0)
        >>> values = [float(optimizer.minimize(lambda: w**2, [w])) for _ in range(3)]
        >>> [round(value, 4) for value in values]
        [1.0, 0.9972, 0.9943]

    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        rho: float = 0.95,
        epsilon: float = EPSILON,
        *,
        loss_scale: LossScale | None = None,
    ) -> None:
        super().__init__(learning_rate, loss_scale)
        self.rho = rho
        self.epsilon = epsilon

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.adadelta(learning_rate, self.rho, self.epsilon)


class Adam(Optimizer):
    """Steps of about the learning rate, from running means; see ``adam``.

    ``learning_rate``: a number, or a function of the step; ``beta1``: of the running mean of
    gradients; ``beta2``: of that of their squares; ``epsilon``: keeps the divisor from 0;
    ``loss_scale``: a ``LossScale`` for narrow floats, or None.

    Examples:
        >>> w = tp.Variable(1.0)
        >>> optimizer = tp.train.Adam(0.1)
        >>> values = [float(optimizer.minimize(lambda: w**2, [w])) for _ in range(3)]
        >>> [round(value, 4) for value in values]
        [1.0, 0.81, 0.6407]

    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = EPSILON,
        *,
        loss_scale: LossScale | None = None,
    ) -> None:
        super().__init__(learning_rate, loss_scale)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.adam(learning_rate, self.beta1, self.beta2, self.epsilon)


class Adamax(Optimizer):
    """Adam with the largest recent gradient instead of the mean square; see ``adamax``.

    ``learning_rate``: a number, or a function of the step; ``beta1``: of the running mean of
    gradients; ``beta2``: of the largest ones; ``epsilon``: keeps the divisor from 0; ``decay``: of
    the learning rate, per step; ``loss_scale``: a ``LossScale`` for narrow floats, or None.

    Examples:
        >>> w = tp.Variable(1.0)
        >>> optimizer = tp.train.Adamax(0.1)
        >>> values = [float(optimizer.minimize(lambda: w**2, [w])) for _ in range(3)]
        >>> [round(value, 4) for value in values]
        [1.0, 0.81, 0.6483]

    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = EPSILON,
        decay: float = 0.0,
        *,
        loss_scale: LossScale | None = None,
    ) -> None:
        super().__init__(learning_rate, loss_scale)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.decay = decay

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.adamax(learning_rate, self.beta1, self.beta2, self.epsilon, self.decay)


class RMSProp(Optimizer):
    """Steps divided by the root of the running mean of squares; see ``rmsprop``.

    ``learning_rate``: a number, or a function of the step; ``decay``: of the running mean of
    squares; ``momentum``: the part of the last step that is added; ``epsilon``: keeps the root
    from 0; ``centered``: whether to subtract the square of the mean gradient; ``loss_scale``: a
    ``LossScale`` for narrow floats, or None.

    Examples:
        >>> w = tp.Variable(1.0)
        >>> optimizer = tp.train.RMSProp(0.1)
        >>> values = [float(optimizer.minimize(lambda: w**2, [w])) for _ in range(3)]
        >>> [round(value, 4) for value in values]
        [1.0, 0.4675, 0.2489]

    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = EPSILON,
        *,
        centered: bool = False,
        loss_scale: LossScale | None = None,
    ) -> None:
        super().__init__(learning_rate, loss_scale)
        self.decay = decay
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.rmsprop(
            learning_rate, self.decay, self.momentum, self.epsilon, centered=self.centered
        )
