"""Evaluation of classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.plugin import as_tensor, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["confusion_matrix", "in_top_k"]


def confusion_matrix(labels: ArrayLike, predictions: ArrayLike, num_classes: int) -> Tensor:
    """Return the confusion matrix: ``[num_classes, num_classes]``, int32.

    Args:
        labels: the true classes, numbers of rank 1. Fractions are truncated.
        predictions: the predicted classes, of the same length.
        num_classes: number of classes. Pairs with a class outside ``[0, num_classes)`` are
            not counted.

    Returns:
        At row i and column j, the number of examples of class i predicted as class j.

    Raises:
        ShapeError: another rank, or lengths that differ.
        DTypeError: complex numbers or strings.
        ArgumentError: a num_classes that is not a positive integer.

    Source: TensorFlow.js's math.confusionMatrix.

    Examples:
        >>> tp.confusion_matrix([0, 1, 2, 1], [0, 2, 2, 1], 3)
        Tensor([[1, 0, 0],
                [0, 1, 1],
                [0, 0, 1]], dtype=int32, device='cpu')

    """
    true = _read_classes(labels, "labels")
    guessed = _read_classes(predictions, "predictions")
    if true.shape != guessed.shape:
        raise ShapeError(
            f"confusion_matrix: labels are {true.type}, but predictions {guessed.type}"
        )
    count = shapes.index(num_classes, "confusion_matrix: num_classes")
    if count < 1:
        raise ArgumentError(f"confusion_matrix: num_classes must be positive, got {count}")
    known = tp.logical_and(_mark_within(true, count), _mark_within(guessed, count))
    # One extra place takes the pairs that are not counted.
    cells = tp.where(known, true * count + guessed, count * count)
    number = true.shape[0]
    counted = tp.scatter_nd(
        tp.reshape(cells, (number, 1)), tp.ones((number,), dtype=dt.int32), (count * count + 1,)
    )
    return tp.reshape(tp.slice(counted, (0,), (count * count,)), (count, count))


def _read_classes(x: Any, name: str) -> Tensor:
    tensor = as_tensor(x, what=f"confusion_matrix: {name}")
    if tensor.ndim != 1:
        raise ShapeError(f"confusion_matrix: {name} must have rank 1, got {tensor.type}")
    if tensor.dtype in dt.COMPLEX or tensor.dtype is dt.string:
        raise DTypeError(f"confusion_matrix: {name} are {tensor.type}, but must be real numbers")
    return tp.astype(tensor, dt.int32)


def _mark_within(x: Tensor, count: int) -> Tensor:
    return tp.logical_and(tp.logical_not(tp.less(x, 0)), tp.less(x, count))


def in_top_k(predictions: ArrayLike, targets: ArrayLike, k: int = 1) -> Tensor:
    """Return whether each target is among the ``k`` classes with the largest predictions.

    Args:
        predictions: scores, ``[..., classes]``, of rank 2 or more.
        targets: class indices, ``[...]``. The result is False for those outside ``[0, classes)``.
        k: number of classes. Among equal scores, the lowest class comes first.

    Returns:
        Booleans of the shape of ``targets``.

    Raises:
        ShapeError: the shapes do not fit, or k is larger than the number of classes.
        DTypeError: targets that are not integers.
        ArgumentError: a k below 1.

    Source: TensorFlow.js's inTopKAsync.

    Examples:
        >>> scores = tp.asarray([[0.1, 0.7, 0.2], [0.3, 0.3, 0.4]])
        >>> tp.in_top_k(scores, [1, 0])
        Tensor([ True, False], dtype=bool, device='cpu')
        >>> tp.in_top_k(scores, [2, 0], k=2)
        Tensor([ True,  True], dtype=bool, device='cpu')

    """
    scores = as_tensor(predictions, what="in_top_k: predictions")
    classes = as_tensor(targets, what="in_top_k: targets")
    if scores.ndim < 2 or scores.shape[:-1] != classes.shape:
        raise ShapeError(
            "in_top_k: predictions must be [..., classes] and targets [...], got "
            f"{scores.type} and {classes.type}"
        )
    if classes.dtype not in dt.INTEGER:
        raise DTypeError(f"in_top_k: targets are {classes.type}, but must be integers")
    count = shapes.index(k, "in_top_k: k")
    if count < 1:
        raise ArgumentError(f"in_top_k: k must be at least 1, got {count}")
    _, indices = tp.topk(scores, count)
    return tp.any(tp.equal(indices, tp.expand_dims(classes, axis=-1)), axis=-1)
