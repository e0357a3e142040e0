"""Means over examples: of errors, of losses."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
