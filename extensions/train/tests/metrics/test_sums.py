"""Metrics of any split of the data are the metrics of the whole, with weights and without."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorplug as tp

from . import formulas

M = tp.train.metrics
RNG = np.random.default_rng(0)
COUNT, CLASSES = 23, 4
LABELS = RNG.integers(0, CLASSES, COUNT)
SCORES = RNG.normal(size=(COUNT, CLASSES)).astype(np.float32)
BINARY = RNG.integers(0, 2, COUNT)
LOGITS = RNG.integers(-4, 5, COUNT).astype(np.float32)  # with ties
TRUE = RNG.normal(loc=100, size=(COUNT, 2)).astype(np.float32)
GUESSED = (TRUE + RNG.normal(size=(COUNT, 2))).astype(np.float32)
WEIGHTS = RNG.integers(0, 4, COUNT) / np.float32(2)

MULTI, TWO, REAL = (LABELS, SCORES), (BINARY, LOGITS), (TRUE, GUESSED)

# Each with its labels and predictions, and an independent formula of these and weights.
METRICS = (
    {
        "accuracy": (M.Accuracy(), MULTI, formulas.accuracy),
        "top-2 accuracy": (M.Accuracy(top=2), MULTI, formulas.top_2),
        "binary accuracy": (
            M.Accuracy(threshold=1.0),
            TWO,
            formulas.above(1.0, formulas.accuracy),
        ),
        "confusion": (M.Confusion(), MULTI, formulas.confusion),
        "binary confusion": (
            M.Confusion(threshold=0.0),
            TWO,
            formulas.above(0, formulas.confusion),
        ),
        "roc": (M.AUC(), TWO, formulas.roc),
        "precision-recall": (M.AUC("precision_recall"), TWO, formulas.average_precision),
        "mean": (M.Mean(lambda y, p: tp.square(p - y)), REAL, formulas.mean(np.square)),
        "mean of predictions": (
            M.Mean(),
            (LABELS, GUESSED),
            lambda _, p, w: formulas.mean_of(p, w),
        ),
        "absolute error": (M.MeanAbsoluteError(), REAL, formulas.mean(np.abs)),
        "squared error": (M.MeanSquaredError(), REAL, formulas.mean(np.square)),
        "r2": (M.R2(), REAL, formulas.r2),
        "perplexity": (M.Perplexity(), MULTI, formulas.perplexity),
    }
    | {
        f"{name} {average}": (metric(average), MULTI, formulas.per_class(name, average))
        for name, metric in {"precision": M.Precision, "recall": M.Recall, "f1": M.F1}.items()
        for average in ("macro", "micro", "weighted", "none")
    }
    | {
        f"{name} binary": (
            metric(threshold=0.0),
            TWO,
            formulas.above(0, formulas.per_class(name, "binary")),
        )
        for name, metric in {"precision": M.Precision, "recall": M.Recall, "f1": M.F1}.items()
    }
)


def value_of(metric, labels, predictions, weights, cuts=()):
    """Return the value of a metric, summed over the parts between cuts."""
    edges = [0, *sorted(cuts), len(labels)]
    sums = [
        metric.of(labels[a:b], predictions[a:b], None if weights is None else weights[a:b])
        for a, b in pairwise(edges)
    ]
    return metric.result(reduce(metric.merge, sums))


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=8, deadline=None)
@given(cuts=st.sets(st.integers(1, COUNT - 1)), weighted=st.booleans())
def test_any_split_gives_the_value_of_the_whole(name, cuts, weighted):
    metric, (labels, predictions), formula = METRICS[name]
    value = value_of(metric, labels, predictions, WEIGHTS if weighted else None, cuts)
    expected = formula(labels, predictions, WEIGHTS if weighted else np.ones(COUNT))
    assert np.shape(value) == np.shape(expected)
    np.testing.assert_allclose(value, expected, rtol=1e-5, atol=5e-6)


@pytest.mark.parametrize("name", METRICS)
def test_sums_are_the_same_in_compiled_functions(name):
    metric, (labels, predictions), _ = METRICS[name]

    def both(labels, predictions, weights):
        first, second = (
            metric.of(labels[part], predictions[part], weights[part])
            for part in (slice(10), slice(10, COUNT))
        )
        return (first, second) if metric.collects else metric.merge(first, second)

    arguments = [tp.asarray(x) for x in (labels, predictions, WEIGHTS)]
    sums = tp.compile(both)(*arguments)
    value = metric.result(metric.merge(*sums) if metric.collects else sums)
    np.testing.assert_allclose(
        value, value_of(metric, labels, predictions, WEIGHTS, {10}), rtol=1e-6
    )


@pytest.mark.parametrize("name", METRICS)
def test_without_weight_there_is_no_value(name):
    metric, (labels, predictions), _ = METRICS[name]
    value = value_of(metric, labels, predictions, np.zeros(COUNT, np.float32))
    if "confusion" in name:
        assert not value.any()
    else:
        assert np.isnan(value).all()


def test_counts_are_integers_that_float32_cannot_hold():
    metric = M.Accuracy()
    sums = metric.of(LABELS, SCORES)
    assert {str(sums[name].dtype) for name in ("total", "weight")} == {"int32"}
    for _ in range(21):
        sums = metric.merge(sums, sums)
    assert int(sums["weight"]) == COUNT * 2**21 > 2**24
