"""Optimizers that update variables: they apply the functions of ``rules`` and hold the state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tensorplug.autodiff.variable_gradients import VariableGrads, variable_grads
from tensorplug.contract.arguments import real
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, CompileError, DTypeError, ShapeError
from tensorplug.tensors.variable import Variable, variables_of
from tensorplug.train import rules
from tensorplug.train.held import HeldNumber, Slot, outside_tracing
from tensorplug.train.rules import EPSILON
from tensorplug.train.transformations import check_rate, move

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug.train.transformations import GradientTransformation, LearningRate

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "Adamax", "Momentum", "Optimizer", "RMSProp"]

_ITERATIONS: Final = "iterations"


class Optimizer(ABC):
    """Base class of optimizers.

    A step may be part of a compiled function: each call of the function then takes the step. The
    first call fixes all options, except ``learning_rate`` if that is a number.
    """

    def __init__(self, learning_rate: LearningRate) -> None:
        self._rate = HeldNumber(0.0)
        self._schedule: Any = None  # or a tensor; replaces the number
        self._iterations = HeldNumber(0.0)
        self._states: dict[str, dict[str, Slot]] = {}  # by variable, then by slot
        self.learning_rate = learning_rate

    @property
    def learning_rate(self) -> Any:
        """The learning rate, which may be changed between steps.

        It is a number, a tensor of rank 0, or a schedule: a function of the number of steps taken
        before (an int32 tensor) that returns one of these. In a compiled function, a number is
        read at each call; a tensor, unless it is a variable, is a constant.
        """
        return self._rate.get() if self._schedule is None else self._schedule

    @learning_rate.setter
    def learning_rate(self, value: LearningRate) -> None:
        check_rate(value, "learning_rate must be", "or a function of the step")
        if isinstance(value, Tensor) or callable(value):
            self._schedule = value
        else:
            self._schedule = None
            self._rate.set(real(value, "learning_rate"))

    @property
    def iterations(self) -> int:
        """The number of steps taken. In a compiled function, it is a traced float."""
        taken = self._iterations.get()
        return int(taken) if current_context().trace is None else taken

    @iterations.setter
    def iterations(self, value: int) -> None:
        self._iterations.set(float(value))

    @abstractmethod
    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        """Return the functions with the current options of this object."""

    def minimize(
        self, f: Callable[[], Any], var_list: Any = None, *, has_aux: bool = False
    ) -> Any:
        """Take one step to decrease ``f()``; return the value of ``f`` before the step.

        Args and errors: see ``variable_grads``.
        """
        found = variable_grads(f, var_list, has_aux=has_aux)
        self.apply_gradients(found.grads)
        return found.value

    def compute_gradients(self, f: Callable[[], Any], var_list: Any = None) -> VariableGrads:
        """Return ``variable_grads(f, var_list)``, to be changed before ``apply_gradients``."""
        return variable_grads(f, var_list)

    def apply_gradients(
        self, grads: Mapping[str, Any] | Iterable[tuple[Variable | str, Any]]
    ) -> None:
        """Take one step. If it raises, no variable has changed.

        ``grads``: gradients by the variables' names, or pairs of a variable (or its name) and a
        gradient with its shape and dtype. Gradients that are None are skipped.

        Raises:
            ArgumentError: a variable does not exist, or has two gradients; a schedule returns
                something other than a number or a tensor of rank 0.
            ShapeError, DTypeError: a gradient does not have the type of its variable.

        """
        pairs = grads.items() if isinstance(grads, Mapping) else grads
        taken = self._iterations.get()
        transformation = self._transformation(self.learning_rate)
        numbers = transformation.numbers(taken)
        steps: list[tuple[Variable, Tensor, dict[str, Slot], dict[str, Tensor]]] = []
        seen: set[str] = set()
        for who, gradient in pairs:
            variable = who if isinstance(who, Variable) else _find_variable(who)
            if variable.name in seen:
                raise ArgumentError(f"apply_gradients: {variable.name!r} has two gradients")
            seen.add(variable.name)
            if gradient is None:
                continue
            g = _check_gradient(variable, gradient)
            held = self._states.get(variable.name)
            if held is None:
                held = self._begin(variable, transformation)
            slots = {name: slot.get() for name, slot in held.items()}
            direction, factor = transformation.direction(g, slots, numbers)
            steps.append((variable, move(variable.read(), direction, factor), held, slots))
        for variable, value, held, slots in steps:
            variable.assign(value)
            for name, slot in held.items():
                slot.set(slots[name])
            self._states[variable.name] = held
        self._iterations.set(taken + 1)
        self._check_later()

    def _begin(
        self, variable: Variable, transformation: GradientTransformation
    ) -> dict[str, Slot]:
        with outside_tracing():
            start = transformation.start(variable.read())
            return {slot: Slot(value, f"{variable.name}/{slot}") for slot, value in start.items()}

    def _check_later(self) -> None:
        """If a program is being traced, make each run check that it still fits this object."""
        trace = current_context().trace
        if trace is None:
            return
        options, states = self._options(), dict(self._states)

        def check() -> None:
            if self._options() != options:
                raise CompileError(
                    f"compile: the options of {type(self).__name__} have changed since the "
                    "function was traced; only a learning rate that is a number may change. "
                    "Compile the function again"
                )
            if any(self._states.get(name) is not held for name, held in states.items()):
                raise CompileError(
                    f"compile: {type(self).__name__} lost the state of a variable in set_weights "
                    "since the function was traced; compile the function again"
                )

        trace.check(check)

    def _options(self) -> dict[str, Any]:
        options = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return {"learning_rate": _Same(self._schedule), **options}

    def weights(self) -> dict[str, Any]:
        """Return the whole state, for ``set_weights``. It is a tree that ``save`` accepts.

        It has ``iterations``, and for each slot a dict of tensors by variable name.
        """
        weights: dict[str, Any] = {_ITERATIONS: self.iterations}
        for slot in self._transformation(0.0).slots:
            weights[slot] = {name: held[slot].read() for name, held in self._states.items()}
        return weights

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Restore the state that ``weights()`` returned.

        Raises:
            ArgumentError: they belong to another kind of optimizer.

        """
        slots = self._transformation(0.0).slots
        expected = {_ITERATIONS, *slots}
        if set(weights) != expected:
            raise ArgumentError(
                f"set_weights: {type(self).__name__} needs {sorted(expected)}, "
                f"got {sorted(weights)}"
            )
        names = list(dict.fromkeys(name for slot in slots for name in weights[slot]))
        for slot in slots:
            if set(weights[slot]) != set(names):
                raise ArgumentError(
                    f"set_weights: {slot!r} has {sorted(weights[slot])}, others {sorted(names)}"
                )
        given = {name: {slot: as_tensor(weights[slot][name]) for slot in slots} for name in names}
        iterations = float(int(weights[_ITERATIONS]))
        self._states = {name: self._restored(name, values) for name, values in given.items()}
        self._iterations.set(iterations)

    def _restored(self, name: str, values: dict[str, Tensor]) -> dict[str, Slot]:
        """Return a variable's state with new values, if possible that of compiled functions."""
        held = self._states.get(name)
        if held is None or any(held[slot].type != value.type for slot, value in values.items()):
            return {slot: Slot(value, f"{name}/{slot}") for slot, value in values.items()}
        for slot, value in values.items():
            held[slot].assign(value)
        return held

    def __repr__(self) -> str:
        shown = {"learning_rate": self.learning_rate, _ITERATIONS: self.iterations}
        shown |= {name: value for name, value in vars(self).items() if not name.startswith("_")}
        listed = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"{type(self).__name__}({listed})"


