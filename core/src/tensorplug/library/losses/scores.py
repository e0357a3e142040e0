"""Losses of classes by their scores, also called logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.library.losses.weighting import (
    DEFAULT,
    PREDICTED,
    SCORED,
    read_numbers,
    read_pair,
    reduce,
)
from tensorplug.plugin import arguments, as_tensor, dispatch, shapes, specs
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.library.losses.weighting import Reduction
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = [
    "hinge_loss",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


def hinge_loss(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    reduction: Reduction = DEFAULT,
) -> Tensor:
    """Return the losses ``max(0, 1 - (2 labels - 1) * predictions)``, weighted and reduced.

    ``labels`` are 0 or 1, ``predictions`` scores of the same shape. At the hinge the gradient is
    0. For ``weights`` and ``reduction`` see ``compute_weighted_loss``.

    Raises:
        ShapeError: labels and predictions differ in shape, or the weights do not broadcast to the
            losses.
        DTypeError: strings.
        ArgumentError: an unknown reduction.

    Source: TensorFlow.js's losses.hingeLoss.

    Examples:
        >>> tp.losses.hinge_loss([1, 1, 0], [2.0, 0.5, 0.5], reduction="none")
        Tensor([0. , 0.5, 1.5], dtype=float32, device='cpu')
        >>> tp.losses.hinge_loss([1, 1, 0], [2.0, 0.5, 0.5])
        Tensor(0.6666667, dtype=float32, device='cpu')

    """
    target, predicted = read_pair(labels, predictions, "hinge_loss", PREDICTED)
    losses = tp.nn.relu(1 - (target * 2 - 1) * predicted)
    return reduce(losses, weights, reduction, "hinge_loss")


def sigmoid_cross_entropy(
    multi_class_labels: ArrayLike,
    logits: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    label_smoothing: float = 0.0,
    reduction: Reduction = DEFAULT,
) -> Tensor:
    """Return the losses of independent classes, weighted and reduced.

    They are ``-y * log(sigmoid(x)) - (1 - y) * log(1 - sigmoid(x))``, computed so that large
    logits neither overflow nor lose accuracy. With ``label_smoothing`` s,
    ``y = labels * (1 - s) + s / 2``. Labels and logits have the same shape. For ``weights`` and
    ``reduction`` see ``compute_weighted_loss``.

    ``multi_class_labels``: the labels, from 0 to 1.

    Raises:
        ShapeError: labels and logits differ in shape, or the weights do not broadcast to the
            losses.
        DTypeError: strings.
        ArgumentError: an unknown reduction, or ``label_smoothing`` is not a number.

    Source: TensorFlow.js's losses.sigmoidCrossEntropy.

    Examples:
        >>> labels, logits = [[1.0, 0.0]], [[0.0, -2.0]]
        >>> tp.losses.sigmoid_cross_entropy(labels, logits, reduction="none").numpy().round(4)
        array([[0.6931, 0.1269]], dtype=float32)
        >>> tp.losses.sigmoid_cross_entropy([1.0, 0.0], [-1000.0, -1000.0], reduction="none")
        Tensor([1000.,    0.], dtype=float32, device='cpu')

    """
    y, x = read_pair(multi_class_labels, logits, "sigmoid_cross_entropy", SCORED)
    smoothing = arguments.real(label_smoothing, "sigmoid_cross_entropy: label_smoothing")
    if smoothing:
        y = y * (1 - smoothing) + smoothing * 0.5
    # softplus(x) - x * y; its derivative at 0, too, is sigmoid(x) - y.
    losses = tp.nn.softplus(x) - x * y
    return reduce(losses, weights, reduction, "sigmoid_cross_entropy")


def softmax_cross_entropy(
    onehot_labels: ArrayLike,
    logits: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    label_smoothing: float = 0.0,
    reduction: Reduction = DEFAULT,
) -> Tensor:
    """Return the losses ``-sum(y * log_softmax(logits))`` along the last axis, weighted, reduced.

    Args:
        onehot_labels: probabilities of the classes along the last axis.
        logits: of the same shape.
        weights: broadcast to the losses, which lack the last axis.
        label_smoothing: s in ``y = labels * (1 - s) + s / classes``.
        reduction: see ``compute_weighted_loss``.

    It is differentiable in labels and logits.

    Raises:
        ShapeError: the shapes differ or have no axis, or the weights do not fit.
        DTypeError: strings.
        ArgumentError: an unknown reduction, or ``label_smoothing`` is not a number.

    Source: TensorFlow.js's losses.softmaxCrossEntropy.

    Examples:
        >>> labels, logits = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 1000.0]]
        >>> tp.losses.softmax_cross_entropy(labels, logits, reduction="none").numpy().round(4)
        array([0.6931, 0.    ], dtype=float32)
        >>> round(float(tp.losses.softmax_cross_entropy(labels, logits)), 4)
        0.3466

    """
    y, scores = read_pair(onehot_labels, logits, "softmax_cross_entropy", SCORED)
    if not y.shape:
        raise ShapeError("softmax_cross_entropy: labels and logits must have at least rank 1")
    smoothing = arguments.real(label_smoothing, "softmax_cross_entropy: label_smoothing")
    if smoothing:
        y = y * (1 - smoothing) + smoothing / y.shape[-1]
    losses = dispatch(specs.SOFTMAX_CROSS_ENTROPY, y, scores)
    return reduce(losses, weights, reduction, "softmax_cross_entropy")


def sparse_softmax_cross_entropy(
    labels: ArrayLike,
    logits: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    reduction: Reduction = DEFAULT,
) -> Tensor:
    """Return the losses ``-log_softmax(logits)[label]``, weighted and reduced.

    Args:
        labels: class numbers: integers, with the shape of logits without its last axis.
        logits: scores, with the classes along the last axis.
        weights: broadcast to the losses. ``take(class_weights, labels)`` weights classes.
        ignore_index: a label, often -1 or -100, whose losses are 0 and have weight 0.
        label_smoothing: s in ``y = one_hot(labels) * (1 - s) + s / classes``.
        reduction: see ``compute_weighted_loss``.

    It is differentiable in logits and weights.

    Raises:
        ShapeError: the shapes do not fit, or there is no class.
        DTypeError: the labels are not integers.
        OutOfRangeError: a label names no class, on devices that can raise.
        ArgumentError: an unknown reduction, or ``label_smoothing`` is not a number.

    Source: TensorFlow's sparse_softmax_cross_entropy; ``ignore_index`` is PyTorch's.

    Examples:
        >>> logits = tp.asarray([[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
        >>> loss = tp.losses.sparse_softmax_cross_entropy([2, 1], logits, reduction="none")
        >>> loss.numpy().round(4)
        array([1.3863, 0.7437], dtype=float32)
        >>> loss = tp.losses.sparse_softmax_cross_entropy([2, -1], logits, ignore_index=-1)
        >>> round(float(loss), 4)
        1.3863

    """
    caller = "sparse_softmax_cross_entropy"
    numbers = as_tensor(labels, what=f"{caller}: labels")
    if numbers.dtype not in dt.INTEGER:
        raise DTypeError(f"{caller}: labels must be integers, got {numbers.type}")
    scores = read_numbers(logits, f"{caller}: logits")
    ignored = None
    if ignore_index is not None:
        index = shapes.index(ignore_index, f"{caller}: ignore_index")
        try:
            dt.check_number(index, numbers.dtype)
        except ArgumentError as error:
            raise ArgumentError(f"{caller}: ignore_index: {error}") from None
        ignored = tp.equal(numbers, index)
        numbers = tp.where(ignored, 0, numbers)
    losses = dispatch(specs.SPARSE_SOFTMAX_CROSS_ENTROPY, numbers, scores)
    smoothing = arguments.real(label_smoothing, f"{caller}: label_smoothing")
    if smoothing:
        if ignored is not None:  # not even a NaN counts there
            scores = tp.where(tp.expand_dims(ignored, axis=-1), 0, scores)
        spread = tp.mean(tp.nn.log_softmax(scores), axis=-1)
        losses = losses * (1 - smoothing) - spread * smoothing
    if ignored is not None:
        losses = tp.where(ignored, 0, losses)
        factors = 1 if weights is None else read_numbers(weights, f"{caller}: weights")
        weights = tp.where(ignored, 0, factors)
    return reduce(losses, weights, reduction, caller)
