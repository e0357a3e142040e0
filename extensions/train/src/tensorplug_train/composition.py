"""Optimizers made of others, and running means of parameters."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

import tensorplug as tp
from tensorplug.plugin import ArgumentError, arguments, tree
from tensorplug.plugin import dtypes as dt
from tensorplug_train.rule import STEP
from tensorplug_train.transformation import GradientTransformation, choose, named_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug import Tensor

T = TypeVar("T")  # a tree of tensors


class Gated(GradientTransformation):
    """An optimizer whose step is taken where a condition holds; else only its own state changes.

    The state is a dict, with that of the inner optimizer as ``"optimizer"``.
    """

    _optimizer: GradientTransformation

    @abstractmethod
    def _gate(self, gradients: T, state: Mapping[str, Any]) -> tuple[T, dict[str, Any], Tensor]:
        """Return the gradients of the inner step, the own state after it, and the condition."""

    def scale(self, loss: Tensor, state: Mapping[str, Any]) -> Tensor:
        """Return the loss whose gradients ``step`` and ``update`` take."""
        return self._optimizer.scale(loss, state["optimizer"])

    def rate(self, state: Mapping[str, Any]) -> float | Tensor | None:
        """Return the learning rate of the next step; see ``GradientTransformation``."""
        return self._optimizer.rate(state["optimizer"])

    def update(
        self, gradients: T, state: Mapping[str, Any], params: Any = None, **loss: Any
    ) -> tuple[T, dict[str, Any]]:
        """Return what to add to the parameters, zeros without a step, and the new state."""
        own, after, taken = self._gate(gradients, state)
        updates, inner = self._optimizer.update(own, state["optimizer"], params, **loss)
        nothing = tree.tree_map(tp.zeros_like, updates)
        after["optimizer"] = choose(taken, inner, state["optimizer"])
        return choose(taken, updates, nothing), after

    def step(
        self, gradients: Any, state: Mapping[str, Any], params: T, **loss: Any
    ) -> tuple[T, dict[str, Any]]:
        """Return the new parameters and the new state; args and errors as of the optimizer's."""
        own, after, taken = self._gate(gradients, state)
        moved, inner = self._optimizer.step(own, state["optimizer"], params, **loss)
        after["optimizer"] = choose(taken, inner, state["optimizer"])
        return choose(taken, moved, params), after


def chain(*parts: Callable[[Any], Any] | GradientTransformation) -> GradientTransformation:
    """Return an optimizer that gets its gradients from functions of gradients.

    With loss scaling, ``LossScaled(chain(...))`` calls the functions with unscaled gradients.

    Args:
        parts: functions from a tree of gradients to one like it, which are called in order; the
            last part is the optimizer. The state is that of the optimizer.

    Raises:
        ArgumentError: the last part is not an optimizer, or another one is not a function.

    Examples:
        >>> def clip(gradients):
        ...     return tp.train.clip_by_global_norm(gradients, 1.0)[0]
        >>> optimizer, w = tp.train.chain(clip, tp.train.sgd(0.5)), tp.asarray([3.0, 4.0])
        >>> w, state = optimizer.step(tp.asarray([30.0, 40.0]), optimizer.init(w), w)
        >>> [round(number, 4) for number in w.tolist()]
        [2.7, 3.6]

    """
    *functions, optimizer = parts or [None]
    if not isinstance(optimizer, GradientTransformation):
        raise ArgumentError(
            f"chain: the last part must be an optimizer, got {arguments.quoted(optimizer)}"
        )
    for function in functions:
        if not callable(function):
            raise ArgumentError(
                "chain: all parts but the last must be functions of gradients, got "
                f"{arguments.quoted(function)}"
            )
    return _Chain(functions, optimizer)


class _Chain(GradientTransformation):
    def __init__(self, functions: list[Any], optimizer: GradientTransformation) -> None:
        self._functions = functions
        self._optimizer = optimizer

    def __repr__(self) -> str:
        return f"chain({', '.join(map(repr, [*self._functions, self._optimizer]))})"

    def init(self, params: Any) -> dict[str, Any]:
        return self._optimizer.init(params)

    def scale(self, loss: Tensor, state: Mapping[str, Any]) -> Tensor:
        return self._optimizer.scale(loss, state)

    def rate(self, state: Mapping[str, Any]) -> float | Tensor | None:
        return self._optimizer.rate(state)

    def update(
        self, gradients: T, state: Mapping[str, Any], params: Any = None, **loss: Any
    ) -> tuple[T, dict[str, Any]]:
        return self._optimizer.update(self._changed(gradients), state, params, **loss)

    def step(
        self, gradients: Any, state: Mapping[str, Any], params: T, **loss: Any
    ) -> tuple[T, dict[str, Any]]:
        return self._optimizer.step(self._changed(gradients), state, params, **loss)

    def _changed(self, gradients: T) -> T:
        for function in self._functions:
            gradients = function(gradients)
        return gradients


