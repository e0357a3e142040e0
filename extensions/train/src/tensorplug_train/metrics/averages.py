"""Means over examples: of errors, of losses."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.plugin import ShapeError, as_tensor
from tensorplug_train.metrics.metric import Average, Metric, read_labels, spread_weights, widened

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug import Tensor

_GREATEST: Final = math.log(sys.float_info.max)


@dataclass(frozen=True)
class Mean(Average):
    """The mean of ``function(labels, predictions)``, such as a loss, or of the predictions.

    Attributes:
        function: returns a number for each example, ``[examples, ...]``.

    Examples:
        >>> loss = tp.train.metrics.Mean(lambda y, p: tp.square(y - p))
        >>> loss.result(loss.of(tp.asarray([1.0, 2.0]), tp.asarray([1.0, 4.0])))
        2.0

    """

    function: Callable[[Any, Any], Any] | None = tp.static_field(default=None)

    def terms(self, labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any, Any]:
        """Return the values of the function; see ``Average``."""
        found = predictions if self.function is None else self.function(labels, predictions)
        values = widened(found, "Mean: the values")
        return values, spread_weights("Mean", weights, values), None


class _Errors(Average):
    """The mean of a function of ``predictions - labels``."""

    def terms(self, labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any, Any]:
        caller = type(self).__name__
        true, guessed = _read_pair(caller, labels, predictions)
        return self.measure(guessed - true), spread_weights(caller, weights, true), None

    measure: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class MeanAbsoluteError(_Errors):
    """The mean of ``|predictions - labels|`` over all elements.

    Examples:
        >>> error = tp.train.metrics.MeanAbsoluteError()
        >>> error.result(error.of([1.0, 2.0], [1.5, 4.0]))
        1.25

    """

    measure = staticmethod(tp.abs)


@dataclass(frozen=True)
class MeanSquaredError(_Errors):
    """The mean of ``(predictions - labels)**2`` over all elements.

    Examples:
        >>> error = tp.train.metrics.MeanSquaredError()
        >>> error.result(error.of([1.0, 2.0], [1.5, 4.0]))
        2.125

    """

    measure = staticmethod(tp.square)


@dataclass(frozen=True)
class Perplexity(Average):
    """``exp`` of the mean of ``-log(softmax(predictions)[label])`` over all labels.

    Predictions are logits ``[..., classes]``. Padding has labels of weight 0.

    Examples:
        >>> perplexity = tp.train.metrics.Perplexity()
        >>> round(perplexity.result(perplexity.of([[1, 0]], tp.zeros((1, 2, 5)))), 6)
        5.0

    """

    def terms(self, labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any, Any]:
        """Return the loss of each label; see ``Average``."""
        logits = widened(predictions, "Perplexity: predictions")
        read = read_labels("Perplexity", labels, logits, weights)
        loss = tp.losses.sparse_softmax_cross_entropy
        return loss(read.true, read.scores, reduction="none"), read.weights, read.faults

    def result(self, sums: Any) -> float:
        """Return the perplexity; see ``Metric``."""
        mean = super().result(sums)
        return math.inf if mean > _GREATEST else math.exp(mean)


@dataclass(frozen=True)
class R2(Metric):
    """The coefficient of determination, ``1 - sum((y - p)**2) / sum((y - mean(y))**2)``.

    Labels are ``[examples]``, or ``[examples, ...]`` with several outputs, over whose values it is
    averaged. An output with constant labels counts 1 if all predictions are right, otherwise 0.
    The sums of two batches are merged by Chan, Golub and LeVeque's formula ("Updating formulae and
    a pairwise algorithm for computing sample variances", 1979), as a variance from a sum of
    squares would lose its digits.

    Examples:
        >>> r2 = tp.train.metrics.R2()
        >>> r2.result(r2.of([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]))
        0.5

    """

    def of(self, labels: Any, predictions: Any, weights: Any = None) -> dict[str, Tensor]:
        """Return the weight, mean and sums of squares of each output; see ``Metric``."""
        true, guessed = _read_pair("R2", labels, predictions)
        spread = spread_weights("R2", weights, true)
        factors = tp.ones_like(true) if spread is None else spread.astype(true.dtype)
        weight = tp.sum(factors, axis=0)
        mean = tp.sum(true * factors, axis=0) / tp.where(weight == 0, 1, weight)
        squares = tp.sum(factors * tp.square(true - mean), axis=0)
        errors = tp.sum(factors * tp.square(true - guessed), axis=0)
        return {"weight": weight, "mean": mean, "squares": squares, "errors": errors}

    def merge(self, a: Any, b: Any) -> dict[str, Any]:
        """Return the sums of two batches together."""
        merged: dict[str, Any] = super().merge(a, b)
        weight, apart = merged["weight"], b["mean"] - a["mean"]
        share = b["weight"] / tp.where(weight == 0, 1, weight)
        squares = merged["squares"] + tp.square(apart) * a["weight"] * share
        return merged | {"mean": a["mean"] + apart * share, "squares": squares}

    def result(self, sums: Any) -> float:
        """Return the mean over the outputs; NaN without any weight."""
        squares, errors = (np.asarray(sums[name], np.float64) for name in ("squares", "errors"))
        constant = squares == 0
        values = np.where(constant, errors == 0, 1 - errors / np.where(constant, 1, squares))
        return float(np.mean(values)) if np.all(np.asarray(sums["weight"])) else math.nan


def _read_pair(caller: str, labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Return labels and predictions, floats of one dtype and shape."""
    true = as_tensor(labels, what=f"{caller}: labels")
    guessed = widened(predictions, f"{caller}: predictions")
    if true.shape != guessed.shape:
        raise ShapeError(
            f"{caller}: labels {true.type} and predictions {guessed.type} must have one shape"
        )
    return true.astype(guessed.dtype), guessed
