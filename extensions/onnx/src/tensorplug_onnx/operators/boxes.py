"""Operators on boxes in images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from tensorplug_onnx.values import Host


@rule("NonMaxSuppression", host=None)
def non_max_suppression(
    boxes: Host,
    scores: Host,
    most: Host | None = None,
    iou_threshold: Host | None = None,
    score_threshold: Host | None = None,
    *,
    center_point_box: int = 0,
) -> Host:
    """How many boxes are left depends on the values: it runs on the host."""
    count = 0 if most is None else int(most.reshape(()))
    overlap = np.float32(0) if iou_threshold is None else iou_threshold.reshape(())
    if not 0 <= overlap <= 1:
        raise ValueError(f"iou_threshold is {overlap}, must be from 0 to 1")
    least = None if score_threshold is None else score_threshold.reshape(())
    found = [
        (batch, kind, box)
        for batch, corners in enumerate(_corners(boxes, center=bool(center_point_box)))
        for kind, of_kind in enumerate(scores[batch])
        for box in _kept(corners, of_kind, count, overlap, least)
    ]
    return np.array(found, np.int64).reshape(-1, 3)


def _corners(boxes: Host, *, center: bool) -> Host:
    """Return the lower and the upper corner of boxes, of shape [..., 2, 2]."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if center:
        first, second = first - second / 2, first + second / 2
    return np.stack([np.minimum(first, second), np.maximum(first, second)], axis=-2)


def _kept(corners: Host, scores: Host, count: int, overlap: Any, least: Any) -> list[int]:
    """Return boxes by their score, without those that overlap a better one too much."""
    left = np.argsort(-scores, stable=True)
    if least is not None:
        left = left[scores[left] > least]
    kept: list[int] = []
    while left.size and len(kept) < count:
        best, left = left[0], left[1:]
        kept.append(int(best))
        left = left[~(_overlaps(corners[best], corners[left]) > overlap)]
    return kept


def _overlaps(box: Host, others: Host) -> Host:
    """Return the intersection over the union with each of the others; 0 without an area."""
    shared = np.minimum(box[1], others[:, 1]) - np.maximum(box[0], others[:, 0])
    common = np.prod(np.maximum(shared, 0), axis=-1)
    areas = np.prod(others[:, 1] - others[:, 0], axis=-1), np.prod(box[1] - box[0])
    union = areas[0] + areas[1] - common
    return np.where(common > 0, common / np.where(union > 0, union, 1), 0)
