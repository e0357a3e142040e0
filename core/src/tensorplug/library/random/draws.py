"""Draws from distributions that have kernels, and the arguments of all draws.

The functions live in ``tensorplug.random``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug.algorithms import draw, drawing, random_words
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.plugin import arguments, as_key, as_tensor, host_values, shapes, specs
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Tensor
    from tensorplug.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike

__all__ = ["exponential", "integers", "normal", "uniform"]


def uniform(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    low: ArrayLike = 0.0,
    high: ArrayLike = 1.0,
) -> Tensor:
    """Return numbers drawn uniformly from [low, high).

    Args:
        key: a key.
        shape: of the result; by default the broadcast shape of ``low`` and ``high``.
        dtype: a floating dtype; by default that of ``low`` and ``high`` if they are floating
            tensors, else float32.
        low: a number or a tensor that broadcasts to ``shape``.
        high: likewise. If it is not above ``low``, the result is ``low``.

    Returns:
        ``low + u * (high - low)`` for u in [0, 1) in steps of 2**-24 (2**-53 for float64, 2**-11
        for float16). If it rounds to ``high``, it is ``low``. It is differentiable in ``low`` and
        ``high``. u has the same bits on all backends, and so does the result if sums and products
        follow IEEE 754.

    Raises:
        ArgumentError: ``key`` is not a key; or ``low`` and ``high`` are numbers in the wrong
            order, or they or their difference are not finite.
        ShapeError, DTypeError: an argument has a wrong shape or dtype.

    Source: NumPy's Generator.uniform.

    Examples:
        >>> key = tp.random.key(0)
        >>> tp.random.uniform(key, (4,)).numpy().round(4)
        array([0.399 , 0.8805, 0.7357, 0.6055], dtype=float32)
        >>> tp.random.uniform(key, (2, 2)).numpy().round(4)  # the same numbers in another shape
        array([[0.399 , 0.8805],
               [0.7357, 0.6055]], dtype=float32)
        >>> tp.random.uniform(key, low=[0.0, 10.0], high=[1.0, 20.0]).numpy().round(4)
        array([ 0.399 , 18.8052], dtype=float32)

    """
    checked = as_key(key, "uniform")
    sizes, chosen, (below, above) = drawing.parameters("uniform", shape, dtype, low=low, high=high)
    if host_values.is_scalar(below) and host_values.is_scalar(above):
        _check_ends(below, above, chosen)
    u = draw(specs.RANDOM_UNIFORM, checked, shape=sizes, dtype=chosen)
    if drawing.is_number(below, 0) and drawing.is_number(above, 1):
        return u
    x = below + u * (above - below)
    return tp.where(tp.less(x, above), x, below)


def _check_ends(low: float, high: float, dtype: DType) -> None:
    low, high = arguments.real(low, "uniform: low"), arguments.real(high, "uniform: high")
    with np.errstate(over="ignore"):  # numbers that are too large become infinite and are rejected
        reach = np.array([low, high, high - low]).astype(dtype.numpy)
    if not low <= high or not np.isfinite(reach).all():
        raise ArgumentError(
            f"uniform: low must not be above high, and both and their difference must be finite "
            f"in {dtype}, got {arguments.quoted(low)} and {high!r}"
        )


def normal(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
) -> Tensor:
    """Return numbers drawn from the normal distribution of mean ``loc`` and deviation ``scale``.

    Args:
        key: a key.
        shape: of the result; by default the broadcast shape of ``loc`` and ``scale``.
        dtype: a floating dtype; by default that of ``loc`` and ``scale`` if they are floating
            tensors, else float32.
        loc: a number or a tensor that broadcasts to ``shape``.
        scale: likewise.

    Returns:
        ``loc + z * scale``, differentiable in both. Every z is accurate to 2 units in the last
        place, and has the same bits on all backends whose sums, products, quotients and square
        roots follow IEEE 754. ``|z|`` is at most 6.7 (8.6 for float64), and never 0.

    Raises:
        ArgumentError, ShapeError, DTypeError: an argument has a wrong shape or dtype.

    Source: NumPy's Generator.normal.

    Examples:
        >>> key = tp.random.key(0)
        >>> tp.random.normal(key, (4,)).numpy().round(4)
        array([-0.047 , -1.3547,  0.4821,  0.6176], dtype=float32)
        >>> tp.random.normal(key, loc=[0.0, 100.0]).numpy().round(4)
        array([-4.70000e-02,  9.86453e+01], dtype=float32)
        >>> x = tp.random.normal(key, (10000,), loc=5.0, scale=2.0)
        >>> round(float(tp.mean(x)), 1), round(float(tp.std(x)), 1)
        (5.0, 2.0)

    """
    checked = as_key(key, "normal")
    sizes, chosen, (mean, deviation) = drawing.parameters(
        "normal", shape, dtype, loc=loc, scale=scale
    )
    z = draw(specs.RANDOM_NORMAL, checked, shape=sizes, dtype=chosen)
    return drawing.shift_and_scale(z, mean, deviation)


def exponential(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    scale: ArrayLike = 1.0,
) -> Tensor:
    """Return numbers drawn from the exponential distribution of mean ``scale``.

    Shape, dtype, accuracy and errors are as for ``normal``. The numbers are never 0 and at most
    22.2 times ``scale`` (36.8 times for float64).

    ``key``: from ``key`` or ``split``; ``shape``: of the result.

    Source: NumPy's Generator.exponential.

    Examples:
        >>> key = tp.random.key(0)
        >>> tp.random.exponential(key, (4,), scale=2.0).numpy().round(4)
        array([1.8374, 0.2545, 0.6138, 1.0035], dtype=float32)
        >>> round(float(tp.mean(tp.random.exponential(key, (10000,), scale=2.0))), 1)
        2.0

    """
    checked = as_key(key, "exponential")
    sizes, chosen, (mean,) = drawing.parameters("exponential", shape, dtype, scale=scale)
    x = draw(specs.RANDOM_EXPONENTIAL, checked, shape=sizes, dtype=chosen)
    return drawing.shift_and_scale(x, 0, mean)


def integers(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    low: ArrayLike = 0,
    high: ArrayLike,
) -> Tensor:
    """Return integers drawn uniformly from [low, high).

    Args:
        key: a key.
        shape: of the result; by default the broadcast shape of ``low`` and ``high``.
        dtype: an integer dtype; by default that of ``low`` and ``high`` if they are tensors, else
            int32.
        low: an integer, or an integer tensor that broadcasts to ``shape``.
        high: likewise.

    Returns:
        The same integers on every backend and, for Python numbers, in every dtype. The relative
        error of each probability is at most 2**-32. Tensors are not read: if ``high`` is not
        above ``low``, the result is any number of the dtype.

    Raises:
        ArgumentError: ``key`` is not a key; or ``low`` and ``high`` are numbers, or lists of
            them, in the wrong order, or do not fit ``dtype``.
        ShapeError, DTypeError: the shapes do not broadcast, or an argument is not an integer.

    Source: NumPy's Generator.integers.

    Examples:
        >>> dice = tp.random.integers(tp.random.key(0), (6,), low=1, high=7)
        >>> dice
        Tensor([6, 4, 3, 1, 2, 2], dtype=int32, device='cpu')
        >>> tp.random.integers(tp.random.key(0), high=[2, 10, 100])  # in [0, 2), [0, 10), [0, 100)
        Tensor([ 1,  6, 36], dtype=int32, device='cpu')

    """
    checked = as_key(key, "integers")
    _check_order(low, high)
    first, last = _read_integer(low, "integers: low"), _read_integer(high, "integers: high")
    tensors = [bound for bound in (first, last) if not isinstance(bound, int)]
    chosen = _choose_integer_dtype(dtype, tensors)
    sizes = drawing.fit_shape("integers", shape, [tensor.shape for tensor in tensors])
    span = (
        _compute_span(first, last, chosen, checked.dtype)
        if tensors
        else _compute_span_of_numbers(first, last, chosen, checked.dtype)
    )
    if span.shape not in ((), sizes):
        span = tp.broadcast_to(span, sizes)
    drawn = random_words.widened(draw(specs.RANDOM_INTEGERS, checked, span, shape=sizes), chosen)
    if drawing.is_number(first, 0):
        return drawn
    return drawn + (first if isinstance(first, int) else tp.astype(first, chosen))


def _check_order(low: Any, high: Any) -> None:
    """Refuse arrays of bounds in the wrong order.

    Tensors are not read. Two numbers are compared where their span is computed.
    """
    alone = host_values.is_scalar(low) and host_values.is_scalar(high)
    if not alone and _holds_numbers(low) and _holds_numbers(high):
        try:
            ordered = bool(np.all(np.less(low, high)))
        except (TypeError, ValueError):
            return  # what is wrong with them is said where they are read
        if not ordered:
            raise ArgumentError(
                f"integers: low must be below high, "
                f"got {arguments.quoted(low)} and {arguments.quoted(high)}"
            )


def _holds_numbers(bound: Any) -> bool:
    """Return whether a bound can be compared without reading a tensor."""
    if isinstance(bound, list | tuple):
        return all(map(host_values.is_scalar, bound))
    return isinstance(bound, np.ndarray) or host_values.is_scalar(bound)


def _read_integer(value: Any, what: str) -> Any:
    """Return an integer as a Python one, anything else as a tensor of integers."""
    if host_values.is_scalar(value):
        # The end of uint64's range is one beyond what a tensor can hold.
        return value if type(value) is int and value == 2**64 else shapes.index(value, what)
    tensor = as_tensor(value, what=what)
    if tensor.dtype not in dt.INTEGER:
        raise DTypeError(f"{what} must hold integers, got {tensor.type}")
    return tensor


def _choose_integer_dtype(dtype: Any, tensors: list[Tensor]) -> DType:
    if dtype is None:
        return dt.promote(tensor.dtype for tensor in tensors) if tensors else dt.default_int
    chosen = dt.of(dtype, "integers")
    if chosen not in dt.INTEGER:
        raise DTypeError(f"integers: dtype must be an integer dtype, got {chosen}")
    return chosen


def _compute_span_of_numbers(low: int, high: int, dtype: DType, word: DType) -> Tensor:
    """Return the number of integers, in ``word``, or in 64 bits if 32 do not suffice."""
    if not low < high:
        raise ArgumentError(f"integers: low must be below high, got {low} and {high}")
    least, most = dtype.min, dtype.max
    if low < least or high > most + 1:
        raise ArgumentError(f"integers: [{low}, {high}) does not fit into {dtype}")
    unsigned = word if high - low <= 1 << 32 else dt.uint64
    return _wrap(high - low, unsigned)


def _compute_span(low: Any, high: Any, dtype: DType, word: DType) -> Tensor:
    unsigned = dt.uint64 if dtype.itemsize == 8 else word
    first, last = (
        _wrap(bound, unsigned) if isinstance(bound, int) else tp.astype(bound, unsigned)
        for bound in (low, high)
    )
    return last - first


def _wrap(number: int, dtype: DType) -> Tensor:
    wrapped = np.array(number % (1 << 8 * dtype.itemsize), np.uint64)
    return as_tensor(wrapped.astype(dtype.numpy))
