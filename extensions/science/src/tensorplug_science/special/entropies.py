"""Logarithms of probabilities and odds, and sinc. They live in ``tensorplug.special``.

They are composed of ops. The branch that a ``where`` does not choose computes with harmless
numbers, so that gradients have no NaN.
"""

from __future__ import annotations

from math import inf, pi
from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug.algorithms import polynomial
from tensorplug.plugin import kinds

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["entr", "logit", "sinc", "xlog1py", "xlogy"]


def logit(p: ArrayLike, /) -> Tensor:
    """Return ``ln(p / (1 - p))`` elementwise, also accurate around 1/2.

    It is -inf at 0, inf at 1, and NaN outside. Integers become the default float first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: SciPy's logit.

    Examples:
        >>> tp.special.logit([0.5, 0.75]).numpy().round(4)  # 0 and ln(3)
        array([0.    , 1.0986], dtype=float32)
        >>> tp.special.logit([0.0, 1.0, 2.0])
        Tensor([-inf,  inf,  nan], dtype=float32, device='cpu')

    """
    return kinds.compute("logit", _logit, p=p)


def _logit(p: Tensor) -> Tensor:
    middle = tp.abs(p - 0.5) < 0.25
    near = 2.0 * tp.atanh(2.0 * (tp.where(middle, p, 0.5) - 0.5))
    other = tp.where(middle, 0.5, p)
    return tp.where(middle, near, tp.log(other) - tp.log1p(-other))


def xlogy(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """Return ``x * ln(y)``, and 0 where ``x`` is 0, unless ``y`` is NaN; the arguments broadcast.

    Where ``x`` is 0 and ``ln(y)`` is not finite, both gradients are 0.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers or strings.

    Source: SciPy's xlogy.

    Examples:
        >>> tp.special.xlogy(0.0, 0.0)
        Tensor(0., dtype=float32, device='cpu')
        >>> tp.special.xlogy([1.0, 2.0], [2.0, 2.0]).numpy().round(4)
        array([0.6931, 1.3863], dtype=float32)

    """
    return kinds.compute("xlogy", lambda x, y: _x_times(tp.log, x, y, 0.0), x=x, y=y)


def xlog1py(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    """Return ``x * ln(1 + y)``, and 0 where x is 0, unless y is NaN; the arguments broadcast.

    Where ``x`` is 0 and ``ln(1 + y)`` is not finite, both gradients are 0.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers or strings.

    Source: SciPy's xlog1py.

    Examples:
        >>> tp.special.xlog1py(0.0, -1.0)
        Tensor(0., dtype=float32, device='cpu')
        >>> f"{tp.special.xlog1py(2.0, 1e-9):.2e}"  # in float32, 1 + 1e-9 is 1
        '2.00e-09'

    """
    return kinds.compute("xlog1py", lambda x, y: _x_times(tp.log1p, x, y, -1.0), x=x, y=y)


def _x_times(function: Any, x: Tensor, y: Tensor, pole: float) -> Tensor:
    ordinary = ((y > pole) & (y < inf)) | tp.isnan(y)
    result: Tensor = x * function(tp.where((x == 0.0) & ~ordinary, pole + 1.0, y))
    return result


def entr(x: ArrayLike, /) -> Tensor:
    """Return ``-x * ln(x)`` elementwise: 0 at 0, -inf below.

    Its gradient at 0 is 0, like that of ``xlogy``, though the slope is infinite there. Integers
    become the default float first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: SciPy's entr.

    Examples:
        >>> tp.special.entr([0.0, 0.5]).numpy().round(4)
        array([0.    , 0.3466], dtype=float32)
        >>> p = tp.asarray([0.25, 0.25, 0.5, 0.0])
        >>> round(float(tp.sum(tp.special.entr(p)) / np.log(2)), 4)  # bits of entropy
        1.5

    """
    return kinds.compute("entr", _entr, x=x)


def _entr(x: Tensor) -> Tensor:
    inside = tp.where(x <= 0.0, 1.0, x)
    return tp.where(x < 0.0, -inf, tp.where(x == 0.0, 0.0, -inside * tp.log(inside)))


_SERIES: Final = (  # of sin(u) / u for u**2
    1.0,
    -1.0 / 6.0,
    1.0 / 120.0,
    -1.0 / 5040.0,
    1.0 / 362880.0,
    -1.0 / 39916800.0,
    1.0 / 6227020800.0,
    -1.0 / 1307674368000.0,
    1.0 / 355687428096000.0,
)
_NEAR: Final = 0.25


def sinc(x: ArrayLike, /) -> Tensor:
    """Return ``sin(pi * x) / (pi * x)`` elementwise, and 1 at 0.

    At other whole numbers it is exactly 0. Integers become the default float first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: NumPy's sinc.

    Examples:
        >>> tp.special.sinc([0.0, 0.5, 1.5]).numpy().round(4)
        array([ 1.    ,  0.6366, -0.2122], dtype=float32)
        >>> bool(tp.special.sinc(3.0) == 0)
        True

    """
    return kinds.compute("sinc", _sinc, x=x)


def _sinc(x: Tensor) -> Tensor:
    near = tp.abs(x) < _NEAR
    angle = tp.where(near, x, 0.0) * pi
    size = tp.where(near, _NEAR, tp.abs(x))
    bounded = tp.where(size < inf, size, 0.5)
    whole = tp.floor(bounded + 0.5)
    sign = 1.0 - 2.0 * (whole - 2.0 * tp.floor(whole * 0.5))
    far = sign * tp.sin((bounded - whole) * pi) / (size * pi)
    return tp.where(near, polynomial(_SERIES, angle * angle), far)
