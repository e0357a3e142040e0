"""Non-maximum suppression in float64, with one pass over the remaining boxes per selected box.

With soft suppression, scores fall as boxes are selected. Only the best candidate is updated with
the boxes selected since its last update; if its score falls, it returns to the candidates.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

__all__ = ["padded", "plain", "scored"]


def plain(
    boxes: Array,
    scores: Array,
    *,
    max_output_size: int,
    iou_threshold: float,
    score_threshold: float,
) -> Array:
    """Return the indices of the selected boxes, best score first."""
    return _select(boxes, scores, max_output_size, iou_threshold, score_threshold)


def padded(
    boxes: Array,
    scores: Array,
    *,
    max_output_size: int,
    iou_threshold: float,
    score_threshold: float,
    pad_to_max_output_size: bool,
) -> tuple[Array, Array]:
    """Return the indices, padded with zeros if requested, and the number of selected boxes."""
    selected = _select(boxes, scores, max_output_size, iou_threshold, score_threshold)
    count = np.array(len(selected), np.int32)
    if not pad_to_max_output_size:
        return selected, count
    filled = np.zeros(max_output_size, np.int32)
    filled[: len(selected)] = selected
    return filled, count


def scored(
    boxes: Array,
    scores: Array,
    *,
    max_output_size: int,
    iou_threshold: float,
    score_threshold: float,
    soft_nms_sigma: float,
) -> tuple[Array, Array]:
    """Return the indices and their scores, lowered by soft suppression."""
    if soft_nms_sigma == 0:
        selected = _select(boxes, scores, max_output_size, iou_threshold, score_threshold)
        return selected, scores[selected]
    return _select_softly(
        boxes, scores, max_output_size, iou_threshold, score_threshold, -0.5 / soft_nms_sigma
    )


def _select(
    boxes: Array, scores: Array, most: int, iou_threshold: float, score_threshold: float
) -> Array:
    wide = scores.astype(np.float64)
    candidates = np.flatnonzero(wide > score_threshold)
    rest = candidates[np.argsort(-wide[candidates], kind="stable")]
    places = _places(boxes)[:, rest]
    selected: list[int] = []
    while len(selected) < most and len(rest):
        selected.append(int(rest[0]))
        best, rest, places = places[:, :1], rest[1:], places[:, 1:]
        apart = ~(_compute_overlap(best, places) >= iou_threshold)
        if not apart.all():
            rest, places = rest[apart], places[:, apart]
    return np.array(selected, np.int32)


def _select_softly(
    boxes: Array,
    scores: Array,
    most: int,
    iou_threshold: float,
    score_threshold: float,
    scale: float,
) -> tuple[Array, Array]:
    wide = scores.astype(np.float64)
    candidates = np.flatnonzero(wide > score_threshold)
    best = (-wide[candidates]).tolist()
    # (negated score, so that the best is first; index; number of selected boxes seen)
    waiting = [(score, index, 0) for score, index in zip(best, candidates.tolist(), strict=True)]
    heapq.heapify(waiting)
    places = _places(boxes)
    selected: list[int] = []
    values: list[float] = []
    while len(selected) < most and waiting:
        negative, index, met = heapq.heappop(waiting)
        score = -negative
        lowered = score
        if met < len(selected):
            since = selected[met:][::-1]  # the latest first: it is the most likely to overlap
            iou = _compute_overlap(places[:, index : index + 1], places[:, since])
            if (iou >= iou_threshold).any():
                continue
            weights = np.where(iou <= iou_threshold, np.exp(scale * iou * iou), 0)
            steps = np.multiply.accumulate(np.concatenate([[score], weights]))[1:]
            if (steps <= score_threshold).any():
                continue
            lowered = float(steps[-1])
        if lowered == score:
            selected.append(index)
            values.append(score)
        else:
            heapq.heappush(waiting, (-lowered, index, len(selected)))
    return np.array(selected, np.int32), np.array(values, scores.dtype)


def _places(boxes: Array) -> Array:
    """Return [5, boxes]: the smaller y and x of each box, the larger y and x, the area."""
    wide = boxes.astype(np.float64).T
    low, high = np.minimum(wide[:2], wide[2:]), np.maximum(wide[:2], wide[2:])
    sides = high - low
    return np.concatenate([low, high, sides[:1] * sides[1:]])


def _compute_overlap(one: Array, others: Array) -> Array:
    """Return the intersection over union of one box with others; 0 for boxes without area."""
    low, high = np.maximum(one[:2], others[:2]), np.minimum(one[2:4], others[2:4])
    sides = np.maximum(high - low, 0)
    shared = sides[0] * sides[1]
    real = (one[4] > 0) & (others[4] > 0)
    return np.where(real, shared / (one[4] + others[4] - shared), 0)
