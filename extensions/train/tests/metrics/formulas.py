"""What metrics are, by formulas in float64 on all examples at once."""

from __future__ import annotations

import numpy as np


def mean_of(values, weights):
    spread = np.broadcast_to(weights.reshape(-1, *[1] * (values.ndim - 1)), values.shape)
    return float((values.astype(np.float64) * spread).sum() / spread.sum())


def mean(function):
    return lambda y, p, w: mean_of(function(p.astype(np.float64) - y), w)


def above(threshold, formula):
    """Return a formula of one score per label, by that of two."""
    return lambda y, p, w: formula(y, np.stack([p <= threshold, p > threshold], axis=1), w)


def accuracy(y, p, w):
    return mean_of(p.argmax(1) == y, w)


def top_2(y, p, w):
    better = (p > p[np.arange(len(y)), y][:, None]).sum(1)
    return mean_of(better < 2, w)


def confusion(y, p, w):
    guessed, classes = p.argmax(1), range(p.shape[1])
    return np.array([[w[(y == i) & (guessed == j)].sum() for j in classes] for i in classes])


def per_class(name, average):
    """Return the formula of precision, recall or F1, from the confusion matrix."""

    def of_counts(right, wrong, missed):
        precision = right / (right + wrong) if right + wrong else 0.0
        recall = right / (right + missed) if right + missed else 0.0
        both = precision + recall
        f1 = 2 * precision * recall / both if both else 0.0
        return {"precision": precision, "recall": recall, "f1": f1}[name]

    def formula(y, p, w):
        matrix = confusion(y, p, w).astype(np.float64)
        right = np.diag(matrix)
        wrong, missed = matrix.sum(0) - right, matrix.sum(1) - right
        if average == "micro":
            return of_counts(right.sum(), wrong.sum(), missed.sum())
        values = np.array(list(map(of_counts, right, wrong, missed)))
        if average == "none":
            return values
        if average == "binary":
            return values[1]
        counts = matrix.sum(1) if average == "weighted" else right + wrong + missed > 0
        return (values * counts).sum() / counts.sum()

    return formula


def roc(y, p, w):
    """Return how often a positive example scores higher than a negative one, by all pairs."""
    pairs = np.outer(w[y == 1], w[y == 0])
    apart = np.subtract.outer(p[y == 1], p[y == 0])
    return (pairs * ((apart > 0) + (apart == 0) / 2)).sum() / pairs.sum()


def average_precision(y, p, w):
    """Return the mean, over the positive examples, of the precision at their scores."""
    found = [(w * y)[p >= score].sum() / w[p >= score].sum() for score in p[(y == 1) & (w > 0)]]
    return np.average(found, weights=w[(y == 1) & (w > 0)])


def r2(y, p, w):
    y, p, w = (x.astype(np.float64) for x in (y, p, w))
    center = np.average(y, axis=0, weights=w)
    values = 1 - w @ (y - p) ** 2 / (w @ (y - center) ** 2)
    return values.mean()


def perplexity(y, p, w):
    p = p.astype(np.float64)
    losses = np.log(np.exp(p).sum(1)) - p[np.arange(len(y)), y]
    return np.exp(mean_of(losses, w))
