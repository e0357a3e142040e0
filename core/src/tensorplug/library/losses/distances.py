"""Losses of predicted numbers and vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug.library.losses.weighting import DEFAULT, PREDICTED, read_pair, reduce
from tensorplug.plugin import arguments
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.library.losses.weighting import Reduction
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["absolute_difference", "cosine_distance", "huber_loss", "mean_squared_error"]


def absolute_difference(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    reduction: Reduction = DEFAULT,
) -> Tensor:
    """Return the losses ``|labels - predictions|``, weighted and reduced.

    Labels and predictions are numbers of the same shape. For ``weights`` and
    ``reduction`` see ``compute_weighted_loss``.

    Raises:
        ShapeError: labels and predictions differ in shape, or the weights do not broadcast to the
            losses.
        DTypeError: strings.
        ArgumentError: an unknown reduction.

    Source: TensorFlow.js's losses.absoluteDifference.

    Examples:
        >>> tp.losses.absolute_difference([1.0, 2.0], [1.5, 4.0])
        Tensor(1.25, dtype=float32, device='cpu')
        >>> tp.losses.absolute_difference([1.0, 2.0], [1.5, 4.0], [1.0, 0.0])
        Tensor(0.5, dtype=float32, device='cpu')
        >>> tp.losses.absolute_difference([1.0, 2.0], [1.5, 4.0], reduction="none")
        Tensor([0.5, 2. ], dtype=float32, device='cpu')

    """
    target, predicted = read_pair(labels, predictions, "absolute_difference", PREDICTED)
    losses = tp.abs(target - predicted)
    return reduce(losses, weights, reduction, "absolute_difference")


def mean_squared_error(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    reduction: Reduction = DEFAULT,
) -> Tensor:
    """Return the losses ``(labels - predictions)**2``, weighted and reduced.

    Labels and predictions are numbers of the same shape. For ``weights`` and
    ``reduction`` see ``compute_weighted_loss``.

    Raises:
        ShapeError: labels and predictions differ in shape, or the weights do not broadcast to the
            losses.
        DTypeError: strings.
        ArgumentError: an unknown reduction.

    Source: TensorFlow.js's losses.meanSquaredError.

    Examples:
        >>> tp.losses.mean_squared_error([1.0, 2.0], [1.5, 4.0])
        Tensor(2.125, dtype=float32, device='cpu')
        >>> tp.losses.mean_squared_error([1.0, 2.0], [1.5, 4.0], reduction="sum")
        Tensor(4.25, dtype=float32, device='cpu')

    """
    target, predicted = read_pair(labels, predictions, "mean_squared_error", PREDICTED)
    losses = tp.squared_difference(target, predicted)
    return reduce(losses, weights, reduction, "mean_squared_error")


def cosine_distance(
    labels: ArrayLike,
    predictions: ArrayLike,
    axis: int,
    weights: ArrayLike | None = None,
    *,
    reduction: Reduction = DEFAULT,
) -> Tensor:
    """Return the losses ``1 - sum(labels * predictions)`` along ``axis``, weighted and reduced.

    Both arguments should have norm 1 along ``axis``. The losses keep that axis, with length 1. For
    ``weights`` and ``reduction`` see ``compute_weighted_loss``.

    Raises:
        ShapeError: labels and predictions differ in shape, the weights do not broadcast to the
            losses, or the axis is out of range.
        DTypeError: strings.
        ArgumentError: an unknown reduction.

    Source: TensorFlow.js's losses.cosineDistance.

    Examples:
        >>> labels, predictions = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]
        >>> tp.losses.cosine_distance(labels, predictions, axis=1, reduction="none")
        Tensor([[0.],
                [1.]], dtype=float32, device='cpu')
        >>> tp.losses.cosine_distance(labels, predictions, axis=1)
        Tensor(0.5, dtype=float32, device='cpu')

    """
    target, predicted = read_pair(labels, predictions, "cosine_distance", PREDICTED)
    losses = 1 - tp.sum(target * predicted, axis=axis, keepdims=True)
    return reduce(losses, weights, reduction, "cosine_distance")


def huber_loss(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    delta: float = 1.0,
    reduction: Reduction = DEFAULT,
) -> Tensor:
    """Return losses that are quadratic up to an error of ``delta`` and linear beyond.

    With ``e = |labels - predictions|`` they are ``e**2 / 2`` for ``e <= delta`` and
    ``delta * (e - delta / 2)`` otherwise, weighted and reduced.

    Labels and predictions are numbers of the same shape. For ``weights`` and
    ``reduction`` see ``compute_weighted_loss``.

    ``delta`` is a number above 0.

    Raises:
        ShapeError: labels and predictions differ in shape, or the weights do not broadcast to the
            losses.
        DTypeError: strings.
        ArgumentError: an unknown reduction, or a ``delta`` that is not above 0.

    Source: TensorFlow.js's losses.huberLoss.

    Examples:
        >>> tp.losses.huber_loss([0.0, 0.0], [0.5, 4.0], reduction="none")
        Tensor([0.125, 3.5  ], dtype=float32, device='cpu')
        >>> tp.losses.huber_loss([0.0, 0.0], [0.5, 4.0], delta=5.0, reduction="none")
        Tensor([0.125, 8.   ], dtype=float32, device='cpu')

    """
    target, predicted = read_pair(labels, predictions, "huber_loss", PREDICTED)
    limit = dt.as_number(delta)
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
        raise ArgumentError(
            f"huber_loss: delta must be a number above 0, got {arguments.quoted(delta)}"
        )
    error = target - predicted
    near = tp.clip(error, -limit, limit)  # |error| would bend at 0
    losses = near * (error - near * 0.5)
    return reduce(losses, weights, reduction, "huber_loss")
