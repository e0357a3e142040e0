"""Error functions, and the normal distribution function. They live in ``tensorplug.special``."""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING, Final

import tensorplug as tp
from tensorplug.plugin import dispatch, kinds
from tensorplug_science.special.normal_formulas import exp_minus_half_square
from tensorplug_science.special.specs import ERFCX, ERFINV, NDTRI
from tensorplug_science.special.tensor_functions import FUNCTIONS

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"]

_ROOT_HALF: Final = sqrt(0.5)


def erfcx(x: ArrayLike, /) -> Tensor:
    """Return ``exp(x**2) * erfc(x)`` elementwise; it does not underflow where erfc does.

    For large x it approaches ``1 / (x * sqrt(pi))``. Integers become the default float first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: SciPy's erfcx.

    Examples:
        >>> tp.special.erfcx([0.0, 1.0]).numpy().round(4)
        array([1.    , 0.4276], dtype=float32)
        >>> round(float(tp.special.erfcx(100.0)), 6)
        0.005642

    """
    return dispatch(ERFCX, x)


def erfinv(x: ArrayLike, /) -> Tensor:
    """Return y with ``erf(y) = x`` elementwise: infinite at -1 and 1, NaN outside.

    Integers become the default float first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: DLMF 7.17.1.

    Examples:
        >>> tp.special.erfinv([0.0, 0.5, 1.0]).numpy().round(4)
        array([0.    , 0.4769,    inf], dtype=float32)

    """
    return dispatch(ERFINV, x)


def ndtri(p: ArrayLike, /) -> Tensor:
    """Return x with ``ndtr(x) = p`` elementwise: the quantiles of the normal distribution.

    It is -inf at 0, inf at 1, and NaN outside. Integers become the default float first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: SciPy's ndtri.

    Examples:
        >>> tp.special.ndtri([0.5, 0.975, 0.0]).numpy().round(4)
        array([0.  , 1.96, -inf], dtype=float32)

    """
    return dispatch(NDTRI, p)


def ndtr(x: ArrayLike, /) -> Tensor:
    """Return the probability that a standard normal variable is below ``x``, elementwise.

    It is ``erfc(-x / sqrt(2)) / 2``, also accurate where it is small. Integers become the default
    float first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: SciPy's ndtr.

    Examples:
        >>> tp.special.ndtr([0.0, 1.959964, np.inf]).numpy().round(4)
        array([0.5  , 0.975, 1.   ], dtype=float32)
        >>> f"{tp.special.ndtr(-10.0):.4e}"
        '7.6199e-24'

    """
    return kinds.compute("ndtr", _ndtr, x=x)


def _ndtr(x: Tensor) -> Tensor:
    middle = tp.abs(x) < 1.0
    near = 0.5 * tp.special.erfc(tp.where(middle, x, 0.0) * -_ROOT_HALF)  # |x| has no slope at 0
    far = tp.where(middle, 1.0, x)
    below = 0.5 * exp_minus_half_square(FUNCTIONS, far) * erfcx(tp.abs(far) * _ROOT_HALF)
    return tp.where(middle, near, tp.where(x < 0.0, below, 1.0 - below))


def log_ndtr(x: ArrayLike, /) -> Tensor:
    """Return the logarithm of ``ndtr(x)`` elementwise, finite where ``ndtr`` underflows.

    Integers become the default float first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: SciPy's log_ndtr.

    Examples:
        >>> tp.special.log_ndtr([0.0]).numpy().round(4)
        array([-0.6931], dtype=float32)
        >>> round(float(tp.special.log_ndtr(-100.0)), 2)  # ndtr underflows
        -5005.52

    """
    return kinds.compute("log_ndtr", _log_ndtr, x=x)


def _log_ndtr(x: Tensor) -> Tensor:
    tail = x < -1.0
    low = tp.where(tail, x, -1.0)  # keeps NaN out of the formula that is not chosen
    high = tp.where(tail, 0.0, x)
    finite = tp.where(low == -inf, -1.0, low)  # at -inf the square, and its slope, are all
    far = tp.log(0.5 * erfcx(finite * -_ROOT_HALF)) - 0.5 * (low * low)
    return tp.where(tail, far, tp.log1p(-_ndtr(-high)))