def accumulate(optimizer: GradientTransformation, every: int) -> GradientTransformation:
    """Return an optimizer that steps with the mean of the gradients of ``every`` batches.

    Between such steps the parameters stay as they are. No data is read for this. The state is
    ``{"count": int32, "sums": a tree like the parameters, "optimizer": ...}``. The mean is the
    gradient of one batch of all examples if the batches are of one size.

    Args:
        optimizer: what ``sgd``, ``adam`` and the others return.
        every: a positive integer.

    Raises:
        ArgumentError: an argument is something else.

    Examples:
        >>> optimizer, w = tp.train.accumulate(tp.train.sgd(0.5), 2), tp.asarray(1.0)
        >>> state = optimizer.init(w)
        >>> for gradient in (1.0, 2.0, 3.0):
        ...     w, state = optimizer.step(tp.asarray(gradient), state, w)
        ...     print(float(w))
        1.0
        0.25
        0.25

    """
    if not isinstance(optimizer, GradientTransformation):
        raise ArgumentError(
            f"accumulate: optimizer must be an optimizer, got {arguments.quoted(optimizer)}"
        )
    if type(every) is not int or every < 1:
        raise ArgumentError(
            f"accumulate: every must be a positive integer, got {arguments.quoted(every)}"
        )
    return _Accumulated(optimizer, every)


class _Accumulated(Gated):
    def __init__(self, optimizer: GradientTransformation, every: int) -> None:
        self._optimizer = optimizer
        self._every = every

    def __repr__(self) -> str:
        return f"accumulate({self._optimizer!r}, {self._every})"

    def init(self, params: Any) -> dict[str, Any]:
        return {
            "count": tp.zeros((), dtype=dt.int32),
            "sums": tree.tree_map(tp.zeros_like, params),
            "optimizer": self._optimizer.init(params),
        }

    def _gate(self, gradients: T, state: Mapping[str, Any]) -> tuple[T, dict[str, Any], Tensor]:
        sums = tree.tree_map(tp.add, gradients, state["sums"])
        count = state["count"] + 1
        full = count >= self._every
        means: T = tree.tree_map(lambda total: total / self._every, sums)
        empty = tree.tree_map(tp.zeros_like, sums)
        return means, {"count": tp.where(full, 0, count), "sums": choose(full, empty, sums)}, full


class ema:  # noqa: N801  # called like a function, as the optimizers are
    """Running means of parameters, as pure functions of a state.

    ``mean = decay * mean + (1 - decay) * w`` after each step; ``value`` divides it by
    ``1 - decay**t``, so it is a weighted mean of the parameters so far. A network with averaged
    parameters often predicts better. (Polyak and Juditsky 1992; Kingma and Ba 2015, section 7.2.)

    Args:
        decay: a number from 0 to below 1.

    Raises:
        ArgumentError: it is not.

    Examples:
        >>> averaging, w = tp.train.ema(0.5), tp.asarray(1.0)
        >>> state = averaging.init(w)
        >>> for w in (tp.asarray(1.0), tp.asarray(4.0)):
        ...     state = averaging.update(w, state)
        >>> round(float(averaging.value(state)), 4)
        3.0

    """

    def __init__(self, decay: float) -> None:
        given: Any = decay
        if not isinstance(given, int | float) or isinstance(given, bool) or not 0 <= given < 1:
            raise ArgumentError(
                f"ema: decay must be a number from 0 to below 1, got {arguments.quoted(decay)}"
            )
        self._decay = float(decay)

    def __repr__(self) -> str:
        return f"ema({self._decay})"

    def init(self, params: Any) -> dict[str, Any]:
        """Return ``{"step": 0, "means": zeros}``, of which the means are a tree like ``params``.

        Raises:
            ArgumentError, DTypeError: a leaf is not a tensor of floating or complex numbers.

        """
        named_leaves("ema: params", params)
        return {STEP: tp.zeros((), dtype=dt.int32), "means": tree.tree_map(tp.zeros_like, params)}

    def update(self, params: Any, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state after the parameters of a further step."""
        keep = self._decay
        means = tree.tree_map(lambda old, w: old * keep + w * (1 - keep), state["means"], params)
        return {STEP: state[STEP] + 1, "means": means}

    def value(self, state: Mapping[str, Any]) -> Any:
        """Return the means with their bias corrected, a tree like the parameters; NaN at first."""
        t = tp.astype(state[STEP], dt.float32)
        weight = -tp.expm1(t * math.log(self._decay)) if self._decay else tp.ones_like(t)
        return tree.tree_map(
            lambda mean: mean / tp.astype(weight, dt.real_part(mean.dtype)), state["means"]
        )
