"""Metrics of the order in which scores put examples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

import tensorplug as tp
from tensorplug.plugin import OutOfRangeError, ShapeError, arguments, as_tensor
from tensorplug.plugin import dtypes as dt
from tensorplug_train.metrics.metric import Metric, spread_weights

Curve: TypeAlias = Literal["roc", "precision_recall"]
"""What the area of ``AUC`` lies under."""


@dataclass(frozen=True)
class AUC(Metric):
    """The area under a curve over all thresholds, for two classes.

    It is exact, so it collects all scores on the host. Labels are 0 or 1. Predictions are one
    score for each label, or one for each of the two classes on a last axis, whose difference
    counts.

    Attributes:
        curve: "roc" for the area under recall over the share of false alarms: the probability
            that an example of class 1 has a higher score than one of class 0, where equal scores
            count one half. "precision_recall" for the average precision: the mean of the
            precision at each example of class 1.

    Examples:
        >>> auc = tp.train.metrics.AUC()
        >>> auc.result(auc.of([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]))
        0.75

    """

    collects: ClassVar[bool] = True
    curve: Curve = tp.static_field(default="roc")

    def __post_init__(self) -> None:
        arguments.choice(self.curve, get_args(Curve), "AUC: curve")

    def of(self, labels: Any, predictions: Any, weights: Any = None) -> dict[str, Any]:
        """Return the labels, scores and weights of one batch, each in a list."""
        true = as_tensor(labels, what="AUC: labels")
        scores = as_tensor(predictions, what="AUC: predictions")
        if scores.shape == (*true.shape, 2):
            scores = scores[..., 1] - scores[..., 0]
        if scores.shape != true.shape:
            raise ShapeError(
                f"AUC: predictions {scores.type} must have the shape of labels {true.type}, or an "
                "axis for two classes after it"
            )
        spread = spread_weights("AUC", weights, true)
        if spread is None:
            spread = tp.ones_like(true, dtype=dt.int32)
        parts = {"labels": true, "scores": scores, "weights": spread}
        return {name: [tp.reshape(part, (-1,))] for name, part in parts.items()}

    def merge(self, a: Any, b: Any) -> dict[str, Any]:
        """Return the values of two batches, on the host."""
        return {name: [np.asarray(part) for part in (*a[name], *b[name])] for name in a}

    def result(self, sums: Any) -> float:
        """Return the area; NaN if a class has no weight, or a score is NaN."""
        labels, scores, weights = (
            np.concatenate([np.asarray(part) for part in sums[name]])
            for name in ("labels", "scores", "weights")
        )
        counted = weights != 0
        bad = np.flatnonzero((labels != 0) & (labels != 1) & counted)
        if bad.size:
            raise OutOfRangeError(
                f"AUC: label {labels[bad[0]]} at place {bad[0]} of all labels is neither 0 nor 1; "
                f"there are {bad.size} such labels"
            )
        labels, scores, weights = labels[counted], scores[counted], weights[counted]
        order = np.argsort(-scores.astype(np.float64), kind="stable")
        ordered = scores[order]
        last = np.ones(ordered.size, bool)  # of equal scores
        last[:-1] = ordered[1:] != ordered[:-1]
        positive = np.cumsum((weights * labels).astype(np.float64)[order])[last]
        negative = np.cumsum((weights * (1 - labels)).astype(np.float64)[order])[last]
        if np.isnan(scores).any() or not (positive.any() and negative.any()):
            return math.nan
        if self.curve == "roc":
            area = np.trapezoid(np.append(0, positive), np.append(0, negative))
            return float(area / (positive[-1] * negative[-1]))
        gained = np.diff(positive, prepend=0.0)
        return float(np.sum(gained * positive / (positive + negative)) / positive[-1])
