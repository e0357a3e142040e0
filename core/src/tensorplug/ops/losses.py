"""Loss functions, composed of other ops. They live in ``tensorplug.losses``.

Each computes one loss per element (or per row), multiplies it by ``weights``, which broadcast to
the losses, and reduces them:

- ``"none"``: the weighted losses as they are;
- ``"sum"``: their sum;
- ``"mean"``: their sum divided by the sum of the broadcast weights;
- ``"sum_by_nonzero_weights"``, the default: their sum divided by the number of losses whose
  weight is not 0; NaN if there are none.

By default all weights are 1. The source of the formulas is TensorFlow.js.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from tensorplug.contract import arguments, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops import comparison, elementwise, rounding
from tensorplug.ops.movement import broadcast_to
from tensorplug.ops.nn import activation
from tensorplug.ops.nn.cross_entropy import SOFTMAX_CROSS_ENTROPY, SPARSE_SOFTMAX_CROSS_ENTROPY
from tensorplug.ops.reduction import mean
from tensorplug.ops.reduction import sum as total

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = [
    "absolute_difference",
    "compute_weighted_loss",
    "cosine_distance",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]

Reduction: TypeAlias = Literal["none", "sum", "mean", "sum_by_nonzero_weights"]
"""How losses are reduced; see ``compute_weighted_loss``."""

_DEFAULT: Final = "sum_by_nonzero_weights"
_REDUCTIONS: Final = get_args(Reduction)


def compute_weighted_loss(
    losses: ArrayLike, weights: ArrayLike | None = None, *, reduction: Reduction = _DEFAULT
) -> Tensor:
    """Return losses weighted and reduced, as all losses of this module are.

    Args:
        losses: numbers or booleans of any shape.
        weights: multiply the losses, to which they broadcast. By default all are 1.
        reduction: "none" returns the weighted losses, "sum" their sum, "mean" their sum divided
            by the sum of the broadcast weights, "sum_by_nonzero_weights" their sum divided by the
            number of losses whose weight is not 0; NaN if there are none.

    Raises:
        ArgumentError: an unknown reduction.
        ShapeError: the weights do not broadcast to the losses.
        DTypeError: strings.

    Source: TensorFlow.js's losses.computeWeightedLoss.

    Examples:
        >>> losses, weights = [1.0, 2.0, 3.0], [0.5, 0.0, 2.0]
        >>> tp.losses.compute_weighted_loss(losses, weights, reduction="none")
        Tensor([0.5, 0. , 6. ], dtype=float32, device='cpu')
        >>> tp.losses.compute_weighted_loss(losses, weights, reduction="sum")
        Tensor(6.5, dtype=float32, device='cpu')
        >>> tp.losses.compute_weighted_loss(losses, weights, reduction="mean")  # 6.5 / 2.5
        Tensor(2.6, dtype=float32, device='cpu')
        >>> tp.losses.compute_weighted_loss(losses, weights)  # 6.5 / 2
        Tensor(3.25, dtype=float32, device='cpu')

    """
    return _reduce(_read_numbers(losses, "compute_weighted_loss: losses"), weights, reduction)


def _reduce(
    losses: Tensor, weights: Any, how: str, caller: str = "compute_weighted_loss"
) -> Tensor:
    arguments.choice(how, _REDUCTIONS, f"{caller}: reduction")
    if weights is None:
        if how == "none":
            return losses
        return total(losses) if how == "sum" else mean(losses)
    weights = dt.as_number(weights)
    factors = _read_numbers(weights, f"{caller}: weights")
    try:
        spread = broadcast_to(factors, losses.shape)
    except ShapeError:
        raise ShapeError(
            f"{caller}: weights {factors.type} do not broadcast to the losses {losses.type}"
        ) from None
    weighted = losses * spread
    if how == "none":
        return weighted
    result = total(weighted)
    if how == "sum":
        return result
    counted = spread if how == "mean" else comparison.not_equal(spread, 0)
    return result / elementwise.astype(total(counted), result.dtype)


def _read_numbers(value: Any, what: str) -> Tensor:
    """Return a tensor of numbers or booleans."""
    tensor = as_tensor(value, what=what)
    if tensor.dtype not in dt.FIXED:
        raise DTypeError(f"{what} must hold numbers or booleans, got {tensor.type}")
    return tensor


def _read_pair(
    first: Any, second: Any, caller: str, names: tuple[str, str]
) -> tuple[Tensor, Tensor]:
    """Return two tensors of the same shape."""
    a = _read_numbers(first, f"{caller}: {names[0]}")
    b = _read_numbers(second, f"{caller}: {names[1]}")
    if a.shape != b.shape:
        raise ShapeError(
            f"{caller}: {names[0]} and {names[1]} must have the same shape, got {a.type} and "
            f"{b.type}"
        )
    return a, b


_PREDICTED: Final = ("labels", "predictions")
_SCORED: Final = ("labels", "logits")


def absolute_difference(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    reduction: Reduction = _DEFAULT,
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
    wanted, found = _read_pair(labels, predictions, "absolute_difference", _PREDICTED)
    losses = elementwise.abs(wanted - found)
    return _reduce(losses, weights, reduction, "absolute_difference")


def mean_squared_error(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    reduction: Reduction = _DEFAULT,
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
    wanted, found = _read_pair(labels, predictions, "mean_squared_error", _PREDICTED)
    losses = elementwise.squared_difference(wanted, found)
    return _reduce(losses, weights, reduction, "mean_squared_error")


def cosine_distance(
    labels: ArrayLike,
    predictions: ArrayLike,
    axis: int,
    weights: ArrayLike | None = None,
    *,
    reduction: Reduction = _DEFAULT,
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
    wanted, found = _read_pair(labels, predictions, "cosine_distance", _PREDICTED)
    losses = 1 - total(wanted * found, axis=axis, keepdims=True)
    return _reduce(losses, weights, reduction, "cosine_distance")


def hinge_loss(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    reduction: Reduction = _DEFAULT,
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
    wanted, found = _read_pair(labels, predictions, "hinge_loss", _PREDICTED)
    losses = activation.relu(1 - (wanted * 2 - 1) * found)
    return _reduce(losses, weights, reduction, "hinge_loss")


def huber_loss(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    delta: float = 1.0,
    reduction: Reduction = _DEFAULT,
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
    wanted, found = _read_pair(labels, predictions, "huber_loss", _PREDICTED)
    limit = dt.as_number(delta)
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
        raise ArgumentError(f"huber_loss: delta must be a number above 0, got {quoted(delta)}")
    error = wanted - found
    near = rounding.clip(error, -limit, limit)  # |error| would bend at 0
    losses = near * (error - near * 0.5)
    return _reduce(losses, weights, reduction, "huber_loss")


def log_loss(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    epsilon: float = 1e-7,
    reduction: Reduction = _DEFAULT,
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
    wanted, p = _read_pair(labels, predictions, "log_loss", _PREDICTED)
    least = arguments.real(epsilon, "log_loss: epsilon")
    missed = (1 - wanted) * elementwise.log(1 - p + least)
    losses = -(wanted * elementwise.log(p + least)) - missed
    return _reduce(losses, weights, reduction, "log_loss")


def sigmoid_cross_entropy(
    multi_class_labels: ArrayLike,
    logits: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    label_smoothing: float = 0.0,
    reduction: Reduction = _DEFAULT,
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
    y, x = _read_pair(multi_class_labels, logits, "sigmoid_cross_entropy", _SCORED)
    smoothing = arguments.real(label_smoothing, "sigmoid_cross_entropy: label_smoothing")
    if smoothing:
        y = y * (1 - smoothing) + smoothing * 0.5
    # softplus(x) - x * y; its derivative at 0, too, is sigmoid(x) - y.
    losses = activation.softplus(x) - x * y
    return _reduce(losses, weights, reduction, "sigmoid_cross_entropy")


def softmax_cross_entropy(
    onehot_labels: ArrayLike,
    logits: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    label_smoothing: float = 0.0,
    reduction: Reduction = _DEFAULT,
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
    y, scores = _read_pair(onehot_labels, logits, "softmax_cross_entropy", _SCORED)
    if not y.shape:
        raise ShapeError("softmax_cross_entropy: labels and logits must have at least rank 1")
    smoothing = arguments.real(label_smoothing, "softmax_cross_entropy: label_smoothing")
    if smoothing:
        y = y * (1 - smoothing) + smoothing / y.shape[-1]
    losses = dispatch(SOFTMAX_CROSS_ENTROPY, y, scores)
    return _reduce(losses, weights, reduction, "softmax_cross_entropy")


def sparse_softmax_cross_entropy(
    labels: ArrayLike,
    logits: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    reduction: Reduction = _DEFAULT,
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
    scores = _read_numbers(logits, f"{caller}: logits")
    ignored = None
    if ignore_index is not None:
        index = shapes.index(ignore_index, f"{caller}: ignore_index")
        try:
            dt.check_number(index, numbers.dtype)
        except ArgumentError as error:
            raise ArgumentError(f"{caller}: ignore_index: {error}") from None
        ignored = comparison.equal(numbers, index)
        numbers = elementwise.where(ignored, 0, numbers)
    losses = dispatch(SPARSE_SOFTMAX_CROSS_ENTROPY, numbers, scores)
    smoothing = arguments.real(label_smoothing, f"{caller}: label_smoothing")
    if smoothing:
        spread = mean(activation.log_softmax(scores), axis=-1)
        losses = losses * (1 - smoothing) - spread * smoothing
    if ignored is not None:
        losses = elementwise.where(ignored, 0, losses)
        factors = 1 if weights is None else _read_numbers(weights, f"{caller}: weights")
        weights = elementwise.where(ignored, 0, factors)
    return _reduce(losses, weights, reduction, caller)
