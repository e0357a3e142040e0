"""Losses of predicted probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug.library.losses.weighting import DEFAULT, PREDICTED, read_pair, reduce
from tensorplug.plugin import arguments, kinds, shapes

if TYPE_CHECKING:
    from tensorplug.library.losses.weighting import Reduction
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["binary_cross_entropy", "kl_divergence", "log_loss"]

_MOST: Final = 100.0  # of a loss whose logarithm is cut off


def binary_cross_entropy(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    label_smoothing: float = 0.0,
    reduction: Reduction = DEFAULT,
) -> Tensor:
    """Return the losses ``-y * log(p) - (1 - y) * log(1 - p)``, weighted and reduced.

    The logarithms are cut off at -100: a certain and wrong prediction costs 100, and its gradient
    is 0. ``sigmoid_cross_entropy`` takes logits, and has no such limit; ``log_loss`` has
    TensorFlow.js's ``epsilon`` instead.

    Args:
        labels: the probabilities y, often 0 or 1.
        predictions: the probabilities p, of the same shape. Integers become float32.
        weights: multiply the losses, to which they broadcast.
        label_smoothing: s in ``y = labels * (1 - s) + s / 2``.
        reduction: see ``compute_weighted_loss``.

    Raises:
        ShapeError: labels and predictions differ in shape, or the weights do not broadcast to the
            losses.
        DTypeError: complex numbers or strings.
        ArgumentError: an unknown reduction, or ``label_smoothing`` is not a number.

    Source: PyTorch's binary_cross_entropy; the smoothing is Keras's.

    Examples:
        >>> loss = tp.losses.binary_cross_entropy([1, 0], [0.5, 0.2], reduction="none")
        >>> loss.numpy().round(4)
        array([0.6931, 0.2231], dtype=float32)
        >>> tp.losses.binary_cross_entropy([1, 0, 0], [1.0, 0.0, 1.0], reduction="none")
        Tensor([  0.,   0., 100.], dtype=float32, device='cpu')

    """
    caller = "binary_cross_entropy"
    target, p = read_pair(labels, predictions, caller, PREDICTED)
    smoothing = arguments.real(label_smoothing, f"{caller}: label_smoothing")

    def cost(y: Tensor, p: Tensor) -> Tensor:
        if smoothing:
            y = y * (1 - smoothing) + smoothing * 0.5
        return y * _take_cost(tp.log, p, p == 0) + (1 - y) * _take_cost(tp.log1p, -p, p == 1)

    return reduce(
        kinds.compute(caller, cost, labels=target, predictions=p), weights, reduction, caller
    )


def _take_cost(logarithm: Any, x: Tensor, pole: Any) -> Tensor:
    """Return ``-logarithm(x)``, at most 100, without a gradient from there on."""
    return tp.where(pole, _MOST, tp.minimum(-logarithm(tp.where(pole, 0.5, x)), _MOST))


def kl_divergence(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    axis: int = -1,
    *,
    reduction: Reduction = DEFAULT,
) -> Tensor:
    """Return the Kullback-Leibler divergences ``sum(y * log(y / p))``, weighted and reduced.

    A label of 0 adds 0, and its gradient is 0. A prediction of 0 for another label gives inf.

    Args:
        labels: the probabilities y of the classes along ``axis``.
        predictions: the probabilities p, of the same shape. Integers become float32.
        weights: multiply the losses, which lack ``axis``, and to which they broadcast.
        axis: the axis of the classes.
        reduction: see ``compute_weighted_loss``.

    Raises:
        ShapeError: labels and predictions differ in shape, the weights do not broadcast to the
            losses, or the axis is out of range.
        DTypeError: complex numbers or strings.
        ArgumentError: an unknown reduction.

    Source: Keras's KLDivergence, without its limits for probabilities. (PyTorch's kl_div takes
    the predictions' logarithms first, then labels, and does not sum.)

    Examples:
        >>> labels, predictions = [[0.5, 0.5], [0.0, 1.0]], [[0.25, 0.75], [0.5, 0.5]]
        >>> loss = tp.losses.kl_divergence(labels, predictions, reduction="none")
        >>> loss.numpy().round(4)  # ln(4 / 3) / 2 and ln(2)
        array([0.1438, 0.6931], dtype=float32)
        >>> round(float(tp.losses.kl_divergence(labels, predictions)), 4)
        0.4185

    """
    caller = "kl_divergence"
    y, p = read_pair(labels, predictions, caller, PREDICTED)
    at = shapes.normalize_axis(axis, y.ndim, f"{caller} of {y.type}: axis")

    def diverge(y: Tensor, p: Tensor) -> Tensor:
        some = tp.logical_or(y != 0, tp.isnan(p))
        return tp.sum(
            y * (tp.log(tp.where(some, y, 1.0)) - tp.log(tp.where(some, p, 1.0))), axis=at
        )

    losses = kinds.compute(caller, diverge, labels=y, predictions=p)
    return reduce(losses, weights, reduction, caller)


def log_loss(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    epsilon: float = 1e-7,
    reduction: Reduction = DEFAULT,
) -> Tensor:
    """Return the losses of predicted probabilities, weighted and reduced.

    They are ``-labels * log(p + epsilon) - (1 - labels) * log(1 - p + epsilon)``.

    Labels and predictions are numbers of the same shape. For ``weights`` and
    ``reduction`` see ``compute_weighted_loss``.

    Raises:
        ShapeError: labels and predictions differ in shape, or the weights do not broadcast to the
            losses.
        DTypeError: strings.
        ArgumentError: an unknown reduction, or ``epsilon`` is not a number.

    Source: TensorFlow.js's losses.logLoss.

    Examples:
        >>> tp.losses.log_loss([1, 0], [0.5, 0.2], reduction="none").numpy().round(4)
        array([0.6931, 0.2231], dtype=float32)
        >>> round(float(tp.losses.log_loss([1.0], [0.0])), 2)  # finite, by epsilon
        16.12

    """
    target, p = read_pair(labels, predictions, "log_loss", PREDICTED)
    least = arguments.real(epsilon, "log_loss: epsilon")
    missed = (1 - target) * tp.log(1 - p + least)
    losses = -(target * tp.log(p + least)) - missed
    return reduce(losses, weights, reduction, "log_loss")
