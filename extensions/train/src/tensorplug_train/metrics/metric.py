"""What metrics share: the protocol, weights, and labels outside of the classes."""

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
        return tp.tree_map(operator.add, a, b)

    @abstractmethod
    def result(self, sums: Any) -> Any:
        """Return the value of the metric, read from the device; NaN without any weight."""


class LabelMetric(Metric):
    """A metric whose ``of`` counts labels outside of the classes, since it cannot read them."""

    def merge(self, a: Any, b: Any) -> Any:
        """Return the sums of two batches together, with the first bad label of both."""
        merged = super().merge(a, b)
        first, second = a["faults"], b["faults"]
        here = first["bad"] > 0
        place = tp.where(here, first["place"], first["labels"] + second["place"])
        label = tp.where(here, first["label"], second["label"])
        kept = {"place": place, "label": label, "classes": first["classes"]}
        return merged | {"faults": merged["faults"] | kept}

    def check(self, sums: Any) -> None:
        """Raise an error that names the first label outside of the classes, if there is one."""
        faults = {name: int(value) for name, value in sums["faults"].items()}
        if faults["bad"]:
            label, place, bad = faults["label"], faults["place"], faults["bad"]
            raise OutOfRangeError(
                f"{type(self).__name__}: label {label} at place {place} of all labels is not one "
                f"of the classes from 0 to {faults['classes'] - 1}; there are {bad} such labels"
            )


class Labels(NamedTuple):
    """The labels of a batch, as one axis: all within the classes, where ``faults`` has no bad one.

    ``weights``: of the labels; None means 1.
    """

    classes: int
    true: Tensor
    weights: Tensor | None
    faults: dict[str, Tensor]


def read_labels(caller: str, labels: Any, scores: Tensor, weights: Any) -> Labels:
    """Return labels for ``scores``, ``[..., classes]``.

    ``labels``: integers ``[...]``, or probabilities ``[..., classes]``, of which the greatest
    counts.
    """
    classes = scores.shape[-1]
    true = as_tensor(labels, what=f"{caller}: labels")
    if true.shape == scores.shape and true.dtype in dt.FLOATING:
        true = tp.argmax(true, axis=-1)
    if true.shape != scores.shape[:-1]:
        raise ShapeError(
            f"{caller}: predictions {scores.type} have the classes on their last axis, but labels "
            f"are {true.type}"
        )
    return check_labels(caller, true, classes, weights)


def check_labels(caller: str, true: Tensor, classes: int, weights: Any) -> Labels:
    """Return integers of any shape as labels of ``classes``."""
    if true.dtype not in dt.INTEGER and true.dtype is not dt.bool_:
        raise DTypeError(f"{caller}: labels must be integers, got {true.type}")
    spread = spread_weights(caller, weights, true)
    flat = tp.reshape(true, (-1,))
    if flat.dtype is dt.bool_:
        flat = tp.astype(flat, dt.int32)
    bad = tp.logical_or(tp.less(flat, 0), tp.greater_equal(flat, classes))
    within = tp.astype(tp.where(bad, tp.zeros_like(flat), flat), dt.int32)
    if spread is not None:
        spread = tp.reshape(spread, (-1,))
        bad = tp.logical_and(bad, tp.not_equal(spread, 0))
    marks = tp.astype(bad, dt.int32)
    place = tp.argmax(marks, axis=0)
    faults = {
        "labels": tp.sum(tp.ones_like(marks)),
        "bad": tp.sum(marks),
        "place": tp.astype(place, dt.int32),
        "label": tp.take(flat, place, axis=0),
        "classes": tp.full((), classes, dtype=dt.int32),
    }
    return Labels(classes, within, spread, faults)


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
    if own.dtype is dt.bool_:
        own = tp.astype(own, dt.int32)
    return tp.broadcast_to(
        tp.reshape(own, own.shape + (1,) * (values.ndim - own.ndim)), values.shape
    )


def total(values: Tensor, weights: Tensor | None) -> Tensor:
    """Return the sum of ``values``, of which each counts ``weights`` times; of booleans, int32."""
    if values.dtype is dt.bool_:
        values = tp.astype(values, dt.int32)
    return tp.sum(values if weights is None else tp.where(weights == 0, 0, values * weights))


def total_weight(values: Tensor, weights: Tensor | None) -> Tensor:
    """Return the sum of the weights of ``values``."""
    return total(tp.ones_like(values, dtype=dt.int32), weights)


def ratio(total: Any, weight: Any) -> float:
    """Return a mean as a Python float; NaN if nothing has weight."""
    return float(total) / float(weight) if float(weight) else math.nan
