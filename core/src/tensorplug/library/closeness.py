"""Comparison within a tolerance, and of whole tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.plugin import arguments, as_tensor, kinds
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike, TensorLike

__all__ = ["allclose", "array_equal", "isclose"]

_UNSIGNED = {dtype.itemsize: dtype for dtype in dt.UNSIGNED}


def isclose(
    a: ArrayLike,
    b: ArrayLike,
    /,
    rtol: ArrayLike = 1e-5,
    atol: ArrayLike = 1e-8,
    *,
    equal_nan: bool = False,
) -> Tensor:
    """Return whether ``|a - b| <= atol + rtol * |b|`` elementwise, with broadcasting.

    Infinities are close only to themselves; NaN is close to nothing, unless ``equal_nan``. For
    integers, differences are exact, and the tolerance is computed in float32. float16 is computed
    in float32.

    Args:
        a: numbers or booleans.
        b: likewise; the tolerance is relative to it.
        rtol: the relative tolerance, a number or a tensor that broadcasts.
        atol: the absolute tolerance, likewise.
        equal_nan: whether NaN is close to NaN.

    Returns:
        Booleans of the broadcast shape.

    Raises:
        DTypeError: strings, or complex tolerances.
        ShapeError: the shapes do not broadcast.

    Source: NumPy's isclose.

    Examples:
        >>> tp.isclose([1.0, 2.0], [1.000001, 2.1])
        Tensor([ True, False], dtype=bool, device='cpu')
        >>> tp.isclose([100.0, 100.0], [101.0, 103.0], rtol=0.02)
        Tensor([ True, False], dtype=bool, device='cpu')
        >>> tp.isclose([0.0, np.nan, np.inf], [1e-9, np.nan, np.inf])
        Tensor([ True, False,  True], dtype=bool, device='cpu')

    """
    return _compare(a, b, rtol, atol, "isclose", equal_nan=equal_nan)


def allclose(
    a: ArrayLike,
    b: ArrayLike,
    /,
    rtol: ArrayLike = 1e-5,
    atol: ArrayLike = 1e-8,
    *,
    equal_nan: bool = False,
) -> Tensor:
    """Return whether all elements are close: ``all(isclose(a, b))``, a boolean of rank 0.

    Arguments and errors are those of ``isclose``.

    ``rtol``: the relative tolerance; ``atol``: the absolute one; ``equal_nan``: whether NaN is
    close to NaN.

    Source: NumPy's allclose.

    Examples:
        >>> tp.allclose([1.0, 2.0], [1.000001, 2.0])
        Tensor(True, dtype=bool, device='cpu')
        >>> bool(tp.allclose([1.0, np.nan], [1.0, np.nan]))
        False
        >>> bool(tp.allclose([1.0, np.nan], [1.0, np.nan], equal_nan=True))
        True

    """
    return tp.all(_compare(a, b, rtol, atol, "allclose", equal_nan=equal_nan))


def array_equal(a: TensorLike, b: TensorLike, /, *, equal_nan: bool = False) -> Tensor:
    """Return whether ``a`` and ``b`` have the same shape and elements, a boolean of rank 0.

    Args:
        a: a tensor of any dtype.
        b: likewise; numbers are compared after promotion.
        equal_nan: whether NaN equals NaN.

    Raises:
        DTypeError: only one of them holds strings.

    Source: NumPy's array_equal.

    Examples:
        >>> tp.array_equal([1, 2], [1.0, 2.0])
        Tensor(True, dtype=bool, device='cpu')
        >>> bool(tp.array_equal([1, 1], 1))  # shapes do not broadcast
        False
        >>> bool(tp.array_equal([np.nan], [np.nan], equal_nan=True))
        True

    """
    arguments.flag(equal_nan, "array_equal: equal_nan")
    left, right = as_tensor(a, what="array_equal: a"), as_tensor(b, what="array_equal: b")
    if left.shape != right.shape:
        return tp.full((), fill_value=False)
    same = tp.equal(left, right)
    if equal_nan and left.dtype in dt.INEXACT and right.dtype in dt.INEXACT:
        same = tp.logical_or(same, tp.logical_and(tp.isnan(left), tp.isnan(right)))
    return tp.all(same)


def _read_tolerance(value: Any, what: str) -> Any:
    """Return a Python number, which takes the dtype of the operands, or a tensor."""
    number = dt.as_number(value)
    if isinstance(number, int | float) and not isinstance(number, bool):
        return arguments.real(number, what)
    return kinds.real(value, what)


def _compare(a: Any, b: Any, rtol: Any, atol: Any, caller: str, *, equal_nan: bool) -> Tensor:
    arguments.flag(equal_nan, f"{caller}: equal_nan")
    left, right = kinds.numbers(a, f"{caller}: a"), kinds.numbers(b, f"{caller}: b")
    relative = _read_tolerance(rtol, f"{caller}: rtol")
    absolute = _read_tolerance(atol, f"{caller}: atol")
    left, right = _widen(left), _widen(right)
    same = tp.equal(left, right)
    distance = _measure(left, right)
    size = tp.abs(right if right.dtype in dt.INEXACT else tp.astype(right, dt.default_float))
    close = tp.less_equal(distance, absolute + relative * size)
    close = tp.logical_or(tp.logical_and(close, tp.isfinite(right)), same)
    if equal_nan and left.dtype in dt.INEXACT and right.dtype in dt.INEXACT:
        close = tp.logical_or(close, tp.logical_and(tp.isnan(left), tp.isnan(right)))
    return close


def _widen(x: Tensor) -> Tensor:
    """Return integers for booleans, and wider floats for those in which differences overflow."""
    return tp.astype(x, dt.uint8 if x.dtype is dt.bool_ else x.dtype.compute, copy=False)


def _measure(a: Tensor, b: Tensor) -> Tensor:
    """Return ``|a - b|``. The differences of integers wrap around, but fit if unsigned."""
    if a.dtype in dt.INEXACT or b.dtype in dt.INEXACT:
        return tp.abs(a - b)
    wrapped = tp.maximum(a, b) - tp.minimum(a, b)
    return tp.astype(tp.astype(wrapped, _UNSIGNED[wrapped.dtype.itemsize]), dt.default_float)
