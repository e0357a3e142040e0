"""Labels outside of the classes, shapes that do not fit, and what has no value."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

M = tp.train.metrics
SCORES = np.eye(3, dtype=np.float32)[[1, 0, 2, 2]]
BY_LABEL = [M.Accuracy(), M.Accuracy(top=2), M.Precision("macro"), M.Confusion(), M.Perplexity()]


@pytest.mark.parametrize("metric", BY_LABEL, ids=lambda metric: type(metric).__name__)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("bad", [3, -1])
def test_a_label_outside_of_the_classes_is_named(metric, compiled, bad):
    of = tp.compile(metric.of) if compiled else metric.of
    good = of(tp.asarray([0, 1, 2, 0]), tp.asarray(SCORES))
    worse = of(tp.asarray([0, 2, bad, bad]), tp.asarray(SCORES))
    name = type(metric).__name__
    message = rf"{name}: label {bad} at place %d of all labels .* 0 to 2; there are %d such labels"
    for parts, place, count in (
        ((worse,), 2, 2),
        ((good, worse), 6, 2),
        ((worse, good), 2, 2),
        ((good, worse, worse), 6, 4),
    ):
        sums = parts[0]
        for part in parts[1:]:
            sums = metric.merge(sums, part)
        with pytest.raises(tp.errors.OutOfRangeError, match=message % (place, count)):
            metric.result(sums)


@pytest.mark.parametrize("metric", BY_LABEL, ids=lambda metric: type(metric).__name__)
def test_labels_without_weight_may_be_anything(metric):
    padded = metric.of([0, 1, -1, 99], SCORES, [1.0, 1.0, 0.0, 0.0])
    alone = metric.of([0, 1], SCORES[:2], [1.0, 1.0])
    np.testing.assert_array_equal(metric.result(padded), metric.result(alone))


def test_auc_names_a_label_that_is_neither_0_nor_1():
    auc = M.AUC()
    sums = auc.merge(auc.of([0, 1], [0.1, 0.2]), auc.of([1, 2, -1], [0.1, 0.2, 0.3], [1, 1, 0]))
    with pytest.raises(tp.errors.OutOfRangeError, match=r"label 2 at place 3 .* there are 1 such"):
        auc.result(sums)


# Calls, and what the error must say.
REFUSED = {
    "rank": (lambda: M.Accuracy().of([[0, 1]], SCORES), r"labels are int32\[1,2\]"),
    "floats": (lambda: M.Accuracy().of([0.0, 1.0, 2.0, 0.5], SCORES), "labels must be integers"),
    "no classes": (lambda: M.Accuracy().of(1, 0.5), "need an axis of classes, or threshold="),
    "threshold": (
        lambda: M.Accuracy(threshold=0.0).of([0, 1], [[0.1], [0.2]]),
        r"labels are int32\[2\], but predictions are float32\[2,1\], with threshold, one for each",
    ),
    "fraction": (
        lambda: M.Accuracy(threshold=0.0).of([0.5], [0.5]),
        "labels must be integers, got float32",
    ),
    "top and threshold": (lambda: M.Accuracy(2, 0.0), "top and threshold exclude each other"),
    "binary": (
        lambda: M.Precision().of([0, 1, 2, 0], SCORES),
        "average='binary' is for two classes, but predictions have 3; choose 'macro'",
    ),
    "average": (lambda: M.F1("mean"), "F1: average must be one of 'binary', .* got 'mean'"),
    "curve": (lambda: M.AUC("pr"), "AUC: curve must be one of 'roc', 'precision_recall'"),
    "broadcast": (
        lambda: M.MeanSquaredError().of([1.0, 2.0], [[1.0], [2.0]]),
        r"labels float32\[2\] and predictions float32\[2,1\] must have one shape",
    ),
    "weights": (
        lambda: M.MeanAbsoluteError().of([1.0, 2.0], [1.0, 2.0], [1.0]),
        r"weights float32\[1\] must have the shape of the labels, \(2,\)",
    ),
    "scores": (lambda: M.AUC().of([0, 1], [[0.1] * 3] * 2), "or an axis for two classes after it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name):
    call, message = REFUSED[name]
    with pytest.raises((tp.errors.ArgumentError, tp.errors.DTypeError), match=message):
        call()


def test_labels_may_be_probabilities_and_scores_those_of_two_classes():
    smooth = np.full((4, 3), 0.05, np.float32) + np.float32(0.85) * SCORES
    assert M.Accuracy().result(M.Accuracy().of(smooth, SCORES)) == 1.0
    labels, scores = [0, 1, 1, 0], np.array([[2, 1], [0, 1], [3, 1], [4, 1]], np.float32)
    one, two = (M.AUC().result(M.AUC().of(labels, s)) for s in (scores @ [-1, 1], scores))
    assert one == two == 0.75


def test_weights_of_examples_spread_over_their_labels():
    labels, scores = [[0, 1], [2, 2]], SCORES.reshape(2, 2, 3)
    spread = M.Accuracy().of(labels, scores, [[3.0, 3.0], [1.0, 1.0]])
    assert M.Accuracy().result(M.Accuracy().of(labels, scores, [3.0, 1.0])) == 0.25
    assert M.Accuracy().result(spread) == 0.25


@pytest.mark.parametrize(("guessed", "value"), [([2.0, 2.0], 1.0), ([2.0, 3.0], 0.0)])
def test_r2_of_constant_labels(guessed, value):
    assert M.R2().result(M.R2().of([2.0, 2.0], guessed)) == value


def test_values_beyond_floats():
    assert M.Perplexity().result(M.Perplexity().of([0], [[-1000.0, 0.0]])) == np.inf
    assert np.isnan(M.AUC().result(M.AUC().of([0, 1], [np.nan, 1.0])))
    infinite = M.AUC().of([0, 1, 1], [-np.inf, -np.inf, np.inf])
    assert M.AUC().result(infinite) == 0.75


def test_narrow_floats_are_summed_in_wide_ones():
    ones = np.ones(3000, np.float16)
    assert M.MeanSquaredError().result(M.MeanSquaredError().of(ones * 0, ones)) == 1.0
