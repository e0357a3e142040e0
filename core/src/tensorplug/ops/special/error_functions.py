"""Error functions, and the normal distribution function. They live in ``tensorplug.special``."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import dispatch_unary
from tensorplug.ops.elementwise import unary
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.powers import log1p
from tensorplug.ops.elementwise.unary import log
from tensorplug.ops.kinds import compute
from tensorplug.ops.special.normal_formulas import exp_minus_half_square
from tensorplug.ops.special.tensor_functions import FUNCTIONS

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["erfc", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"]

ERFC = KernelSpec(
    "Erfc",
    ("x",),
    inference.same,
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,
    expression="erfc",
)
ERFCX = KernelSpec(
    "Erfcx",
    ("x",),
    inference.same,
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,
    elementwise=True,
)
ERFINV = KernelSpec(
    "Erfinv",
    ("x",),
    inference.same,
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,
    elementwise=True,
)
NDTRI = KernelSpec(
    "Ndtri",
    ("x",),
    inference.same,
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,
    elementwise=True,
)

_ROOT_HALF: Final = sqrt(0.5)


def erfc(x: ArrayLike, /) -> Tensor:
    """Return ``1 - erf(x)`` elementwise, also accurate where it is small.

    Integers become the default float first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: DLMF 7.2.2.

    Examples:
        >>> tp.special.erfc([-np.inf, 0.0, 0.5]).numpy().round(4)
        array([2.    , 1.    , 0.4795], dtype=float32)
        >>> f"{tp.special.erfc(5.0):.4e}"  # 1 - erf(5) is 0 in float32
        '1.5375e-12'

    """
    return dispatch_unary(ERFC, x)


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
    return dispatch_unary(ERFCX, x)


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
    return dispatch_unary(ERFINV, x)


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
    return dispatch_unary(NDTRI, p)


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
    return compute("ndtr", _ndtr, x=x)


def _ndtr(x: Tensor) -> Tensor:
    middle = unary.abs(x) < 1.0
    near = 0.5 * erfc(where(middle, x, 0.0) * -_ROOT_HALF)  # |x| has no slope at 0
    far = where(middle, 1.0, x)
    below = 0.5 * exp_minus_half_square(FUNCTIONS, far) * erfcx(unary.abs(far) * _ROOT_HALF)
    return where(middle, near, where(x < 0.0, below, 1.0 - below))


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
    return compute("log_ndtr", _log_ndtr, x=x)


def _log_ndtr(x: Tensor) -> Tensor:
    tail = x < -1.0
    low = where(tail, x, -1.0)  # keeps NaN out of the formula that is not chosen
    high = where(tail, 0.0, x)
    far = log(0.5 * erfcx(low * -_ROOT_HALF)) - 0.5 * (low * low)
    return where(tail, far, log1p(-_ndtr(-high)))
