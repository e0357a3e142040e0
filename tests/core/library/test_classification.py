"""Confusion matrices and hits among the best, against loops."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

RNG = np.random.default_rng(6)


def test_a_confusion_matrix():
    labels, predictions = RNG.integers(-1, 5, (2, 300))
    wanted = np.zeros((4, 4), int)
    for true, guess in zip(labels, predictions, strict=True):
        if 0 <= true < 4 and 0 <= guess < 4:
            wanted[true, guess] += 1
    for dtype in ("int32", "uint8", "float32"):
        if dtype == "uint8":  # where -1 is 255
            assert np.array(labels).astype(dtype).max() == 255
        found = tp.confusion_matrix(labels.astype(dtype), predictions.astype(dtype), 4)
        assert (found.dtype, found.shape) == (tp.int32, (4, 4))
        assert found.tolist() == wanted.tolist()
    nothing = np.zeros(0, np.int32)
    assert tp.confusion_matrix(nothing, nothing, 2).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("k", [1, 2, 5])
def test_in_top_k(k):
    scores = RNG.integers(0, 4, (3, 7, 5)).astype(np.float32)  # with many ties
    targets = RNG.integers(-1, 6, (3, 7)).astype(np.int32)
    found = tp.in_top_k(scores, targets, k)
    assert (found.dtype, found.shape) == (tp.bool, (3, 7))
    for at in np.ndindex(3, 7):
        best = sorted(range(5), key=lambda index, at=at: -scores[at][index])[:k]
        assert found.numpy()[at] == (targets[at] in best)


I, S = np.zeros(3, np.int32), np.zeros((3, 4), np.float32)  # noqa: E741  # indices, scores
BAD = [
    (lambda: tp.confusion_matrix(I, I[:2], 2), ShapeError, "labels are int32.3., but predictio"),
    (lambda: tp.confusion_matrix(S, S, 2), ShapeError, "labels must have rank 1, got float32"),
    (lambda: tp.confusion_matrix(I, I, 0), ArgumentError, "num_classes must be positive, got 0"),
    (lambda: tp.in_top_k(S, I[:2]), ShapeError, "predictions must be .* got float32.3,4. and i"),
    (lambda: tp.in_top_k(S, S[:, 0]), DTypeError, "targets are float32.3., but must be integers"),
    (lambda: tp.in_top_k(S, I, 0), ArgumentError, "k must be at least 1, got 0"),
    (
        lambda: tp.in_top_k(S, I, 5),
        ShapeError,
        "k must be at most 4, the length of the last axis, got 5",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()