class _Same:
    """A schedule, compared by identity."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    __hash__ = None  # type: ignore[assignment]  # not needed


def _find_variable(name: str) -> Variable:
    for variable in variables_of(engine_of(current_context())).listed():
        if variable.name == name:
            return variable
    raise ArgumentError(f"apply_gradients: there is no variable {name!r}")


def _check_gradient(variable: Variable, gradient: Any) -> Tensor:
    g = as_tensor(gradient, what=f"apply_gradients: gradient of {variable.name!r}")
    error = ShapeError if g.shape != variable.shape else DTypeError
    if g.shape != variable.shape or g.dtype is not variable.dtype:
        raise error(
            f"apply_gradients: the gradient of {variable.name!r} is {g.type}, the variable "
            f"{variable.type}"
        )
    return g


class SGD(Optimizer):
    """Gradient descent: ``w -= lr * g``."""

    def __init__(self, learning_rate: LearningRate = 0.01) -> None:
        super().__init__(learning_rate)

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.sgd(learning_rate)


class Momentum(Optimizer):
    """Gradient descent with momentum; see ``momentum``."""

    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        momentum: float = 0.9,
        *,
        nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate)
        self.momentum = momentum
        self.nesterov = nesterov

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.momentum(learning_rate, self.momentum, nesterov=self.nesterov)


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of squares; see ``adagrad``."""

    def __init__(
        self, learning_rate: LearningRate = 0.01, initial_accumulator_value: float = 0.1
    ) -> None:
        super().__init__(learning_rate)
        self.initial_accumulator_value = initial_accumulator_value

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.adagrad(learning_rate, self.initial_accumulator_value)


class Adadelta(Optimizer):
    """Steps in the units of the variable, from running means of squares; see ``adadelta``."""

    def __init__(
        self, learning_rate: LearningRate = 0.001, rho: float = 0.95, epsilon: float = EPSILON
    ) -> None:
        super().__init__(learning_rate)
        self.rho = rho
        self.epsilon = epsilon

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.adadelta(learning_rate, self.rho, self.epsilon)


class Adam(Optimizer):
    """Steps of about the learning rate, from running means; see ``adam``."""

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = EPSILON,
    ) -> None:
        super().__init__(learning_rate)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.adam(learning_rate, self.beta1, self.beta2, self.epsilon)


class Adamax(Optimizer):
    """Adam with the largest recent gradient instead of the mean square; see ``adamax``."""

    def __init__(
        self,
        learning_rate: LearningRate = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = EPSILON,
        decay: float = 0.0,
    ) -> None:
        super().__init__(learning_rate)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.decay = decay

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.adamax(learning_rate, self.beta1, self.beta2, self.epsilon, self.decay)


class RMSProp(Optimizer):
    """Steps divided by the root of the running mean of squares; see ``rmsprop``."""

    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = EPSILON,
        *,
        centered: bool = False,
    ) -> None:
        super().__init__(learning_rate)
        self.decay = decay
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered

    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        return rules.rmsprop(
            learning_rate, self.decay, self.momentum, self.epsilon, centered=self.centered
        )
