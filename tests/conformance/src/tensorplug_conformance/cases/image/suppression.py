"""Cases for non-maximum suppression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle.image import suppression as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

# TensorFlow's own test: two stacks of boxes, and one far away
_BOXES = [
    [0, 0, 1, 1],
    [0, 0.1, 1, 1.1],
    [0, -0.1, 1, 0.9],
    [0, 10, 1, 11],
    [0, 10.1, 1, 11.1],
    [0, 100, 1, 101],
]
_SCORES = [0.9, 0.75, 0.6, 0.95, 0.5, 0.3]
_TURNED = [[1, 1, 0, 0], [0, 0.1, 1, 1.1], [0, 0.9, 1, -0.1], [0, 10, 1, 11]]
_FLAT = [[0, 0, 0, 5], [0, 0, 0, 5], [1, 1, 1, 1], [0, 0, 2, 2], [0, 0, 2, 2]]


def _random(corpus: Corpus, count: int) -> tuple[Array, Array]:
    """Return boxes and scores in eighths: many overlap, many scores are equal."""
    corners = np.abs(corpus.small((count, 4), 16)).astype(np.float64)
    scores = corpus.small((count,), 12).astype(np.float64)
    return corpus.of(corners / 8), corpus.of(scores / 8)


def _plain(corpus: Corpus) -> Iterator[Case]:
    boxes, scores = corpus.of(_BOXES), corpus.of(_SCORES)
    for name, options in (
        ("three", {"max_output_size": 3}),
        ("more than there are", {"max_output_size": 30}),
        ("none", {"max_output_size": 0}),
        ("one", {"max_output_size": 1}),
        ("by score", {"max_output_size": 5, "score_threshold": 0.5}),
        ("no score is enough", {"max_output_size": 5, "score_threshold": 2.0}),
        ("all overlap", {"max_output_size": 5, "iou_threshold": 0}),
        ("none overlaps", {"max_output_size": 9, "iou_threshold": 1}),
    ):
        yield Case(name, (boxes, scores), options)
    turned = corpus.of(_TURNED)
    yield Case("turned corners", (turned, scores[:4]), {"max_output_size": 4})
    yield Case("no area", (corpus.of(_FLAT), scores[:5]), {"max_output_size": 5})
    yield Case("equal scores", (boxes, corpus.of([1] * 6)), {"max_output_size": 6})
    third = corpus.of([[0, 0, 1, 2], [0, 1, 1, 3], [0, 0, 1, 1]])
    exactly = {"max_output_size": 3, "iou_threshold": 0.5}
    yield Case("at the threshold", (third, scores[:3]), exactly)
    special = corpus.of([np.nan, 0.5, np.inf, -np.inf, 0.5, 0.25])
    yield Case("special scores", (boxes, special), {"max_output_size": 6})
    yield Case("empty", (boxes[:0], scores[:0]), {"max_output_size": 6})
    half = {"max_output_size": 100, "iou_threshold": 0.3, "score_threshold": -0.5}
    yield Case("many", _random(corpus, 150), half)
    best = {"max_output_size": 4, "iou_threshold": 0.3, "score_threshold": 1.4}
    yield Case("large", _random(corpus, LARGE // 4 + 1), best)
    for layout in ("transposed", "sliced"):
        yield Case(layout, (boxes, scores), {"max_output_size": 3}, layout=layout)
    wrong: tuple[tuple[str, tuple[Array, Array], dict[str, Any], type[Exception]], ...] = (
        ("rank 1", (boxes[0], scores), {"max_output_size": 1}, ShapeError),
        ("five scores", (boxes, scores[:5]), {"max_output_size": 1}, ShapeError),
        ("negative size", (boxes, scores), {"max_output_size": -1}, ArgumentError),
        ("threshold", (boxes, scores), {"max_output_size": 1, "iou_threshold": 2}, ArgumentError),
        ("no size", (boxes, scores), {}, ArgumentError),
    )
    for name, inputs, options, error in wrong:
        yield Case(name, inputs, options, expected=error)


cases.of(specs.NON_MAX_SUPPRESSION_V3, oracle=oracle.plain)(_plain)


@cases.of(specs.NON_MAX_SUPPRESSION_V4, oracle=oracle.padded)
def non_max_suppression_v4(corpus: Corpus) -> Iterator[Case]:
    """The same boxes, and as many indices as requested."""
    yield from _plain(corpus)
    boxes, scores = corpus.of(_BOXES), corpus.of(_SCORES)
    for size in (0, 2, 5, 9):
        options = {"max_output_size": size, "pad_to_max_output_size": True}
        yield Case(f"padded to {size}", (boxes, scores), options)


@cases.of(specs.NON_MAX_SUPPRESSION_V5, oracle=oracle.scored)
def non_max_suppression_v5(corpus: Corpus) -> Iterator[Case]:
    """The same boxes, and softly suppressed ones."""
    yield from _plain(corpus)
    boxes, scores = corpus.of(_BOXES), corpus.of(_SCORES)
    for name, options in (
        ("soft", {"iou_threshold": 1.0, "soft_nms_sigma": 0.5}),
        ("softer", {"iou_threshold": 1.0, "soft_nms_sigma": 1.0, "score_threshold": 0.3}),
        ("soft and hard", {"iou_threshold": 0.6, "soft_nms_sigma": 0.1}),
        ("nearly hard", {"iou_threshold": 1.0, "soft_nms_sigma": 0.1, "score_threshold": 0.0}),
    ):
        yield Case(name, (boxes, scores), {"max_output_size": 6, **options})
    corners, _ = _random(corpus, 60)
    distinct = corpus.of(np.arange(1, 61) * 37 % 61 / 64)
    soft = {"max_output_size": 50, "iou_threshold": 0.9, "soft_nms_sigma": 0.3}
    yield Case("many, soft", (corners, distinct), {**soft, "score_threshold": 0.01})


# Boxes whose sides all differ: the second and the fourth are turned, the last one is alone.
_APART = [
    [0, 0, 1, 1],
    [0.9, 1.15, 0.05, 0.1],
    [0.02, -0.11, 1.1, 0.93],
    [1.2, 0.3, 0.2, 0.7],
    [0.4, 5, 1.3, 6],
]


@cases.gradients(specs.NON_MAX_SUPPRESSION_V5, "boxes", "scores")
def non_max_suppression_v5_points(corpus: Corpus) -> Iterator[Case]:
    """The selection of boxes is a step function; the scores of soft suppression are smooth."""
    boxes, scores = corpus.of(_APART), corpus.of([0.9, 0.7, 0.85, 0.5, 0.3])
    yield Case("hard", (boxes, scores), {"max_output_size": 2})
    soft = {"iou_threshold": 1.0, "soft_nms_sigma": 0.5}
    yield Case("soft", (boxes, scores), {"max_output_size": 5, **soft})
    yield Case("some", (boxes, scores), {"max_output_size": 3, **soft, "score_threshold": 0.2})
    yield Case("one box", (boxes[:1], scores[:1]), {"max_output_size": 5, **soft})
    yield Case("no boxes", (boxes[:0], scores[:0]), {"max_output_size": 5, **soft})
