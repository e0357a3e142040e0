"""Optimizers of variables: they apply the functions of ``rules``, and hold the state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import tensorplug as tp
from tensorplug import Tensor, Variable
from tensorplug.plugin import (
    ArgumentError,
    CompileError,
    DTypeError,
    ShapeError,
    arguments,
    as_tensor,
    compiled_state,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_train.loss_scaling import HeldScale, LossScale, all_finite, divided
from tensorplug_train.transformations import check_rate, move

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug_train.transformations import GradientTransformation, LearningRate

    _Step: TypeAlias = tuple[Variable, Tensor, dict[str, compiled_state.Slot], dict[str, Tensor]]
    """A variable, its new contents, the slots of its state, and their new contents."""

R = TypeVar("R")

_ITERATIONS: Final = "iterations"
_LOSS_SCALE: Final = "loss_scale"


class Optimizer(ABC):
    """Base class of optimizers.

    A step may be part of a compiled function: each call of the function then takes the step. The
    first call fixes all options, except ``learning_rate`` if that is a number.

    With ``loss_scale``, a ``LossScale``, the loss is multiplied by a factor in the backward pass,
    and the gradients are divided by it. A step with a gradient that is not finite is skipped:
    it changes no variable and no state, except that the factor shrinks. No data is read for this.

    Examples:
        >>> w = tp.Variable([1.0, -2.0])
        >>> sgd = tp.train.SGD(0.5, loss_scale=tp.train.LossScale(8.0))
        >>> for x in (1.0, float("inf")):
        ...     loss = sgd.minimize(lambda: tp.sum(w * w * x), [w])
        >>> w.tolist(), sgd.iterations, sgd.weights()["loss_scale"]["scale"].item()
        ([0.0, 0.0], 1, 4.0)

    """

    def __init__(self, learning_rate: LearningRate, loss_scale: LossScale | None = None) -> None:
        if not isinstance(loss_scale, LossScale | None):
            raise ArgumentError(
                f"{type(self).__name__}: loss_scale must be a LossScale or None, got "
                f"{arguments.quoted(loss_scale)}"
            )
        self._rate = compiled_state.HeldNumber(0.0)
        self._schedule: Any = None  # or a tensor; replaces the number
        self._scale = None if loss_scale is None else HeldScale(loss_scale)
        # Which steps are skipped depends on data, so that their number must be a tensor.
        self._iterations: compiled_state.HeldNumber | compiled_state.HeldTensor = (
            compiled_state.HeldNumber(0.0)
        )
        if loss_scale is not None:
            self._iterations = compiled_state.HeldTensor(
                lambda: as_tensor(0, dt.int32), _ITERATIONS
            )
        self._states: dict[str, dict[str, compiled_state.Slot]] = {}  # by variable, then by slot
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
            number: Any = value
            try:
                number = number if isinstance(number, float) else float(number)
            except OverflowError:
                raise ArgumentError(
                    f"learning_rate does not fit into float64: {arguments.quoted(value)}"
                ) from None
            self._schedule = None
            self._rate.set(number)

    @property
    def iterations(self) -> int:
        """The number of steps taken, without those skipped.

        In a compiled function, it is a traced float, or with ``loss_scale`` an int32 tensor.
        """
        taken: Any = self._iterations.get()
        return taken if compiled_state.is_traced() else int(taken)

    @iterations.setter
    def iterations(self, value: int) -> None:
        taken: Any = float(value) if self._scale is None else as_tensor(int(value), dt.int32)
        self._iterations.set(taken)

    @property
    def loss_scale(self) -> LossScale | None:
        """How the loss is scaled. ``weights()["loss_scale"]["scale"]`` is the current factor."""
        return None if self._scale is None else self._scale.loss_scale

    @abstractmethod
    def _transformation(self, learning_rate: LearningRate) -> GradientTransformation:
        """Return the functions with the current options of this object."""

    def minimize(self, f: Callable[[], R], var_list: Any = None, *, has_aux: bool = False) -> R:
        """Take one step to decrease ``f()``; return the value of ``f`` before the step.

        Args and errors: see ``variable_grads``.
        """
        found = self.compute_gradients(f, var_list, has_aux=has_aux)
        self.apply_gradients(found.grads)
        value: R = found.value
        return value

    def compute_gradients(
        self, f: Callable[[], R], var_list: Any = None, *, has_aux: bool = False
    ) -> Any:
        """Return ``variable_grads(f, var_list)``, to be changed before ``apply_gradients``.

        With ``loss_scale``, the loss is scaled in the backward pass, but neither the value nor
        the gradients that are returned.
        """
        if self._scale is None:
            return tp.variable_grads(f, var_list, has_aux=has_aux)
        scale = self._scale.get()["scale"]
        found = tp.variable_grads(_scaled(f, scale, has_aux), var_list, has_aux=has_aux)
        scaled = {name: g for name, g in found.grads.items() if g is not None}
        unscaled = divided(scaled, scale, "compute_gradients")
        return found._replace(grads={name: unscaled.get(name) for name in found.grads})

    def apply_gradients(
        self, grads: Mapping[str, Any] | Iterable[tuple[Variable | str, Any]]
    ) -> None:
        """Take one step. If it raises, no variable has changed.

        ``grads``: gradients by the variables' names, or pairs of a variable (or its name) and a
        gradient with its shape and dtype; those that are None are left out. They are gradients
        of the loss itself, also with ``loss_scale``, which then skips the step if one of their
        elements is not finite.

        Raises:
            ArgumentError: a variable does not exist, or has two gradients; a schedule returns
                something other than a number or a tensor of rank 0.
            ShapeError, DTypeError: a gradient does not have the type of its variable.

        """
        pairs = grads.items() if isinstance(grads, Mapping) else grads
        taken = self._iterations.get()
        transformation = self._transformation(self.learning_rate)
        numbers = transformation.numbers(taken)
        given = self._matched(pairs)
        steps: list[_Step] = []
        for variable, g in given:
            held = self._states.get(variable.name)
            if held is None:
                held = self._begin(variable, transformation)
            slots = {name: slot.get() for name, slot in held.items()}
            direction, factor = transformation.direction(g, slots, numbers)
            steps.append((variable, move(variable.read(), direction, factor), held, slots))
        after: Any = taken + 1
        state = None
        if self._scale is not None:
            finite = all_finite([g for _, g in given])
            steps = [_unless_skipped(step, finite) for step in steps]
            after = tp.where(finite, after, taken)
            state = self._scale.loss_scale.update(self._scale.get(), finite)
        for variable, value, held, slots in steps:
            variable.assign(value)
            for name, slot in held.items():
                slot.set(slots[name])
            self._states[variable.name] = held
        if self._scale is not None and state is not None:
            self._scale.set(state)
        self._iterations.set(after)
        self._check_later()

    def _matched(
        self, pairs: Iterable[tuple[Variable | str, Any]]
    ) -> list[tuple[Variable, Tensor]]:
        """Return each variable that has a gradient, with the gradient.

        Errors: see ``apply_gradients``.
        """
        seen: set[str] = set()
        found = []
        for who, gradient in pairs:
            variable = who if isinstance(who, Variable) else _find_variable(who)
            if variable.name in seen:
                raise ArgumentError(f"apply_gradients: {variable.name!r} has two gradients")
            seen.add(variable.name)
            if gradient is not None:
                found.append((variable, _check_gradient(variable, gradient)))
        return found

    def _begin(
        self, variable: Variable, transformation: GradientTransformation
    ) -> dict[str, compiled_state.Slot]:
        with compiled_state.outside_tracing():
            start = transformation.start(variable.read())
            return {
                slot: compiled_state.Slot(value, f"{variable.name}/{slot}")
                for slot, value in start.items()
            }

    def _check_later(self) -> None:
        """If a program is being traced, make each run check that it still fits this object."""
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

        compiled_state.check_each_run(check)

    def _options(self) -> dict[str, Any]:
        options = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return {"learning_rate": _Same(self._schedule), **options}

    def weights(self) -> dict[str, Any]:
        """Return the whole state, for ``set_weights``. It is a tree that ``save`` accepts.

        It has ``iterations``, and for each slot a dict of tensors by variable name. With
        ``loss_scale``, it has that scale's state under that name.
        """
        weights: dict[str, Any] = {_ITERATIONS: self.iterations}
        if self._scale is not None:
            weights[_LOSS_SCALE] = self._scale.get()
        for slot in self._transformation(0.0).slots:
            weights[slot] = {name: held[slot].read() for name, held in self._states.items()}
        return weights

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Restore the state that ``weights()`` returned.

        Raises:
            ArgumentError: they belong to another kind of optimizer, or to one with ``loss_scale``
                where this one has none.

        """
        slots = self._transformation(0.0).slots
        expected = {_ITERATIONS, *slots, *([] if self._scale is None else [_LOSS_SCALE])}
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
        iterations = int(weights[_ITERATIONS])
        if self._scale is not None:
            self._scale.restore(weights[_LOSS_SCALE])
        self._states = {name: self._restored(name, values) for name, values in given.items()}
        self.iterations = iterations

    def _restored(self, name: str, values: dict[str, Tensor]) -> dict[str, compiled_state.Slot]:
        """Return a variable's state with new values, if possible that of compiled functions."""
        held = self._states.get(name)
        if held is None or any(held[slot].type != value.type for slot, value in values.items()):
            return {
                slot: compiled_state.Slot(value, f"{name}/{slot}")
                for slot, value in values.items()
            }
        for slot, value in values.items():
            held[slot].assign(value)
        return held

    def __repr__(self) -> str:
        listed = {"learning_rate": self.learning_rate, _ITERATIONS: self.iterations}
        listed |= {name: value for name, value in vars(self).items() if not name.startswith("_")}
        listed |= {} if self._scale is None else {_LOSS_SCALE: self.loss_scale}
        options = ", ".join(f"{name}={value!r}" for name, value in listed.items())
        return f"{type(self).__name__}({options})"


