"""Rules for large models and batches: Lion, LAMB and Adafactor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.plugin import DTypeError
from tensorplug.plugin import dtypes as dt
from tensorplug_train.clipping import sum_of_squares
from tensorplug_train.rule import Rule, split
from tensorplug_train.rules import adam_direction, mean

if TYPE_CHECKING:
    from tensorplug import Tensor
    from tensorplug_train.rule import LearningRate, Mask, Numbers, Slots
    from tensorplug_train.transformation import GradientTransformation


def lion(
    learning_rate: LearningRate = 1e-4,
    beta1: float = 0.9,
    beta2: float = 0.99,
    *,
    weight_decay: float = 0.0,
    mask: Mask | None = None,
) -> GradientTransformation:
    """Return Lion: steps of ``lr`` in each element, with half of Adam's state.

    ``w -= lr * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * w)``, and then
    ``m = beta2 * m + (1 - beta2) * g``. m is the slot ``"means"``. Rates are three to ten times
    smaller than for ``adamw``, and ``weight_decay`` as much larger. (Chen et al., "Symbolic
    discovery of optimization algorithms", 2023.)

    ``learning_rate`` and ``mask``: as for ``sgd``.

    Examples:
        >>> optimizer, w = tp.train.lion(0.1), tp.asarray(1.0)
        >>> w, state = optimizer.step(tp.asarray(2.0), optimizer.init(w), w)
        >>> round(float(w), 4)
        0.9

    """

    def formula(g: Tensor, slots: Slots, numbers: Numbers) -> tuple[Tensor, Any]:
        m = slots["means"]
        slots["means"] = mean(m, g, beta2)
        return tp.sign(mean(m, g, beta1)), numbers.rate(g.dtype)

    return Rule(
        "lion",
        {"means": 0.0},
        formula,
        learning_rate,
        weight_decay=weight_decay,
        mask=mask,
        decoupled=True,
    )


def lamb(
    learning_rate: LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    *,
    weight_decay: float = 0.0,
    mask: Mask | None = None,
) -> GradientTransformation:
    """Return LAMB: Adam for large batches, with steps in proportion to each parameter's norm.

    With Adam's direction r, ``u = r + weight_decay * w`` and ``w -= lr * |w| / |u| * u``, where
    ``|w|`` is the norm of the whole parameter; the quotient is 1 if one of the norms is 0. The
    slots are Adam's. (You et al., "Large batch optimization for deep learning", 2020.)

    ``beta1``, ``beta2``, ``epsilon``: as for ``adam``; ``learning_rate``, ``mask``: for ``sgd``.

    Examples:
        >>> optimizer, w = tp.train.lamb(0.1), tp.asarray([3.0, 4.0])
        >>> w, state = optimizer.step(tp.asarray([1.0, 0.0]), optimizer.init(w), w)
        >>> [round(number, 4) for number in w.tolist()]
        [2.5, 4.0]

    """

    def formula(g: Tensor, slots: Slots, numbers: Numbers) -> tuple[Tensor, Any]:
        direction = adam_direction(g, slots, numbers, beta1, beta2, epsilon)
        return direction / numbers.correction(beta1, g.dtype), numbers.rate(g.dtype)

    slots = {"means": 0.0, "squares": 0.0}
    return _LAMB("lamb", slots, formula, learning_rate, weight_decay=weight_decay, mask=mask)


class _LAMB(Rule):
    needs_params = True

    def direction(
        self, gradient: Tensor, slots: Slots, numbers: Numbers, parameter: Any, decay: float
    ) -> tuple[Tensor, Any]:
        w = split(parameter)
        r, rate = super().direction(gradient, slots, numbers, parameter, 0.0)
        u = r + w * decay
        ours, other = tp.sqrt(sum_of_squares(w)), tp.sqrt(sum_of_squares(u))
        both = tp.logical_and(ours > 0, other > 0)
        quotient = tp.where(both, ours / tp.where(both, other, 1.0), 1.0)
        return u, tp.astype(quotient, w.dtype, copy=False) * rate


def adafactor(
    learning_rate: LearningRate = 0.01,
    *,
    decay_power: float = 0.8,
    epsilon: float = 1e-30,
    least_size: float = 1e-3,
    clipping: float = 1.0,
    weight_decay: float = 0.0,
    mask: Mask | None = None,
) -> GradientTransformation:
    """Return Adafactor: Adam's scaling with a state of a row and a column for each matrix.

    At step t, with ``b = 1 - t**-decay_power``, the running means with weight b of the mean
    squares ``g**2 + epsilon`` in each row and in each column, ``rows`` and ``columns``, give
    ``v = rows * columns / mean(rows)``. ``u = g / sqrt(v)`` is divided by
    ``max(1, rms(u) / clipping)``, and then w decreases by
    ``min(lr, t**-0.5) * max(rms(w), least_size) * u``. rms is the root of the mean square of a
    whole parameter. Matrices are the last two axes; parameters of rank 0 and 1 keep the mean
    squares themselves in ``rows``. ``weight_decay`` is decoupled, as in ``adamw``. (Shazeer and
    Stern, "Adafactor: adaptive learning rates with sublinear memory cost", 2018.)

    ``learning_rate`` and ``mask``: as for ``sgd``.

    Raises:
        DTypeError: a parameter is complex.

    Examples:
        >>> optimizer, w = tp.train.adafactor(), tp.ones((3, 2))
        >>> state = optimizer.init(w)
        >>> state["rows"].shape, state["columns"].shape
        ((3,), (2,))
        >>> w, state = optimizer.step(tp.ones((3, 2)), state, w)
        >>> round(float(w[0, 0]), 4)
        0.99

    """
    options = (float(decay_power), float(epsilon), float(least_size), float(clipping))
    return _Adafactor(options, learning_rate, weight_decay, mask)


class _Adafactor(Rule):
    needs_params = True

    def __init__(
        self,
        options: tuple[float, float, float, float],
        learning_rate: LearningRate,
        weight_decay: float,
        mask: Mask | None,
    ) -> None:
        super().__init__(
            "adafactor",
            {"rows": 0.0, "columns": 0.0},
            lambda g, _, numbers: (g, numbers.rate(g.dtype)),  # see ``direction``
            learning_rate,
            weight_decay=weight_decay,
            mask=mask,
            decoupled=True,
        )
        self._options = options

    def start(self, parameter: Tensor) -> Slots:
        if parameter.dtype in dt.COMPLEX:
            raise DTypeError(f"adafactor: parameters must be real, got {parameter.type}")
        zeros = tp.zeros_like(parameter)
        if parameter.ndim < 2:
            return {"rows": zeros, "columns": tp.sum(zeros)}
        return {"rows": tp.sum(zeros, axis=-1), "columns": tp.sum(zeros, axis=-2)}

    def shape(self, slot: str, parts: tuple[int, ...]) -> tuple[int, ...]:
        if len(parts) < 2:
            return parts if slot == "rows" else ()
        return parts[:-1] if slot == "rows" else (*parts[:-2], parts[-1])

    def direction(
        self,
        gradient: Tensor,
        slots: Slots,
        numbers: Numbers,
        parameter: Any,
        decay: float,  # noqa: ARG002  # decoupled
    ) -> tuple[Tensor, Any]:
        power, epsilon, least, clipping = self._options
        g, dtype = gradient, gradient.dtype
        t = tp.astype(numbers.t(dtype), dtype)
        keep = 1.0 - tp.pow(t, -power)
        squares = tp.square(g) + epsilon
        if g.ndim < 2:
            slots["rows"] = mean(slots["rows"], squares, keep)
            u = g / tp.sqrt(slots["rows"])
        else:
            slots["rows"] = mean(slots["rows"], tp.mean(squares, axis=-1), keep)
            slots["columns"] = mean(slots["columns"], tp.mean(squares, axis=-2), keep)
            rows = tp.expand_dims(slots["rows"], axis=-1)
            columns = tp.expand_dims(slots["columns"], axis=-2)
            # Roots first: the product of two means may be too small for float32.
            scale = tp.sqrt(rows / tp.mean(rows, axis=-2, keepdims=True))
            u = g / (scale * tp.sqrt(columns))
        u = u / tp.maximum(_rms(u) / clipping, 1.0)
        rate = tp.minimum(tp.astype(tp.asarray(numbers.rate(dtype)), dtype), tp.pow(t, -0.5))
        return u, rate * tp.maximum(_rms(parameter), least)


def _rms(x: Tensor) -> Tensor:
    return tp.sqrt(tp.mean(tp.square(x)))
