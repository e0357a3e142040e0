"""Gradients of non-maximum suppression: only the scores that it returns have any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug import dtypes as dt
from tensorplug.ops import suppression as ops
from tensorplug.ops.comparison import greater, logical_and
from tensorplug.ops.creation import arange
from tensorplug.ops.elementwise import exp, maximum, minimum, where
from tensorplug.ops.indexing import gather, scatter_nd
from tensorplug.ops.movement import reshape
from tensorplug.ops.movement import slice as slice_
from tensorplug.ops.reduction import sum as sum_
from tensorplug.tables import GradientTable

if TYPE_CHECKING:
    from tensorplug.spec import TensorType
    from tensorplug.tensor import Tensor

gradients = GradientTable()
gradients.stop(ops.NON_MAX_SUPPRESSION_V3, because="gives indices")
gradients.stop(ops.NON_MAX_SUPPRESSION_V4, because="gives indices")
gradients.stop(ops.NON_MAX_SUPPRESSION_V5, "boxes")  # as in TensorFlow: they choose


@gradients.wrt(ops.NON_MAX_SUPPRESSION_V5, "scores")
def scores(
    dy_selected_scores: Tensor,
    boxes: Tensor,
    scores_type: TensorType,
    selected_indices: Tensor,
    soft_nms_sigma: float,
) -> Tensor:
    pulled = dy_selected_scores
    if soft_nms_sigma:
        pulled = pulled * _decay(gather(boxes, selected_indices), soft_nms_sigma)
    return scatter_nd(reshape(selected_indices, (-1, 1)), pulled, scores_type.shape)


def _decay(boxes: Tensor, sigma: float) -> Tensor:
    """Return by what each box's score was multiplied: those taken before it lowered it."""
    count = boxes.shape[0]
    y1, x1, y2, x2 = (slice_(boxes, (0, at), (count, 1)) for at in range(4))
    top, bottom = minimum(y1, y2), maximum(y1, y2)
    left, right = minimum(x1, x2), maximum(x1, x2)
    height = maximum(minimum(bottom, bottom.T) - maximum(top, top.T), 0)
    width = maximum(minimum(right, right.T) - maximum(left, left.T), 0)
    shared = height * width
    area = (bottom - top) * (right - left)
    union = area + area.T - shared
    order = arange(count, dtype=dt.int32)
    earlier = greater(reshape(order, (-1, 1)), order)
    counted = logical_and(earlier, greater(shared, 0))
    overlap = where(counted, shared, 0) / where(counted, union, 1)
    return exp(sum_(overlap * overlap, axis=1) * (-0.5 / sigma))
