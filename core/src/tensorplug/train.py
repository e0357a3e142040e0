"""Optimizers: each step updates variables with their gradients.

Formulas and defaults are those of TensorFlow.js. ``w`` is a variable, ``g`` its gradient, ``lr``
the learning rate. The values left of ``=`` are state, which is 0 before the first step unless
an optimizer specifies another value. A complex variable is updated like two real variables, its
real and imaginary parts, as in PyTorch: squares and magnitudes are those of each part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tensorplug.autodiff.variable_gradients import VariableGrads, variable_grads
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.memory.scopes import keep
from tensorplug.ops import complexes, creation
from tensorplug.ops import elementwise as ops
from tensorplug.ops.accumulation import multiply_add
from tensorplug.ops.movement import stack
from tensorplug.tensors.variable import Variable, variables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug.dispatch.tensor import Tensor

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "Adamax", "Momentum", "Optimizer", "RMSProp"]

_EPSILON: Final = 1e-7

State = dict[str, "Tensor"]  # an optimizer's state for one variable, by slot


class Optimizer(ABC):
    """Base class of optimizers.

    ``learning_rate`` may be changed between steps. ``iterations`` counts the steps taken.
    """

    slots: ClassVar[Mapping[str, float]] = {}
    """The state for each variable: names and initial values."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.iterations = 0
        self._states: dict[str, State] = {}

    @abstractmethod
    def _step(self, g: Tensor, state: State) -> tuple[Tensor, float]:
        """Return the update of a variable and the rate at which to subtract it; set ``state``.

        For a complex variable, ``g`` and the state have the two parts in a last axis.
        """

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
        """Return ``variable_grads(f, var_list)``, to change it before ``apply_gradients``."""
        return variable_grads(f, var_list)

    def apply_gradients(
        self, grads: Mapping[str, Any] | Iterable[tuple[Variable | str, Any]]
    ) -> None:
        """Take one step. If it raises, no variable has changed.

        ``grads``: gradients by the variables' names, or pairs of a variable (or its name) and a
        gradient with its shape and dtype. Gradients that are None are skipped.

        Raises:
            ArgumentError: a variable does not exist, or has two gradients.
            ShapeError, DTypeError: a gradient does not have the type of its variable.
            CompileError: in a compiled function, which would take the step only in tracing.

        """
        _check_untraced()
        pairs = grads.items() if isinstance(grads, Mapping) else grads
        steps: list[tuple[Variable, Tensor, State]] = []
        seen: set[str] = set()
        self.iterations += 1
        try:
            for who, gradient in pairs:
                variable = who if isinstance(who, Variable) else _find_variable(who)
                if variable.name in seen:
                    raise ArgumentError(f"apply_gradients: {variable.name!r} has two gradients")
                seen.add(variable.name)
                if gradient is None:
                    continue
                g = _check_gradient(variable, gradient)
                parts = _split_complex(g) if g.dtype in dt.COMPLEX else g
                state = dict(self._states.get(variable.name) or self._initial_state(parts))
                update, rate = self._step(parts, state)
                update = update if parts is g else _join_complex(update)
                steps.append((variable, multiply_add(update, -rate, variable.read()), state))
        except BaseException:
            self.iterations -= 1
            raise
        for variable, value, state in steps:
            variable.assign(value)
            # The state must outlive a `tidy` around this step.
            self._states[variable.name] = {name: keep(tensor) for name, tensor in state.items()}

    def _initial_state(self, g: Tensor) -> State:
        return {name: creation.zeros_like(g) + start for name, start in self.slots.items()}

    def weights(self) -> dict[str, Any]:
        """Return the whole state, for ``set_weights``.

        It has ``iterations``, and for each slot a dict of tensors by variable name.
        """
        weights: dict[str, Any] = {"iterations": self.iterations}
        for slot in self.slots:
            weights[slot] = {name: state[slot] for name, state in self._states.items()}
        return weights

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Restore the state that ``weights()`` returned.

        Raises:
            ArgumentError: they belong to another kind of optimizer.

        """
        expected = {"iterations", *self.slots}
        if set(weights) != expected:
            raise ArgumentError(
                f"set_weights: {type(self).__name__} needs {sorted(expected)}, "
                f"got {sorted(weights)}"
            )
        names = {name for slot in self.slots for name in weights[slot]}
        for slot in self.slots:
            if set(weights[slot]) != names:
                raise ArgumentError(
                    f"set_weights: {slot!r} has {sorted(weights[slot])}, others {sorted(names)}"
                )
        self._states = {
            name: {slot: as_tensor(weights[slot][name]) for slot in self.slots} for name in names
        }
        self.iterations = int(weights["iterations"])

    def __repr__(self) -> str:
        options = ", ".join(
            f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_")
        )
        return f"{type(self).__name__}({options})"


def _check_untraced() -> None:
    trace = current_context().trace
    if trace is not None:
        raise trace.refusal(
            "an optimizer keeps its state in Python; compile the function that computes value and "
            "gradients, and call apply_gradients with its result outside"
        )


def _find_variable(name: str) -> Variable:
    for variable in variables_of(engine_of(current_context())).listed():
        if variable.name == name:
            return variable
    raise ArgumentError(f"apply_gradients: there is no variable {name!r}")


def _check_gradient(variable: Variable, gradient: Any) -> Tensor:
    g = as_tensor(gradient, what=f"apply_gradients: gradient of {variable.name!r}")
    if g.shape != variable.shape:
        raise ShapeError(
            f"apply_gradients: the gradient of {variable.name!r} is {g.type}, the variable "
            f"{variable.type}"
        )
    if g.dtype is not variable.dtype:
        raise DTypeError(
            f"apply_gradients: the gradient of {variable.name!r} is {g.type}, the variable "
            f"{variable.type}"
        )
    return g


def _split_complex(x: Tensor) -> Tensor:
    """Return real and imaginary parts stacked in a last axis."""
    return stack([complexes.real(x), complexes.imag(x)], axis=-1)


def _join_complex(parts: Tensor) -> Tensor:
    return complexes.complex(parts[..., 0], parts[..., 1])


class SGD(Optimizer):
    """Gradient descent: ``w -= lr * g``."""

    def __init__(self, learning_rate: float = 0.01) -> None:
        super().__init__(learning_rate)

    def _step(self, g: Tensor, state: State) -> tuple[Tensor, float]:  # noqa: ARG002  # it has no state
        return g, self.learning_rate


class Momentum(Optimizer):
    """Gradient descent with momentum.

    ``v = momentum * v + g``, then ``w -= lr * v``; with ``nesterov``
    ``w -= lr * (g + momentum * v)``. (Sutskever et al. 2013.)
    """

    slots: ClassVar[Mapping[str, float]] = {"velocity": 0.0}

    def __init__(
        self, learning_rate: float = 0.01, momentum: float = 0.9, *, nesterov: bool = False
    ) -> None:
        super().__init__(learning_rate)
        self.momentum = momentum
        self.nesterov = nesterov

    def _step(self, g: Tensor, state: State) -> tuple[Tensor, float]:
        v = state["velocity"] = multiply_add(state["velocity"], self.momentum, g)
        return multiply_add(v, self.momentum, g) if self.nesterov else v, self.learning_rate


class Adagrad(Optimizer):
    """``s = s + g**2``, then ``w -= lr * g / sqrt(s + 1e-7)``.

    ``s`` starts from ``initial_accumulator_value``. (Duchi et al. 2011.)
    """

    slots: ClassVar[Mapping[str, float]] = {"squares": 0.0}

    def __init__(
        self, learning_rate: float = 0.01, initial_accumulator_value: float = 0.1
    ) -> None:
        super().__init__(learning_rate)
        self.initial_accumulator_value = initial_accumulator_value

    def _initial_state(self, g: Tensor) -> State:
        return {"squares": creation.zeros_like(g) + self.initial_accumulator_value}

    def _step(self, g: Tensor, state: State) -> tuple[Tensor, float]:
        s = state["squares"] = state["squares"] + ops.square(g)
        return g / ops.sqrt(s + _EPSILON), self.learning_rate


class Adadelta(Optimizer):
    """Steps in the units of ``w``, from running means of squares.

    ``s = rho * s + (1 - rho) * g**2``; ``d = sqrt(u + epsilon) / sqrt(s + epsilon) * g``;
    ``u = rho * u + (1 - rho) * d**2``; ``w -= lr * d``. (Zeiler 2012.)
    """

    slots: ClassVar[Mapping[str, float]] = {"squares": 0.0, "updates": 0.0}

    def __init__(
        self, learning_rate: float = 0.001, rho: float = 0.95, epsilon: float = _EPSILON
    ) -> None:
        super().__init__(learning_rate)
        self.rho = rho
        self.epsilon = epsilon

    def _step(self, g: Tensor, state: State) -> tuple[Tensor, float]:
        s = state["squares"] = _mean(state["squares"], ops.square(g), self.rho)
        u = state["updates"]
        d = ops.sqrt(u + self.epsilon) / ops.sqrt(s + self.epsilon) * g
        state["updates"] = _mean(u, ops.square(d), self.rho)
        return d, self.learning_rate


class Adam(Optimizer):
    """Steps of about ``lr``, from running means of gradients and of their squares.

    ``m = beta1 * m + (1 - beta1) * g``; ``s = beta2 * s + (1 - beta2) * g**2``; at step t
    ``w -= lr * (m / (1 - beta1**t)) / (sqrt(s / (1 - beta2**t)) + epsilon)``.
    (Kingma and Ba 2015.)
    """

    slots: ClassVar[Mapping[str, float]] = {"means": 0.0, "squares": 0.0}

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = _EPSILON,
    ) -> None:
        super().__init__(learning_rate)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def _step(self, g: Tensor, state: State) -> tuple[Tensor, float]:
        m = state["means"] = _mean(state["means"], g, self.beta1)
        s = state["squares"] = _mean(state["squares"], ops.square(g), self.beta2)
        t = self.iterations
        scale = ops.sqrt(s / (1.0 - self.beta2**t)) + self.epsilon
        return m / scale, self.learning_rate / (1.0 - self.beta1**t)


class Adamax(Optimizer):
    """Adam with the largest recent gradient instead of the mean square.

    ``m = beta1 * m + (1 - beta1) * g``; ``n = max(beta2 * n, |g|)``; at step t
    ``w -= lr / (1 + decay * (t - 1)) / (1 - beta1**t) * m / (n + epsilon)``.
    (Kingma and Ba 2015.)
    """

    slots: ClassVar[Mapping[str, float]] = {"means": 0.0, "norms": 0.0}

    def __init__(
        self,
        learning_rate: float = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = _EPSILON,
        decay: float = 0.0,
    ) -> None:
        super().__init__(learning_rate)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.decay = decay

    def _step(self, g: Tensor, state: State) -> tuple[Tensor, float]:
        m = state["means"] = _mean(state["means"], g, self.beta1)
        n = state["norms"] = ops.maximum(state["norms"] * self.beta2, ops.abs(g))
        t = self.iterations
        rate = self.learning_rate / (1.0 + self.decay * (t - 1)) / (1.0 - self.beta1**t)
        return m / (n + self.epsilon), rate


class RMSProp(Optimizer):
    """A step divided by the root of the running mean of squares.

    ``s = decay * s + (1 - decay) * g**2``; ``v = momentum * v + lr * g / sqrt(s + epsilon)``;
    ``w -= v``. ``centered`` subtracts the square of the running mean of g from s in the root.
    (Hinton 2012; Graves 2013.)
    """

    slots: ClassVar[Mapping[str, float]] = {"squares": 0.0, "means": 0.0, "velocity": 0.0}

    def __init__(
        self,
        learning_rate: float = 0.01,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = _EPSILON,
        *,
        centered: bool = False,
    ) -> None:
        super().__init__(learning_rate)
        self.decay = decay
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered

    def _step(self, g: Tensor, state: State) -> tuple[Tensor, float]:
        s = state["squares"] = _mean(state["squares"], ops.square(g), self.decay)
        if self.centered:
            mean = state["means"] = _mean(state["means"], g, self.decay)
            s = ops.maximum(s - ops.square(mean), 0.0)  # rounding may make it negative
        step = g / ops.sqrt(s + self.epsilon) * self.learning_rate
        v = state["velocity"] = multiply_add(state["velocity"], self.momentum, step)
        return v, 1.0


def _mean(old: Tensor, new: Tensor, keep: float) -> Tensor:
    """Return the running mean, with weight ``keep`` for the old value."""
    return multiply_add(old, keep, new * (1.0 - keep))