def _unless_skipped(step: _Step, finite: Tensor) -> _Step:
    """Return the step that leaves everything as it is unless ``finite``."""
    variable, value, held, slots = step
    kept = {name: tp.where(finite, new, held[name].get()) for name, new in slots.items()}
    return variable, tp.where(finite, value, variable.read()), held, kept


class _Same:
    """A schedule, compared by identity."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    __hash__ = None  # type: ignore[assignment]  # not needed


def _scaled(f: Callable[[], R], scale: Tensor, has_aux: bool) -> Callable[[], R]:  # noqa: FBT001
    """Return a function with the value of ``f``, whose loss has gradients times ``scale``."""

    @tp.custom_grad
    def keep(loss: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        return loss, lambda dy: dy * scale.astype(dy.dtype, copy=False)

    def call() -> Any:
        result: Any = f()
        loss = result[0] if has_aux and isinstance(result, tuple) else result
        if not isinstance(loss, Tensor):
            return result  # an error, which names what ``f`` must return
        return (keep(loss), *result[1:]) if has_aux else keep(loss)

    return call


def _find_variable(name: str) -> Variable:
    variable = compiled_state.find_variable(name)
    if variable is None:
        raise ArgumentError(f"apply_gradients: there is no variable {name!r}")
    return variable


def _check_gradient(variable: Variable, gradient: Any) -> Tensor:
    g = as_tensor(gradient, what=f"apply_gradients: gradient of {variable.name!r}")
    error = ShapeError if g.shape != variable.shape else DTypeError
    if g.shape != variable.shape or g.dtype is not variable.dtype:
        raise error(
            f"apply_gradients: the gradient of {variable.name!r} is {g.type}, the variable "
            f"{variable.type}"
        )
    return g
