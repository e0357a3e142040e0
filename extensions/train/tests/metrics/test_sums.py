"""Metrics of any split of the data are the metrics of the whole."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorplug as tp

M = tp.train.metrics
RNG = np.random.default_rng(0)
COUNT = 23
SCORES = RNG.normal(size=(COUNT, 4)).astype(np.float32)
CLASSES = RNG.integers(0, 4, COUNT)
TRUE = RNG.normal(size=COUNT).astype(np.float32)
GUESSED = (TRUE + RNG.normal(size=COUNT)).astype(np.float32)
WEIGHTS = RNG.integers(0, 4, COUNT) / np.float32(2)


def weighted_mean(values, weights):
    return np.average(values.astype(np.float64), weights=weights)


# Each with what labels and predictions are, and the value by an independent formula.
METRICS = {
    "accuracy": (
        M.Accuracy(),
        CLASSES,
        SCORES,
        lambda w: weighted_mean(SCORES.argmax(1) == CLASSES, w),
    ),
    "mean absolute error": (
        M.MeanAbsoluteError(),
        TRUE,
        GUESSED,
        lambda w: weighted_mean(abs(GUESSED - TRUE), w),
    ),
}


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=20, deadline=None)
@given(cuts=st.sets(st.integers(1, COUNT - 1)), weighted=st.booleans())
def test_any_split_gives_the_value_of_the_whole(name, cuts, weighted):
    metric, labels, predictions, expected = METRICS[name]
    edges = [0, *sorted(cuts), COUNT]
    sums = [
        metric.of(labels[a:b], predictions[a:b], WEIGHTS[a:b] if weighted else None)
        for a, b in pairwise(edges)
    ]
    value = metric.result(reduce(metric.merge, sums))
    np.testing.assert_allclose(value, expected(WEIGHTS if weighted else np.ones(COUNT)), rtol=1e-5)
