"""Metrics beside those of scikit-learn, where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

theirs = pytest.importorskip("sklearn.metrics")
M = tp.train.metrics
RNG = np.random.default_rng(1)
COUNT = 400
TRUE, LOGITS = RNG.integers(0, 5, COUNT), RNG.normal(size=(COUNT, 6))  # no label of class 5
BINARY, SCORES = RNG.integers(0, 2, COUNT), RNG.integers(0, 30, COUNT) / 8.0
Y, P = (RNG.normal(size=(COUNT, 3)) for _ in range(2))

# Our metric, its arguments, and scikit-learn's value with weights.
PAIRS = {
    "accuracy": (
        M.Accuracy(),
        (TRUE, LOGITS),
        lambda w: theirs.accuracy_score(TRUE, LOGITS.argmax(1), sample_weight=w),
    ),
    "top 3": (
        M.Accuracy(top=3),
        (TRUE, LOGITS),
        lambda w: theirs.top_k_accuracy_score(TRUE, LOGITS, k=3, sample_weight=w, labels=range(6)),
    ),
    "confusion": (
        M.Confusion(),
        (TRUE, LOGITS),
        lambda w: theirs.confusion_matrix(TRUE, LOGITS.argmax(1), sample_weight=w),
    ),
    "roc": (
        M.AUC(),
        (BINARY, SCORES),
        lambda w: theirs.roc_auc_score(BINARY, SCORES, sample_weight=w),
    ),
    "average precision": (
        M.AUC("precision_recall"),
        (BINARY, SCORES),
        lambda w: theirs.average_precision_score(BINARY, SCORES, sample_weight=w),
    ),
    "absolute error": (
        M.MeanAbsoluteError(),
        (Y, P),
        lambda w: theirs.mean_absolute_error(Y, P, sample_weight=w),
    ),
    "squared error": (
        M.MeanSquaredError(),
        (Y, P),
        lambda w: theirs.mean_squared_error(Y, P, sample_weight=w),
    ),
    "r2": (M.R2(), (Y, P), lambda w: theirs.r2_score(Y, P, sample_weight=w)),
} | {
    f"{name} {average}": (
        ours(average),
        (TRUE, LOGITS),
        lambda w, function=name, average=average: getattr(theirs, f"{function}_score")(
            TRUE,
            LOGITS.argmax(1),
            average=None if average == "none" else average,
            sample_weight=w,
            zero_division=0,
        ),
    )
    for name, ours in {"precision": M.Precision, "recall": M.Recall, "f1": M.F1}.items()
    for average in ("macro", "micro", "weighted", "none")
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_scikit_learn(name, weighted):
    metric, (labels, predictions), expected = PAIRS[name]
    weights = RNG.integers(0, 4, COUNT) / 2.0 if weighted else None
    value = metric.result(metric.of(labels, predictions, weights))
    np.testing.assert_allclose(value, expected(weights), rtol=1e-10)
