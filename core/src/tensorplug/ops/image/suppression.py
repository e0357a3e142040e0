"""Non-maximum suppression: the best boxes among overlapping ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted, real
from tensorplug.contract.spec import UNKNOWN, Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = [
    "non_max_suppression",
    "non_max_suppression_padded",
    "non_max_suppression_with_score",
]


def _read_part(value: Any, _known: InputTypes) -> float:
    value = dt.as_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ArgumentError(f"must be a number from 0 to 1, got {quoted(value)}")
    return float(value)


def _read_number(value: Any, _known: InputTypes) -> float:
    value = dt.as_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124  # NaN
        raise ArgumentError(f"must be a number, got {quoted(value)}")
    return real(value, "the number")


def _check(boxes: TensorType, scores: TensorType) -> None:
    if boxes.rank != 2 or boxes.shape[1] != 4:
        raise ShapeError("boxes must have shape [boxes, 4], with y1, x1, y2, x2 of each box")
    if scores.shape != boxes.shape[:1]:
        raise ShapeError(f"scores must have shape {list(boxes.shape[:1])}")


def _infer_non_max_suppression_v3(boxes: TensorType, scores: TensorType) -> TensorType:
    _check(boxes, scores)
    return TensorType(dt.int32, (UNKNOWN,))


def _infer_non_max_suppression_v4(
    boxes: TensorType,
    scores: TensorType,
    *,
    max_output_size: int,
    pad_to_max_output_size: bool,
) -> tuple[TensorType, TensorType]:
    _check(boxes, scores)
    count = max_output_size if pad_to_max_output_size else UNKNOWN
    return TensorType(dt.int32, (count,)), TensorType(dt.int32, ())


def _infer_non_max_suppression_v5(
    boxes: TensorType, scores: TensorType
) -> tuple[TensorType, TensorType]:
    _check(boxes, scores)
    return TensorType(dt.int32, (UNKNOWN,)), TensorType(scores.dtype, (UNKNOWN,))


_INPUTS = ("boxes", "scores")
_OPTIONS = {
    "max_output_size": attributes.integer(at_least=0),
    "iou_threshold": Attribute(_read_part, 0.5, "float in [0, 1]"),
    "score_threshold": Attribute(_read_number, float("-inf"), "float, not NaN"),
}

NON_MAX_SUPPRESSION_V3 = KernelSpec(
    "NonMaxSuppressionV3",
    _INPUTS,
    _infer_non_max_suppression_v3,
    attributes=_OPTIONS,
    outputs=("selected_indices",),
    accepts=dt.FLOATING,
    promote=_INPUTS,
    inexact=True,
)
NON_MAX_SUPPRESSION_V4 = KernelSpec(
    "NonMaxSuppressionV4",
    _INPUTS,
    _infer_non_max_suppression_v4,
    attributes={**_OPTIONS, "pad_to_max_output_size": attributes.flag(default=False)},
    outputs=("selected_indices", "valid_outputs"),
    accepts=dt.FLOATING,
    promote=_INPUTS,
    inexact=True,
)
NON_MAX_SUPPRESSION_V5 = KernelSpec(
    "NonMaxSuppressionV5",
    _INPUTS,
    _infer_non_max_suppression_v5,
    attributes={**_OPTIONS, "soft_nms_sigma": Attribute(_read_part, 0.0, "float in [0, 1]")},
    outputs=("selected_indices", "selected_scores"),
    accepts=dt.FLOATING,
    promote=_INPUTS,
    inexact=True,
)


def non_max_suppression(
    boxes: ArrayLike,
    scores: ArrayLike,
    max_output_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
) -> Tensor:
    """Return the indices of boxes that do not overlap a better one, best score first.

    Boxes are selected in the order of their scores, and of their indices among equals. A box is
    skipped if its intersection over union with a selected box is ``iou_threshold`` or more.

    Args:
        boxes: [boxes, 4], two opposite corners of each: y1, x1, y2, x2. A box without area
            does not overlap any other.
        scores: [boxes].
        max_output_size: maximum number of boxes.
        iou_threshold: from 0 to 1.
        score_threshold: only boxes with a larger score are selected.

    Returns:
        int32 indices. It runs on the host if the device has no kernel.

    Raises:
        ShapeError: ``boxes`` is not [boxes, 4], or ``scores`` is not [boxes].
        ArgumentError: a threshold or size is out of range.

    Source: TensorFlow's NonMaxSuppressionV3.

    Examples:
        >>> boxes = [[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.8], [4.0, 4.0, 5.0, 5.0]]
        >>> tp.image.non_max_suppression(boxes, [0.9, 0.8, 0.7], 10)  # 1 overlaps 0 by 0.9
        Tensor([0, 2], dtype=int32, device='cpu')
        >>> tp.image.non_max_suppression(boxes, [0.6, 0.8, 0.7], 10, iou_threshold=0.95)
        Tensor([1, 2, 0], dtype=int32, device='cpu')

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
    boxes: ArrayLike,
    scores: ArrayLike,
    max_output_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
    pad_to_max_output_size: bool = False,  # noqa: FBT001, FBT002  # TensorFlow.js's parameters
) -> tuple[Tensor, Tensor]:
    """Return ``non_max_suppression``, padded with zeros, and the number of valid indices.

    Args:
        boxes: [boxes, 4], as for ``non_max_suppression``.
        scores: [boxes].
        max_output_size: maximum number of boxes.
        iou_threshold: from 0 to 1.
        score_threshold: only boxes with a larger score are selected.
        pad_to_max_output_size: whether to return exactly ``max_output_size`` indices.

    Returns:
        The indices and their number, an int32 scalar.

    Raises:
        ShapeError, ArgumentError: as ``non_max_suppression``.

    Source: TensorFlow's NonMaxSuppressionV4.

    Examples:
        >>> boxes = [[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.8], [4.0, 4.0, 5.0, 5.0]]
        >>> scores = [0.9, 0.8, 0.7]
        >>> indices, valid = tp.image.non_max_suppression_padded(
        ...     boxes, scores, 4, pad_to_max_output_size=True
        ... )
        >>> indices, valid.item()
        (Tensor([0, 2, 0, 0], dtype=int32, device='cpu'), 2)

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
    boxes: ArrayLike,
    scores: ArrayLike,
    max_output_size: int,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
    soft_nms_sigma: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Return the indices of boxes that do not overlap a better one, and their scores.

    With ``soft_nms_sigma`` above 0, each selected box also multiplies the scores of boxes that
    overlap it by less than the threshold by ``exp(-iou**2 / (2 sigma))``, which changes their
    order (Bodla et al., Soft-NMS, 2017).

    Args:
        boxes: [boxes, 4], as for ``non_max_suppression``.
        scores: [boxes].
        max_output_size: maximum number of boxes.
        iou_threshold: from 0 to 1.
        score_threshold: only boxes whose (lowered) score is larger are selected.
        soft_nms_sigma: from 0 to 1.

    Returns:
        int32 indices, and scores in the dtype of ``scores``, which are differentiable in them.

    Raises:
        ShapeError, ArgumentError: as ``non_max_suppression``.

    Source: TensorFlow's NonMaxSuppressionV5.

    Examples:
        >>> boxes = [[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.8], [4.0, 4.0, 5.0, 5.0]]
        >>> scores = [0.9, 0.8, 0.7]
        >>> indices, best = tp.image.non_max_suppression_with_score(boxes, scores, 10)
        >>> indices
        Tensor([0, 2], dtype=int32, device='cpu')
        >>> best.numpy().round(4)
        array([0.9, 0.7], dtype=float32)
        >>> _, best = tp.image.non_max_suppression_with_score(
        ...     boxes, scores, 10, iou_threshold=1.0, soft_nms_sigma=0.5
        ... )
        >>> best.numpy().round(4)  # the overlapping box stays, with a lower score
        array([0.9   , 0.7   , 0.3559], dtype=float32)

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
