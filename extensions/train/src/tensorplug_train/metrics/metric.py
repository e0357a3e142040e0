"""What metrics share: the protocol, means, weights, and labels outside of the classes."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import tensorplug as tp
from tensorplug.plugin import DTypeError, OutOfRangeError, ShapeError, as_tensor
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug import Tensor
    from tensorplug.typing import ArrayLike


class Metric(ABC):
    """A number, or several, that describe predictions: pure functions on sums over batches.

    Attributes:
        collects: whether ``merge`` collects values on the host. Such a metric is merged outside
            of compiled functions.

    Examples:
        >>> metric = tp.train.metrics.Accuracy()
        >>> first, second = metric.of([0], [[0.9, 0.1]]), metric.of([1, 1], [[0.2, 0.8], [1, 0]])
        >>> metric.result(metric.merge(first, second))
        0.6666666666666666

    """

    collects: ClassVar[bool] = False

    @abstractmethod
    def of(
        self, labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None
    ) -> Any:
        """Return the sums of one batch, a tree of tensors.

        Args:
            labels: what is true.
            predictions: what the model returned.
            weights: of the examples, or of each label, broadcast from the first axis. Labels of
                weight 0 count nothing, whatever they are. By default all weights are 1.

        """

    def merge(self, a: Any, b: Any) -> Any:
        """Return the sums of two batches together: the sums of their leaves."""
        merged = tp.tree_map(operator.add, a, b)
        if "faults" in merged:  # the first bad label of both
            first, second = a["faults"], b["faults"]
            shifted = second | {"place": first["labels"] + second["place"]}
            for name in ("place", "label", "classes"):
                merged["faults"][name] = tp.where(first["bad"] > 0, first[name], shifted[name])
        return merged

    @abstractmethod
    def result(self, sums: Any) -> Any:
        """Return the value of the metric, read from the device; NaN without any weight.

        Raises:
            OutOfRangeError: a label was outside of the classes: its value and its place.

        """

    def check(self, sums: Any) -> None:
        """Raise an error for the first label outside of the classes, if there is one."""
        faults = {name: int(value) for name, value in sums["faults"].items()}
        if faults["bad"]:
            label, place, bad = faults["label"], faults["place"], faults["bad"]
            raise OutOfRangeError(
                f"{type(self).__name__}: label {label} at place {place} of all labels is not one "
                f"of the classes from 0 to {faults['classes'] - 1}; there are {bad} such labels"
            )


class Average(Metric):
    """The mean of one number for each label."""

    @abstractmethod
    def terms(self, labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any, Any]:
        """Return the numbers, their weights or None, and the faults of labels or None."""

    def of(self, labels: Any, predictions: Any, weights: Any = None) -> dict[str, Any]:
        """Return the sums of one batch; see ``Metric``."""
        values, spread, faults = self.terms(labels, predictions, weights)
        ones = tp.ones_like(values, dtype=dt.int32)
        sums = {"total": _total(values, spread), "weight": _total(ones, spread)}
        return sums if faults is None else sums | {"faults": faults}

    def result(self, sums: Any) -> float:
        """Return the mean; see ``Metric``."""
        if "faults" in sums:
            self.check(sums)
        total, weight = float(sums["total"]), float(sums["weight"])
        return total / weight if weight else math.nan


class Labels(NamedTuple):
    """The labels of a batch on one axis, with those outside of the classes replaced.

    ``weights``: of the labels; None means 1. ``scores``: ``[labels, classes]``, or ``[labels]``
    with a threshold.
    """

    classes: int
    true: Tensor
    weights: Tensor | None
    scores: Tensor
    threshold: float | None
    faults: dict[str, Tensor]

    @property
    def guessed(self) -> Tensor:
        """The predicted classes, int32."""
        if self.threshold is None:
            return tp.argmax(self.scores, axis=-1).astype(dt.int32)
        return tp.greater(self.scores, self.threshold).astype(dt.int32)


def read_labels(
    caller: str, labels: Any, predictions: Any, weights: Any, threshold: float | None = None
) -> Labels:
    """Return labels for predictions ``[..., classes]``; ``[...]`` with a threshold.

    ``labels``: integers ``[...]``, or probabilities ``[..., classes]``, of which the greatest
    counts.
    """
    scores = as_tensor(predictions, what=f"{caller}: predictions")
    true = as_tensor(labels, what=f"{caller}: labels")
    classes, shape = 2, scores.shape
    axes: tuple[int, ...] = (-1,)
    if threshold is None:
        if not scores.ndim:
            raise ShapeError(f"{caller}: predictions need an axis of classes, or threshold=")
        classes, shape, axes = scores.shape[-1], scores.shape[:-1], (-1, scores.shape[-1])
        if true.shape == scores.shape and true.dtype in dt.FLOATING:
            true = tp.argmax(true, axis=-1)
    if true.shape != shape:
        how = "one for each class" if threshold is None else "with threshold, one for each label"
        raise ShapeError(
            f"{caller}: labels are {true.type}, but predictions are {scores.type}, {how}"
        )
    if true.dtype not in dt.INTEGER and true.dtype is not dt.bool_:
        raise DTypeError(f"{caller}: labels must be integers, got {true.type}")
    spread = spread_weights(caller, weights, true)
    flat = tp.reshape(true, (-1,)).astype(dt.int32 if true.dtype is dt.bool_ else true.dtype)
    bad = tp.logical_or(flat < 0, flat >= classes)
    within = tp.where(bad, tp.zeros_like(flat), flat).astype(dt.int32)
    if spread is not None:
        spread = tp.reshape(spread, (-1,))
        bad = tp.logical_and(bad, spread != 0)
    marks = bad.astype(dt.int32)
    place = tp.argmax(marks, axis=0)
    faults = {
        "labels": tp.sum(tp.ones_like(marks)),
        "bad": tp.sum(marks),
        "place": place.astype(dt.int32),
        "label": tp.take(flat, place, axis=0),
        "classes": tp.full((), classes, dtype=dt.int32),
    }
    return Labels(classes, within, spread, tp.reshape(scores, axes), threshold, faults)


def spread_weights(caller: str, weights: Any, values: Tensor) -> Tensor | None:
    """Return weights in the shape of ``values``, broadcast from the first axis."""
    if weights is None:
        return None
    own = as_tensor(weights, what=f"{caller}: weights")
    if own.shape != values.shape[: own.ndim]:
        raise ShapeError(
            f"{caller}: weights {own.type} must have the shape of the labels, {values.shape}, or "
            "of its first axes"
        )
    own = tp.reshape(own, own.shape + (1,) * (values.ndim - own.ndim))
    return tp.broadcast_to(own.astype(dt.int32) if own.dtype is dt.bool_ else own, values.shape)


def widened(x: Any, what: str) -> Tensor:
    """Return numbers in the float dtype in which they are summed."""
    numbers = as_tensor(x, what=what)
    return numbers.astype(numbers.dtype.compute if numbers.dtype in dt.FLOATING else dt.float32)


def _total(values: Tensor, weights: Tensor | None) -> Tensor:
    """Return the weighted sum; counts stay int32, since float32 cannot hold those from 2**24."""
    if values.dtype is dt.bool_:
        values = values.astype(dt.int32)
    return tp.sum(values if weights is None else tp.where(weights == 0, 0, values * weights))
