"""Metrics of classifiers that are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorplug as tp
from tensorplug.plugin import ArgumentError, ShapeError, as_tensor
from tensorplug_train.metrics.metric import (
    LabelMetric,
    Labels,
    check_labels,
    ratio,
    read_labels,
    total,
    total_weight,
)


@dataclass(frozen=True)
class Accuracy(LabelMetric):
    """The share of labels that were predicted.

    Attributes:
        top: a label counts as predicted if it is among so many classes with the largest scores.
        threshold: for two classes with one score per label, such as a logit (0.0) or a
            probability (0.5): a score above it predicts class 1. By default the last axis of
            predictions has a score for each class.

    Examples:
        >>> accuracy = tp.train.metrics.Accuracy()
        >>> scores = [[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]
        >>> accuracy.result(accuracy.of([1, 0, 0], scores))
        0.6666666666666666
        >>> binary = tp.train.metrics.Accuracy(threshold=0.0)
        >>> binary.result(binary.of([1, 0], [2.5, -0.5]))
        1.0

    """

    top: int = tp.static_field(default=1)
    threshold: float | None = tp.static_field(default=None)

    def __post_init__(self) -> None:
        if self.threshold is not None and self.top != 1:
            raise ArgumentError("Accuracy: top and threshold exclude each other")

    def of(self, labels: Any, predictions: Any, weights: Any = None) -> dict[str, Any]:
        """Return the sums of one batch; see ``Metric``."""
        if self.top == 1:
            read, guessed = read_classes("Accuracy", labels, predictions, weights, self.threshold)
            right = tp.equal(guessed, read.true)
        else:
            scores = as_tensor(predictions, what="Accuracy: predictions")
            read = read_labels("Accuracy", labels, scores, weights)
            right = tp.in_top_k(tp.reshape(scores, (-1, read.classes)), read.true, self.top)
        return {
            "right": total(right, read.weights),
            "weight": total_weight(right, read.weights),
            "faults": read.faults,
        }

    def result(self, sums: Any) -> float:
        """Return the value; NaN without any weight."""
        self.check(sums)
        return ratio(sums["right"], sums["weight"])


def read_classes(
    caller: str, labels: Any, predictions: Any, weights: Any, threshold: float | None
) -> tuple[Labels, Any]:
    """Return the labels, and the predicted classes as integers on one axis."""
    scores = as_tensor(predictions, what=f"{caller}: predictions")
    if threshold is None:
        if not scores.ndim:
            raise ShapeError(f"{caller}: predictions need an axis of classes, or threshold=")
        read = read_labels(caller, labels, scores, weights)
        guessed = tp.argmax(tp.reshape(scores, (-1, read.classes)), axis=-1)
    else:
        true = as_tensor(labels, what=f"{caller}: labels")
        if true.shape != scores.shape:
            raise ShapeError(
                f"{caller}: with threshold, labels {true.type} and predictions {scores.type} must "
                "have one shape"
            )
        read = check_labels(caller, true, 2, weights)
        guessed = tp.reshape(tp.greater(scores, threshold), (-1,))
    return read, tp.astype(guessed, "int32")
