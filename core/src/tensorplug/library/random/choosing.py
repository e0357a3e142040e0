"""Random choices. The functions live in ``tensorplug.random``."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug.algorithms import draw, drawing
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.plugin import arguments, as_key, as_tensor, host_values, shapes, specs
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Shape, Tensor
    from tensorplug.typing import ArrayLike, KeyLike, ShapeLike, TensorLike

__all__ = ["categorical", "choice", "permutation"]


def categorical(
    key: KeyLike,
    logits: ArrayLike,
    shape: ShapeLike | None = None,
    axis: int = -1,
) -> Tensor:
    """Return indices (int32) drawn with probabilities ``softmax(logits)`` along ``axis``.

    It takes the largest of ``logits`` plus Gumbel noise, so each draw needs memory for all
    classes.

    Args:
        key: a key.
        logits: logarithms of probabilities, up to a constant; -inf for probability 0.
        shape: of the result; the shape of ``logits`` without ``axis`` must broadcast to it, and
            is the default. ``(1000, 3)`` draws a thousand times from each of three rows.
        axis: the axis of the classes.

    Raises:
        ArgumentError: ``key`` is not a key.
        ShapeError: ``axis`` is out of range or empty, or ``shape`` does not fit.
        DTypeError: ``logits`` are not real numbers.

    Source: JAX's random.categorical.

    Examples:
        >>> logits = tp.log(tp.asarray([0.1, 0.0, 0.9]))
        >>> x = tp.random.categorical(tp.random.key(0), logits, shape=(10000,))
        >>> (tp.bincount(x, size=3) / 10000).numpy().round(1)
        array([0.1, 0. , 0.9], dtype=float32)
        >>> tp.random.categorical(tp.random.key(0), tp.zeros((4, 3))).shape  # one of each row
        (4,)

    """
    checked = as_key(key, "categorical")
    _, chosen, (scores,) = drawing.parameters("categorical", None, None, logits=logits)
    if host_values.is_scalar(scores) or not scores.ndim:
        raise ShapeError("categorical: logits must have at least rank 1, got a number")
    at = shapes.normalize_axis(axis, scores.ndim, "categorical: axis")
    others = [index for index in range(scores.ndim) if index != at]
    last = tp.permute_dims(scores, (*others, at))
    batch, classes = last.shape[:-1], last.shape[-1]
    if not classes:
        raise ShapeError(f"categorical: axis {axis} of logits {scores.type} is empty")
    sizes = drawing.fit_shape("categorical", shape, [batch])
    drawn = tp.argmax(last + tp.random.gumbel(checked, (*sizes, classes), chosen), axis=-1)
    return tp.astype(drawn, dt.default_int, copy=False)


def permutation(
    key: KeyLike,
    x: TensorLike,
    axis: int = 0,
) -> Tensor:
    """Return ``x`` with its slices along ``axis`` in random order; all orders are equally likely.

    Args:
        key: a key.
        x: a tensor of at least rank 1; or an integer n for the numbers 0 to n - 1 (int32).
        axis: the axis of the slices.

    Raises:
        ArgumentError: ``key`` is not a key, or ``x`` is a negative number.
        ShapeError: ``axis`` is out of range.

    Source: NumPy's Generator.permutation.

    Examples:
        >>> tp.random.permutation(tp.random.key(0), 5)
        Tensor([3, 4, 1, 0, 2], dtype=int32, device='cpu')
        >>> tp.random.permutation(tp.random.key(0), [[1, 2], [3, 4], [5, 6]])  # rows stay whole
        Tensor([[3, 4],
                [1, 2],
                [5, 6]], dtype=int32, device='cpu')

    """
    checked = as_key(key, "permutation")
    count, source = _count_choices("permutation", x, axis)
    order = _draw_order(checked, count)
    return _take(source, order, axis)


def _count_choices(caller: str, a: Any, axis: int) -> tuple[int, Tensor | None]:
    """Return the number of choices, and the tensor of the slices, or None for integers."""
    if host_values.is_scalar(a) or isinstance(a, np.generic):
        count = shapes.index(a, f"{caller}: a number")
        if count < 0:
            raise ArgumentError(f"{caller}: a number must not be negative, got {count}")
        shapes.normalize_axis(axis, 1, f"{caller} of {count} numbers: axis")
        return count, None
    tensor = as_tensor(a, what=f"{caller}: the tensor")
    at = shapes.normalize_axis(axis, tensor.ndim, f"{caller} of {tensor.type}: axis")
    return tensor.shape[at], tensor


def _draw_order(key: Tensor, count: int) -> Tensor:
    """Return a random order of ``count`` numbers.

    It sorts places by random words of 32 bits, twice. Sorting is stable, so with a single sort
    equal words, which are likely from 2**16 words on, would bias the order.
    """
    one, two = (tp.topk(_draw_ranks(part, count), count)[1] for part in tp.random.split(key))
    return tp.gather(one, two) if count else one


def _draw_ranks(key: Tensor, count: int) -> Tensor:
    """Return random words, in int32 less 2**31: in the order of unsigned ones."""
    drawn = draw(specs.RANDOM_BITS, key, shape=(count,))
    return drawn if drawn.dtype in dt.UNSIGNED else drawn + drawn.dtype.min


def choice(
    key: KeyLike,
    a: TensorLike,
    shape: ShapeLike = (),
    *,
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
) -> Tensor:
    """Return slices of ``a`` along ``axis``, chosen at random.

    Args:
        key: a key.
        a: a tensor of at least rank 1; or an integer n for the numbers 0 to n - 1 (int32).
        shape: of the choices; it replaces ``axis`` in the shape of the result.
        replace: whether a slice may be chosen more than once.
        p: probabilities of the slices, up to a factor, of rank 1. Those that are not positive
            count as 0. Without ``replace``, slices are chosen one by one among the remaining
            ones.
        axis: the axis of the slices.

    Raises:
        ArgumentError: ``key`` is not a key, or there are too few slices to choose from.
        ShapeError, DTypeError: ``axis`` or ``p`` does not fit ``a``.

    Source: NumPy's Generator.choice.

    Examples:
        >>> tp.random.choice(tp.random.key(0), 5, (3,), replace=False)
        Tensor([3, 4, 1], dtype=int32, device='cpu')
        >>> tp.random.choice(tp.random.key(0), [10, 20, 30], (6,), p=[0.5, 0.0, 0.5])
        Tensor([30, 10, 10, 10, 10, 30], dtype=int32, device='cpu')

    """
    arguments.flag(replace, "choice: replace")
    checked = as_key(key, "choice")
    count, source = _count_choices("choice", a, axis)
    sizes = shapes.as_shape(shape, "choice: shape")
    total = prod(sizes)
    if total > count and (not replace or not count):
        raise ArgumentError(f"choice: cannot choose {total} of {count} without repetition")
    weights = None if p is None else _compute_log_weights(p, count)
    pick = _choose_with_repetition if replace else _choose_without_repetition
    picked = pick(checked, count, sizes, weights)
    return _take(source, picked, axis)


def _take(source: Tensor | None, positions: Tensor, axis: int) -> Tensor:
    """Return the slices at ``positions``, the result themselves if there is no source."""
    if source is None:
        return tp.astype(positions, dt.default_int, copy=False)
    return tp.gather(source, positions, axis=axis)


def _choose_with_repetition(
    key: Tensor, count: int, shape: Shape, weights: Tensor | None
) -> Tensor:
    if weights is not None and count:
        return categorical(key, weights, shape=shape)
    return tp.random.integers(key, shape, high=max(count, 1))


def _choose_without_repetition(
    key: Tensor, count: int, shape: Shape, weights: Tensor | None
) -> Tensor:
    total = prod(shape)
    if weights is None:
        return tp.reshape(tp.slice(_draw_order(key, count), (0,), (total,)), shape)
    _, order = tp.topk(weights + tp.random.gumbel(key, (count,), weights.dtype), total)
    return tp.reshape(order, shape)


def _compute_log_weights(p: Any, count: int) -> Tensor:
    _, chosen, (weight,) = drawing.parameters("choice", None, None, p=p)
    if host_values.is_scalar(weight) or weight.shape != (count,):
        shown = weight if host_values.is_scalar(weight) else weight.type
        raise ShapeError(f"choice: p must have shape [{count}], one number per slice, got {shown}")
    weights = tp.astype(weight, chosen)
    positive = tp.less(0.0, weights)
    # not minus infinity, to avoid infinite intermediate results
    never = chosen.min
    return tp.where(positive, tp.log(tp.where(positive, weights, 1.0)), never)
