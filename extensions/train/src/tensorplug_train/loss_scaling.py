"""Loss scaling: gradients in float16 that would vanish are multiplied by a large number.

The loss is multiplied before the backward pass, and the gradients divided after it. A step whose
gradients are not finite is skipped. (Micikevicius et al., "Mixed precision training", 2018.)
"""

from __future__ import annotations

from math import isfinite as is_finite_number
from typing import TYPE_CHECKING, Any, Final, TypeVar

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import ArgumentError, arguments, tree
from tensorplug.plugin import dtypes as dt
from tensorplug_train.composition import Gated
from tensorplug_train.transformation import GradientTransformation, named_leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


T = TypeVar("T")  # a tree of tensors

_SCALE: Final = "scale"
_FINITE: Final = "finite_steps"
_DTYPES: Final = {_SCALE: dt.float32, _FINITE: dt.int32}
_LEAST: Final = 1.0  # below, the gradients of float16 would be smaller than without scaling


class LossScale:
    """A factor for the loss, as pure functions of a state, like those of an optimizer.

    The factor is multiplied by ``growth`` after ``interval`` steps in a row with finite gradients,
    and by ``backoff``, down to 1, at each step whose gradients are not finite. With
    ``interval=None`` it stays constant. Powers of two change no digit of a gradient.

    Args:
        initial: the first factor.
        interval: the number of finite steps until the factor grows; None keeps it constant.
        growth: a number of at least 1.
        backoff: a number between 0 and 1.

    Raises:
        ArgumentError: a number is out of its range.

    Examples:
        >>> scaling = tp.train.LossScale(8.0)
        >>> state = scaling.init()
        >>> x = tp.asarray([1.0, 2.0])
        >>> scaled = tp.grad(lambda x: scaling.scale(tp.sum(x**2), state))(x)
        >>> gradients, finite = scaling.unscale(scaled, state)
        >>> scaled.tolist(), gradients.tolist(), bool(finite)
        ([16.0, 32.0], [2.0, 4.0], True)
        >>> scaling.update(state, finite=tp.asarray(False))["scale"].item()
        4.0

    """

    def __init__(
        self,
        initial: float = 2.0**15,
        *,
        interval: int | None = 2000,
        growth: float = 2.0,
        backoff: float = 0.5,
    ) -> None:
        self._initial = _number(initial, "initial", "positive", lambda x: x > 0)
        self._growth = _number(growth, "growth", "at least 1", lambda x: x >= 1)
        self._backoff = _number(backoff, "backoff", "between 0 and 1", lambda x: 0 < x < 1)
        if interval is not None and (type(interval) is not int or interval < 1):
            raise ArgumentError(
                "LossScale: interval must be a positive integer or None, got "
                f"{arguments.quoted(interval)}"
            )
        self._interval = interval

    def __repr__(self) -> str:
        return (
            f"LossScale({self._initial}, interval={self._interval}, growth={self._growth}, "
            f"backoff={self._backoff})"
        )

    def init(self) -> dict[str, Tensor]:
        """Return the state before the first step.

        It is ``{"scale": float32, "finite_steps": int32}``, of rank 0.
        """
        first = {_SCALE: self._initial, _FINITE: 0}
        return {name: tp.full((), first[name], dtype=dtype) for name, dtype in _DTYPES.items()}

    def scale(self, loss: Tensor, state: Mapping[str, Tensor]) -> Tensor:
        """Return the loss times the factor, in float32 at least."""
        return tp.multiply(loss, state[_SCALE])

    def unscale(self, gradients: T, state: Mapping[str, Tensor]) -> tuple[T, Tensor]:
        """Return a tree divided by the factor, and whether all of its elements are finite.

        Args:
            gradients: a tree of floating or complex tensors: the gradients of the scaled loss,
                or the pair of that loss and its gradients.
            state: with which the loss was scaled.

        Returns:
            ``(gradients, finite)``: a tree with the structure and types of the argument; a bool
            of rank 0.

        Raises:
            ArgumentError, DTypeError: a leaf is not a tensor of floating or complex numbers.

        """
        found = divided(gradients, state[_SCALE], "unscale")
        return found, all_finite(tree.flatten(gradients)[0])

    def update(self, state: Mapping[str, Tensor], finite: Tensor) -> dict[str, Tensor]:
        """Return the state after a step whose gradients were ``finite`` or not."""
        if self._interval is None:
            return dict(state)
        scale, steps = state[_SCALE], state[_FINITE] + 1
        grows = steps >= self._interval
        grown = scale * self._growth
        grown = tp.where(tp.logical_and(grows, tp.isfinite(grown)), grown, scale)
        shrunk = tp.maximum(scale * self._backoff, tp.minimum(scale, _LEAST))
        kept = tp.logical_and(finite, steps < self._interval)
        return {_SCALE: tp.where(finite, grown, shrunk), _FINITE: tp.where(kept, steps, 0)}


