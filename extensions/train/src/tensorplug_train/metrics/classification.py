"""Metrics of classifiers that are counted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

import tensorplug as tp
from tensorplug.plugin import ArgumentError, arguments
from tensorplug_train.metrics.metric import Average, Metric, read_labels

Averaging: TypeAlias = Literal["binary", "macro", "micro", "weighted", "none"]
"""How the values of classes are averaged; see ``Precision``."""


@dataclass(frozen=True)
class Accuracy(Average):
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

    def terms(self, labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any, Any]:
        """Return whether each label was predicted; see ``Average``."""
        read = read_labels("Accuracy", labels, predictions, weights, self.threshold)
        if self.top == 1:
            right = tp.equal(read.guessed, read.true)
        else:
            right = tp.in_top_k(read.scores, read.true, self.top)
        return right, read.weights, read.faults


@dataclass(frozen=True)
class Confusion(Metric):
    """The confusion matrix: at row i and column j, how many labels i were predicted as j.

    The result is a NumPy array ``[classes, classes]``, of float64 with weights.

    Attributes:
        threshold: see ``Accuracy``.

    Examples:
        >>> confusion = tp.train.metrics.Confusion(threshold=0.5)
        >>> confusion.result(confusion.of([1, 0, 1], [0.9, 0.8, 0.7]))
        array([[0, 1],
               [0, 2]])

    """

    threshold: float | None = tp.static_field(default=None)

    def of(self, labels: Any, predictions: Any, weights: Any = None) -> dict[str, Any]:
        """Return the matrix of one batch; see ``Metric``."""
        read = read_labels("Confusion", labels, predictions, weights, self.threshold)
        cells = read.true * read.classes + read.guessed
        matrix = tp.bincount(cells, read.weights, size=read.classes**2)
        shape = (read.classes, read.classes)
        return {"matrix": tp.reshape(matrix, shape), "faults": read.faults}

    def result(self, sums: Any) -> np.ndarray[Any, Any]:
        """Return the matrix."""
        self.check(sums)
        matrix = np.asarray(sums["matrix"])
        return matrix.astype(np.int64 if matrix.dtype.kind == "i" else np.float64)


@dataclass(frozen=True)
class _PerClass(Metric):
    """A share that is counted for each class, and averaged.

    ``among``: how often what is predicted as a class, and the labels of the class, are in the
    whole of which the right ones are a share.
    """

    among: ClassVar[tuple[int, int]]
    average: Averaging = tp.static_field(default="binary")
    threshold: float | None = tp.static_field(default=None)

    def __post_init__(self) -> None:
        arguments.choice(self.average, get_args(Averaging), f"{type(self).__name__}: average")

    def of(self, labels: Any, predictions: Any, weights: Any = None) -> dict[str, Any]:
        """Return the counts of each class in one batch; see ``Metric``."""
        caller = type(self).__name__
        read = read_labels(caller, labels, predictions, weights, self.threshold)
        guessed = read.guessed
        if self.average == "binary" and read.classes != 2:
            raise ArgumentError(
                f"{caller}: average='binary' is for two classes, but predictions have "
                f"{read.classes}; choose 'macro', 'micro', 'weighted' or 'none'"
            )
        factors = tp.ones_like(read.true) if read.weights is None else read.weights
        right = tp.where(tp.equal(guessed, read.true), factors, tp.zeros_like(factors))
        return {
            "right": tp.bincount(read.true, right, size=read.classes),
            "predicted": tp.bincount(guessed, factors, size=read.classes),
            "actual": tp.bincount(read.true, factors, size=read.classes),
            "faults": read.faults,
        }

    def result(self, sums: Any) -> Any:
        """Return the average, or with "none" an array ``[classes]``; NaN without any weight."""
        self.check(sums)
        counts = [np.asarray(sums[name], np.float64) for name in ("right", "predicted", "actual")]
        if self.average == "micro":
            counts = [np.sum(count, keepdims=True) for count in counts]
        right, predicted, actual = counts
        whole = self.among[0] * predicted + self.among[1] * actual
        values = sum(self.among) * right / np.where(whole == 0, 1.0, whole)
        if not actual.sum():
            values[:] = np.nan
        if self.average == "none":
            return values
        if self.average in {"binary", "micro"}:
            return float(values[-1])
        # Classes that neither occur nor are predicted have no value.
        shares = actual if self.average == "weighted" else predicted + actual > 0
        return float(np.average(values, weights=shares)) if actual.sum() else math.nan


@dataclass(frozen=True)
class Precision(_PerClass):
    """The share of the labels predicted as a class that are of this class.

    Where a class is not predicted, it is 0.

    Attributes:
        average: over the classes, as in scikit-learn: "binary" is the value of class 1 of two;
            "macro" the mean over the classes that occur or are predicted, "weighted" that weighted
            by their labels, "micro" the value of the sums over the classes; "none" an array with
            the values of all classes.
        threshold: see ``Accuracy``.

    Examples:
        >>> precision = tp.train.metrics.Precision(threshold=0.5)
        >>> precision.result(precision.of([1, 0, 1, 1], [0.9, 0.8, 0.7, 0.1]))
        0.6666666666666666

    """

    among: ClassVar[tuple[int, int]] = (1, 0)


@dataclass(frozen=True)
class Recall(_PerClass):
    """The share of the labels of a class that are predicted as this class.

    Where a class has no labels, it is 0.

    Attributes:
        average: see ``Precision``.
        threshold: see ``Accuracy``.

    Examples:
        >>> recall = tp.train.metrics.Recall("macro")
        >>> recall.result(recall.of([1, 0, 1, 1], np.eye(2)[[1, 0, 1, 0]]))
        0.8333333333333333

    """

    among: ClassVar[tuple[int, int]] = (0, 1)


@dataclass(frozen=True)
class F1(_PerClass):
    """The harmonic mean of precision and recall.

    Where a class neither has labels nor is predicted, it is 0.

    Attributes:
        average: see ``Precision``.
        threshold: see ``Accuracy``.

    Examples:
        >>> f1 = tp.train.metrics.F1("none", threshold=0.5)
        >>> f1.result(f1.of([1, 0, 1, 1], [0.9, 0.2, 0.7, 0.1]))
        array([0.66666667, 0.8       ])

    """

    among: ClassVar[tuple[int, int]] = (1, 1)
