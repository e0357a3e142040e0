"""Non-maximum suppression: of boxes that overlap, the one with the best score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import UNKNOWN, Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor

__all__ = [
    "non_max_suppression",
    "non_max_suppression_padded",
    "non_max_suppression_with_score",
]


def _part(value: Any, _known: InputTypes) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ArgumentError(f"must be a number from 0 to 1, got {value!r}")
    return float(value)


def _number(value: Any, _known: InputTypes) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124  # NaN
        raise ArgumentError(f"must be a number, got {value!r}")
    return float(value)


def _check(boxes: TensorType, scores: TensorType) -> None:
    if boxes.rank != 2 or boxes.shape[1] != 4:
        raise ShapeError("boxes must have shape [boxes, 4]: y1, x1, y2, x2 of each")
    if scores.shape != boxes.shape[:1]:
        raise ShapeError(f"scores must have shape {list(boxes.shape[:1])}")


def _indices(boxes: TensorType, scores: TensorType) -> TensorType:
    _check(boxes, scores)
    return TensorType(dt.int32, (UNKNOWN,))


def _padded(
    boxes: TensorType,
    scores: TensorType,
    *,
    max_output_size: int,
    pad_to_max_output_size: bool,
) -> tuple[TensorType, TensorType]:
    _check(boxes, scores)
    count = max_output_size if pad_to_max_output_size else UNKNOWN
    return TensorType(dt.int32, (count,)), TensorType(dt.int32, ())


def _scored(boxes: TensorType, scores: TensorType) -> tuple[TensorType, TensorType]:
    _check(boxes, scores)
    return TensorType(dt.int32, (UNKNOWN,)), TensorType(scores.dtype, (UNKNOWN,))


_INPUTS = ("boxes", "scores")
_OPTIONS = {
    "max_output_size": attributes.integer(at_least=0),
    "iou_threshold": Attribute(_part, 0.5, "float in [0, 1]"),
    "score_threshold": Attribute(_number, float("-inf"), "float, not NaN"),
}

NON_MAX_SUPPRESSION_V3 = KernelSpec(
    "NonMaxSuppressionV3",
    _INPUTS,
    _indices,
    attributes=_OPTIONS,
    outputs=("selected_indices",),
    accepts=dt.FLOATING,
    promote=_INPUTS,
    inexact=True,
)
NON_MAX_SUPPRESSION_V4 = KernelSpec(
    "NonMaxSuppressionV4",
    _INPUTS,
    _padded,
    attributes={**_OPTIONS, "pad_to_max_output_size": attributes.flag(default=False)},
    outputs=("selected_indices", "valid_outputs"),
    accepts=dt.FLOATING,
    promote=_INPUTS,
    inexact=True,
)
NON_MAX_SUPPRESSION_V5 = KernelSpec(
    "NonMaxSuppressionV5",
    _INPUTS,
    _scored,
    attributes={**_OPTIONS, "soft_nms_sigma": Attribute(_part, 0.0, "float in [0, 1]")},
    outputs=("selected_indices", "selected_scores"),
    accepts=dt.FLOATING,
    promote=_INPUTS,
    inexact=True,
)


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
) -> Tensor:
    """Return the indices of boxes that overlap no better one, best score first.

    Boxes are taken in the order of their scores, the lower index first among equals. One is
    left out where it overlaps a box that was taken: where the area of their intersection over
    that of their union is ``iou_threshold`` or more.

    Args:
        boxes: [boxes, 4], two opposite corners of each: y1, x1, y2, x2. One without an area
            overlaps nothing.
        scores: [boxes].
        max_output_size: how many boxes are taken at most.
        iou_threshold: from 0 to 1.
        score_threshold: boxes whose score is not larger are left out.

    Returns:
        int32 indices, as many as there are. It runs on the host where a device has no kernel
        of its own. (TensorFlow's NonMaxSuppressionV3.)

    Raises:
        ShapeError: ``boxes`` is not [boxes, 4], or there is not one score for each.
        ArgumentError: a threshold or size out of range.

    """
    return dispatch(
        NON_MAX_SUPPRESSION_V3,
        boxes,
        scores,
        max_output_size=max_output_size,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
    )


def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
    pad_to_max_output_size: bool = False,  # noqa: FBT001, FBT002  # TensorFlow.js's parameters
) -> tuple[Tensor, Tensor]:
    """Return what ``non_max_suppression`` does, filled up with zeros, and how many are valid.

    Args:
        boxes: [boxes, 4], as for ``non_max_suppression``, and so the next four.
        scores: [boxes].
        max_output_size: how many boxes are taken at most.
        iou_threshold: from 0 to 1.
        score_threshold: boxes whose score is not larger are left out.
        pad_to_max_output_size: whether there shall be ``max_output_size`` indices.

    Returns:
        The indices and their number, an int32 scalar. (TensorFlow's NonMaxSuppressionV4.)

    Raises:
        ShapeError, ArgumentError: as ``non_max_suppression``.

    """
    indices, valid = dispatch_multiple(
        NON_MAX_SUPPRESSION_V4,
        boxes,
        scores,
        max_output_size=max_output_size,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
        pad_to_max_output_size=pad_to_max_output_size,
    )
    return indices, valid


def non_max_suppression_with_score(
    boxes: Any,
    scores: Any,
    max_output_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
    soft_nms_sigma: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Return the indices of boxes that overlap no better one, and their scores.

    With ``soft_nms_sigma`` above 0, each box that is taken also lowers the scores of those it
    overlaps by less than the threshold, by ``exp(-iou**2 / (2 sigma))``, and their order with
    them (Bodla et al., Soft-NMS, 2017).

    Args:
        boxes: [boxes, 4], as for ``non_max_suppression``, and so the next four.
        scores: [boxes].
        max_output_size: how many boxes are taken at most.
        iou_threshold: from 0 to 1.
        score_threshold: boxes whose score, lowered or not, is not larger are left out.
        soft_nms_sigma: from 0 to 1.

    Returns:
        int32 indices, and scores in the scores' dtype, which are differentiable in the scores.
        (TensorFlow's NonMaxSuppressionV5.)

    Raises:
        ShapeError, ArgumentError: as ``non_max_suppression``.

    """
    indices, selected = dispatch_multiple(
        NON_MAX_SUPPRESSION_V5,
        boxes,
        scores,
        max_output_size=max_output_size,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
        soft_nms_sigma=soft_nms_sigma,
    )
    return indices, selected
