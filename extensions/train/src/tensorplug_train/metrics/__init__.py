"""Metrics that are summed over batches, and exact for any split of the data into batches.

A metric has three pure functions: ``of(labels, predictions, weights)`` returns the sums of one
batch, a tree of tensors, also in a compiled function; ``merge(a, b)`` those of two batches;
``result(sums)`` the value, a Python float or a NumPy array.
"""

from __future__ import annotations

from tensorplug_train.metrics.averages import (
    R2,
    Mean,
    MeanAbsoluteError,
    MeanSquaredError,
    Perplexity,
)
from tensorplug_train.metrics.classification import F1, Accuracy, Confusion, Precision, Recall
from tensorplug_train.metrics.metric import Metric
from tensorplug_train.metrics.ranking import AUC

__all__ = [
    "AUC",
    "F1",
    "R2",
    "Accuracy",
    "Confusion",
    "Mean",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Metric",
    "Perplexity",
    "Precision",
    "Recall",
]