class LossScaled(Gated):
    """An optimizer for the gradients of a scaled loss; it skips steps that are not finite.

    ``step``, ``update`` and ``apply_gradients`` take gradients of ``scale(loss, state)``, the loss
    times the factor; ``minimize`` scales by itself, and returns the loss. A skipped step changes
    neither parameters nor the optimizer's state, only the factor. No data is read, so this works
    in compiled functions, too.

    Args:
        optimizer: what ``sgd``, ``adam`` and the others return.
        loss_scale: by default ``LossScale()``.

    Examples:
        >>> optimizer = tp.train.LossScaled(tp.train.sgd(0.5))
        >>> params = {"w": tp.asarray([1.0, -2.0])}
        >>> state = optimizer.init(params)
        >>> def loss(params):
        ...     return tp.sum(tp.square(params["w"]))
        >>> scaled = tp.grad(lambda params: optimizer.scale(loss(params), state))(params)
        >>> params, state = optimizer.step(scaled, state, params)
        >>> params["w"].tolist()
        [0.0, 0.0]

    """

    def __init__(
        self, optimizer: GradientTransformation, loss_scale: LossScale | None = None
    ) -> None:
        self._optimizer = optimizer
        self._loss_scale = LossScale() if loss_scale is None else loss_scale

    def __repr__(self) -> str:
        return f"LossScaled({self._optimizer!r}, {self._loss_scale!r})"

    def init(self, params: Any) -> dict[str, Any]:
        """Return ``{"loss_scale": ..., "optimizer": ...}``, the states before the first step."""
        return {"loss_scale": self._loss_scale.init(), "optimizer": self._optimizer.init(params)}

    def scale(self, loss: Tensor, state: Mapping[str, Any]) -> Tensor:
        """Return the loss whose gradients ``step`` and ``update`` take."""
        return self._loss_scale.scale(loss, state["loss_scale"])

    def _gate(self, gradients: T, state: Mapping[str, Any]) -> tuple[T, dict[str, Any], Tensor]:
        unscaled, finite = self._loss_scale.unscale(gradients, state["loss_scale"])
        return (
            unscaled,
            {"loss_scale": self._loss_scale.update(state["loss_scale"], finite)},
            finite,
        )


def divided(gradients: T, scale: Tensor, who: str) -> T:
    """Return a tree of gradients divided by ``scale``; each leaf keeps its shape and dtype.

    ``scale`` has rank 0. ``who``: the function to name in errors.

    Raises:
        ArgumentError, DTypeError: a leaf is not a tensor of floating or complex numbers.

    """
    found = []
    for _, leaf in named_leaves(f"{who}: gradients", gradients):
        wide = tp.astype(leaf, leaf.dtype.compute, copy=False)
        divisor = tp.astype(scale, dt.real_part(wide.dtype), copy=False)
        found.append(tp.astype(wide / divisor, leaf.dtype, copy=False))
    rebuilt: T = tree.flatten(gradients)[1](found)
    return rebuilt


def all_finite(tensors: Iterable[Tensor]) -> Tensor:
    """Return whether no element of any tensor is infinite or NaN, a bool of rank 0."""
    finite = tp.full((), True, dtype=dt.bool_)  # noqa: FBT003  # a value
    for tensor in tensors:
        finite = tp.logical_and(finite, tp.all(tp.isfinite(tensor)))
    return finite


def _number(value: Any, name: str, allowed: str, fits: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not is_finite_number(value) or not fits(value):
        raise ArgumentError(f"LossScale: {name} must be {allowed}, got {arguments.quoted(value)}")
    return float(value)
