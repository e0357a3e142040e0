"""Loss functions, composed of other ops. They live in ``tensorplug.losses``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.dispatch import as_tensor
from tensorplug.errors import ShapeError
from tensorplug.ops import activation, reduction

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

__all__ = [
    "softmax_cross_entropy",
]


def softmax_cross_entropy(onehot_labels: Any, logits: Any, /) -> Tensor:
    """Return the mean over all but the last axis of ``-sum(labels * log_softmax(logits))``.

    Args:
        onehot_labels: probabilities of the classes along the last axis.
        logits: of the same shape.

    Returns:
        A scalar. It is differentiable in both arguments.

    Raises:
        ShapeError: when the shapes differ.

    """
    labels = as_tensor(onehot_labels, what="softmax_cross_entropy: onehot_labels")
    scores = as_tensor(logits, what="softmax_cross_entropy: logits")
    if labels.shape != scores.shape:
        raise ShapeError(
            f"softmax_cross_entropy: labels are {labels.type}, but logits are {scores.type}"
        )
    each = reduction.sum(labels * activation.log_softmax(scores), axis=-1)
    return -reduction.mean(each)
