"""Reference for non-maximum suppression: checks every candidate again after each selected box."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def plain(boxes: Array, scores: Array, **options: Any) -> Array:
    """The indices alone."""
    return np.array([index for index, _ in _taken(boxes, scores, **options)], np.int32)


def padded(
    boxes: Array, scores: Array, *, pad_to_max_output_size: bool = False, **options: Any
) -> tuple[Array, Array]:
    """The indices, zeros up to the size, and their number."""
    kept = plain(boxes, scores, **options).tolist()
    size = options["max_output_size"] if pad_to_max_output_size else 0
    filled = kept + [0] * (size - len(kept))
    return np.array(filled, np.int32), np.array(len(kept), np.int32)


def scored(boxes: Array, scores: Array, **options: Any) -> tuple[Array, Array]:
    """The indices and the remaining scores."""
    kept = _taken(boxes, scores, **options)
    indices = np.array([index for index, _ in kept], np.int32)
    return indices, np.array([score for _, score in kept], np.longdouble)


def _taken(
    boxes: Array,
    scores: Array,
    *,
    max_output_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = -math.inf,
    soft_nms_sigma: float = 0.0,
) -> list[tuple[int, float]]:
    left = {at: score for at, score in enumerate(scores.tolist()) if score > score_threshold}
    kept: list[tuple[int, float]] = []
    while left and len(kept) < max_output_size:
        best = max(left, key=lambda at: (left[at], -at))
        kept.append((best, left.pop(best)))
        for at in list(left):
            overlap = _overlap(boxes[best].tolist(), boxes[at].tolist())
            if overlap >= iou_threshold:
                del left[at]
            elif soft_nms_sigma:
                left[at] = left[at] * np.exp(-(overlap**2) / (2 * np.longdouble(soft_nms_sigma)))
                if left[at] <= score_threshold:
                    del left[at]
    return kept


def _overlap(a: list[float], b: list[float]) -> float:
    (top, bottom), (left, right) = sorted((a[0], a[2])), sorted((a[1], a[3]))
    (upper, lower), (west, east) = sorted((b[0], b[2])), sorted((b[1], b[3]))
    one, other = (bottom - top) * (right - left), (lower - upper) * (east - west)
    if one <= 0 or other <= 0:
        return 0.0
    shared = max(min(bottom, lower) - max(top, upper), 0) * max(
        min(right, east) - max(left, west), 0
    )
    return shared / (one + other - shared)
