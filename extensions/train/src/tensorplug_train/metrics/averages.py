"""Means over examples: of errors, of losses."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug.plugin import ShapeError, as_tensor
from tensorplug.plugin import dtypes as dt
from tensorplug_train.metrics.metric import Metric, ratio, spread_weights, total, total_weight

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug import Tensor


class _Average(Metric):
    """The mean of one number for each element."""

    @abstractmethod
    def values(self, labels: Any, predictions: Any) -> Tensor:
        """Return what is averaged."""

    def of(self, labels: Any, predictions: Any, weights: Any = None) -> dict[str, Tensor]:
        """Return the sums of one batch; see ``Metric``."""
        values = self.values(labels, predictions)
        spread = spread_weights(type(self).__name__, weights, values)
        return {"total": total(values, spread), "weight": total_weight(values, spread)}

    def result(self, sums: Any) -> float:
        """Return the value; NaN without any weight."""
        return ratio(sums["total"], sums["weight"])


@dataclass(frozen=True)
class Mean(_Average):
    """The mean of ``function(labels, predictions)``, such as a loss, or of the predictions.

    Attributes:
        function: returns a number for each example, ``[examples, ...]``.

    Examples:
        >>> loss = tp.train.metrics.Mean(lambda y, p: tp.square(y - p))
        >>> loss.result(loss.of(tp.asarray([1.0, 2.0]), tp.asarray([1.0, 4.0])))
        2.0

    """

    function: Callable[[Any, Any], Any] | None = tp.static_field(default=None)

    def values(self, labels: Any, predictions: Any) -> Tensor:
        """Return what is averaged."""
        found = predictions if self.function is None else self.function(labels, predictions)
        return widened(as_tensor(found, what="Mean: the values"))


@dataclass(frozen=True)
class MeanAbsoluteError(_Average):
    """The mean of ``|predictions - labels|`` over all elements.

    Examples:
        >>> error = tp.train.metrics.MeanAbsoluteError()
        >>> error.result(error.of([1.0, 2.0], [1.5, 4.0]))
        1.25

    """

    def values(self, labels: Any, predictions: Any) -> Tensor:
        """Return what is averaged."""
        return tp.abs(tp.subtract(*read_pair(type(self).__name__, labels, predictions)))


@dataclass(frozen=True)
class MeanSquaredError(_Average):
    """The mean of ``(predictions - labels)**2`` over all elements.

    Examples:
        >>> error = tp.train.metrics.MeanSquaredError()
        >>> error.result(error.of([1.0, 2.0], [1.5, 4.0]))
        2.125

    """

    def values(self, labels: Any, predictions: Any) -> Tensor:
        """Return what is averaged."""
        return tp.square(tp.subtract(*read_pair(type(self).__name__, labels, predictions)))


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
        true, guessed = read_pair("R2", labels, predictions)
        spread = spread_weights("R2", weights, true)
        factors = tp.ones_like(true) if spread is None else tp.astype(spread, true.dtype)
        weight = tp.sum(factors, axis=0)
        mean = tp.sum(true * factors, axis=0) / tp.where(weight == 0, 1, weight)
        return {
            "weight": weight,
            "mean": mean,
            "spread": tp.sum(factors * tp.square(true - mean), axis=0),
            "errors": tp.sum(factors * tp.square(true - guessed), axis=0),
        }

    def merge(self, a: Any, b: Any) -> dict[str, Any]:
        """Return the sums of two batches together."""
        weight = a["weight"] + b["weight"]
        share = b["weight"] / tp.where(weight == 0, 1, weight)
        apart = b["mean"] - a["mean"]
        return {
            "weight": weight,
            "mean": a["mean"] + apart * share,
            "spread": a["spread"] + b["spread"] + tp.square(apart) * a["weight"] * share,
            "errors": a["errors"] + b["errors"],
        }

    def result(self, sums: Any) -> float:
        """Return the mean over the outputs; NaN without any weight."""
        weight, spread, errors = (
            np.asarray(sums[name], np.float64) for name in ("weight", "spread", "errors")
        )
        constant = np.where(errors == 0, 1.0, 0.0)
        values = np.where(spread == 0, constant, 1 - errors / np.where(spread == 0, 1, spread))
        return float(np.mean(np.where(weight == 0, np.nan, values)))


def read_pair(caller: str, labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Return labels and predictions, floats of one dtype.

    Raises:
        ShapeError: they have different shapes.

    """
    true = as_tensor(labels, what=f"{caller}: labels")
    guessed = widened(as_tensor(predictions, what=f"{caller}: predictions"))
    if true.shape != guessed.shape:
        raise ShapeError(
            f"{caller}: labels {true.type} and predictions {guessed.type} must have one shape"
        )
    return tp.astype(true, guessed.dtype), guessed


def widened(x: Tensor) -> Tensor:
    """Return numbers in the float dtype in which they are summed."""
    return tp.astype(x, x.dtype.compute if x.dtype in dt.FLOATING else dt.float32)
