"""The gamma function's logarithm and its derivatives, the beta and zeta functions.

The functions live in ``tensorplug.special``.
"""

from __future__ import annotations

from math import factorial, inf, nan
from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.plugin import as_tensor, dispatch, host_values, kinds, shapes
from tensorplug.plugin import dtypes as dt
from tensorplug_science.special.gamma_formulas import BERNOULLI, stirling_remainder
from tensorplug_science.special.specs import DIGAMMA, LGAMMA, POLYGAMMA

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["beta", "betaln", "digamma", "gammaln", "polygamma", "zeta"]


def gammaln(x: ArrayLike, /) -> Tensor:
    """Return ``ln |gamma(x)|`` elementwise. Integers become the default float first.

    It is infinite at 0, -1, -2, ... and at both infinities. Its gradient is ``digamma``.

    Raises:
        DTypeError: complex numbers or strings.

    Source: NIST's Digital Library of Mathematical Functions (DLMF), chapter 5. SciPy has the same
    name, others ``lgamma``.

    Examples:
        >>> tp.special.gammaln([0.5, 5.0]).numpy().round(4)  # ln(sqrt(pi)) and ln(24)
        array([0.5724, 3.1781], dtype=float32)
        >>> tp.special.gammaln([0.0, -1.0])
        Tensor([inf, inf], dtype=float32, device='cpu')

    """
    return dispatch(LGAMMA, x)


def digamma(x: ArrayLike, /) -> Tensor:
    """Return the derivative of ``gammaln`` elementwise. Integers become the default float first.

    It is -inf at 0, inf at -0.0, and NaN at -1, -2, ..., where its sign changes.

    ``x``: numbers of any shape.

    Raises:
        DTypeError: complex numbers or strings.

    Source: DLMF 5.2.2.

    Examples:
        >>> tp.special.digamma([1.0, 2.0]).numpy().round(4)  # Euler's constant: 0.5772
        array([-0.5772,  0.4228], dtype=float32)

    """
    return dispatch(DIGAMMA, x)


def polygamma(n: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Return the n-th derivative of ``digamma`` elementwise.

    Args:
        n: a whole number from 0 to 163; 0 is ``digamma`` itself. A tensor, array or list of
            integers broadcasts against ``x``; it is promoted to a float, and has no gradient.
        x: a tensor; integers become the default float first.

    Returns:
        A floating tensor. At 0, -1, -2, ... it is the limit from above: inf for an odd ``n``,
        -inf for an even one. It is NaN where a tensor ``n`` is negative.

    Raises:
        ArgumentError: ``n`` is not a whole number, is negative, or is above 163.
        DTypeError: a tensor ``n`` does not hold integers.

    Source: DLMF 5.15.1, and 25.11.1 for a tensor ``n``.

    Examples:
        >>> tp.special.polygamma(1, [1.0]).numpy().round(4)  # pi**2 / 6
        array([1.6449], dtype=float32)
        >>> tp.special.polygamma([0, 1, 2], 1.0).numpy().round(4)
        array([-0.5772,  1.6449, -2.4041], dtype=float32)

    """
    if not host_values.is_scalar(n) and (hasattr(n, "shape") or isinstance(n, (list, tuple))):
        return _polygamma_of_orders(n, x)
    order = shapes.index(n, "polygamma: n")
    if order < 0:
        raise ArgumentError(f"polygamma: n must be at least 0, got {order}")
    return dispatch(POLYGAMMA, x, n=order) if order else digamma(x)


def _polygamma_of_orders(n: Any, x: Any) -> Tensor:
    orders = as_tensor(n, what="polygamma: n")
    if orders.dtype not in dt.INTEGER:
        raise DTypeError(f"polygamma: n must hold integers, got {orders.type}")
    return kinds.compute("polygamma", _polygamma, n=orders, x=x)


def _polygamma(n: Tensor, x: Tensor) -> Tensor:
    possible = n > 0.0
    s = tp.where(possible, n, 1.0) + 1.0
    # n! as a power of s within the sum, where it cannot overflow.
    unit = tp.exp(gammaln(s) / s)
    odd = _is_odd(s) == 1.0
    mirrored = x < 0.0
    # The sum over all whole k of (x + k)**-s, less those terms for which x + k is beyond x.
    right = _scaled_zeta(s, tp.where(mirrored, 1.0 - x, x), unit)
    part = tp.where(mirrored, x - tp.floor(x), 0.5)
    above, below = _scaled_zeta(s, part, unit), _scaled_zeta(s, 1.0 - part, unit)
    below = tp.where(below == inf, inf, below - right)
    signed = tp.where(odd, -below, below)
    # Of two that overflow, the one nearer to its pole decides; at a pole, the one above it.
    left = tp.where((below == inf) & (part > 0.5), signed, above + signed)
    left = tp.where((above == inf) & (part < 0.5), above, left)
    total = tp.where(mirrored, left, right)
    found = tp.where(odd, -total, total)
    return tp.where(possible, found, tp.where(n == 0.0, digamma(x), nan))


def betaln(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``gammaln(a) + gammaln(b) - gammaln(a + b)``, which broadcasts.

    For positive arguments it loses no digits to cancellation where one or both are large. Where
    one argument is 0, -1, -2, ... it is inf, unless the other is a whole number and the poles of
    two gammas cancel: then it is the limit for that number. From 1 - 2**31 down, it is always
    inf, as in SciPy. Where only ``a + b`` is at a pole, it is -inf.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers or strings.

    Source: A. R. DiDonato and A. H. Morris, "Algorithm 708", ACM TOMS 18, 1992, for the
    rearrangement of Stirling's formula.

    Examples:
        >>> round(float(tp.special.betaln(2.0, 3.0)), 4)  # ln(1 / 12)
        -2.4849

    """
    return kinds.compute("betaln", _betaln, a=a, b=b)


# From here on Stirling's formula is used.
_FAR: Final = 8.0
_HALF_LOG_2_PI: Final = 0.9189385332046727


def _betaln(a: Tensor, b: Tensor) -> Tensor:
    low, high = tp.minimum(a, b), tp.maximum(a, b)
    # gamma(low) / gamma(low + high) has a limit: that of B(1 - low - high, high), up to sign.
    cancel = _poles_cancel(low, high)
    low = tp.where(cancel, 1.0 - low - tp.floor(high), low)
    high = tp.where(
        cancel, tp.floor(high), high
    )  # floor: whole numbers have no neighbours, no slope
    low, high = tp.minimum(low, high), tp.maximum(low, high)
    total = low + high
    endless = high == inf
    far = (high >= _FAR) & ~endless
    x = tp.where(far, high, _FAR)  # keeps NaN out of the formula that is not chosen
    y = tp.where(far & (low > 0.0), low, _FAR)
    ratio = y / x
    bend = tp.log1p(ratio)
    rest = stirling_remainder(x) - stirling_remainder(x + y)
    one_far = gammaln(y) - (x - 0.5) * bend - y * (tp.log(x + y) - 1.0) + rest
    z = tp.where(y >= _FAR, y, _FAR)
    share = tp.log(ratio) - bend
    both_far = _HALF_LOG_2_PI - 0.5 * tp.log(x) + (z - 0.5) * share - x * bend
    both_far = both_far + (rest + stirling_remainder(z))
    chosen = tp.where(y >= _FAR, both_far, one_far)
    near = far & (low > 0.0)
    # Where gamma(low) or high is infinite, so is the sum, whatever gamma(low + high) is.
    p, q = tp.where(near, 1.0, low), tp.where(near, 1.0, high)
    s = tp.where(near | endless | _is_pole(low), 1.0, total)
    other = gammaln(p) + gammaln(q) - gammaln(s)
    return tp.where(near, chosen, tp.where(endless & (low > 0.0), -inf, other))


def _is_pole(x: Tensor) -> Tensor:
    return (tp.floor(x) == x) & (x <= 0.0)


def _poles_cancel(low: Tensor, high: Tensor) -> Tensor:
    """Return whether ``gamma(low)`` and ``gamma(low + high)`` have poles, but not ``gamma(high)``.

    Beyond -2**31, SciPy's limit, numbers stand for their neighbours, and it is False.
    """
    whole = _is_pole(low) & (high > 0.0) & (tp.floor(high) == high)
    return whole & (low + high <= 0.0) & (low > 1.0 - 2.0**31)


def beta(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``gamma(a) * gamma(b) / gamma(a + b)``, which broadcasts.

    It is the exponential of ``betaln(a, b)``, so its relative error grows with ``|betaln(a, b)|``.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers or strings.

    Source: DLMF 5.12.1.

    Examples:
        >>> round(float(tp.special.beta(2.0, 3.0)), 4)  # 1 / 12
        0.0833

    """
    return kinds.compute("beta", _beta, a=a, b=b)


def _beta(a: Tensor, b: Tensor) -> Tensor:
    low, high = tp.minimum(a, b), tp.maximum(a, b)
    # Of the two signs that cancel, (-1)**high is left.
    cancel = _poles_cancel(low, high)
    sign = tp.where(cancel, 1.0 - 2.0 * _is_odd(high), _sign(a) * _sign(b))
    total = low + high
    return tp.exp(_betaln(a, b)) * tp.where(_is_pole(total), sign, sign * _sign(total))


def _sign(x: Tensor) -> Tensor:
    """Return the sign of ``gamma(x)``: NaN at its poles."""
    return tp.where(x > 0.0, 1.0, tp.where(_is_pole(x), nan, 1.0 - 2.0 * _is_odd(tp.floor(x))))


def _is_odd(whole: Tensor) -> Tensor:
    """Return 1 for odd numbers, 0 for even ones."""
    return whole - 2.0 * tp.floor(whole * 0.5)


def zeta(s: ArrayLike, q: ArrayLike = 1.0, /) -> Tensor:
    """Return the Hurwitz zeta function, the sum of ``(q + k) ** -s`` for k = 0, 1, ...

    With ``q = 1`` it is the Riemann zeta function. The arguments broadcast.

    Args:
        s: the exponent: the result is inf at 1 and NaN below, where the sum has no value.
        q: the first number: the result is inf at 0, -1, ... and NaN at other negative numbers.

    Returns:
        A floating tensor, differentiable in both.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers or strings.

    Source: DLMF 25.11.28, the Euler-Maclaurin formula.

    Examples:
        >>> round(float(tp.special.zeta(2.0)), 4)  # pi**2 / 6
        1.6449
        >>> round(float(tp.special.zeta(2.0, 2.0)), 4)  # without its first term, 1
        0.6449
        >>> tp.special.zeta([1.0, 0.5])
        Tensor([inf, nan], dtype=float32, device='cpu')

    """
    return kinds.compute("zeta", _zeta, s=s, q=q)


_TERMS: Final = 10
_LAST: Final = 8


def _zeta(s: Tensor, q: Tensor) -> Tensor:
    return _scaled_zeta(s, q, 1.0)


def _scaled_zeta(s: Tensor, q: Tensor, unit: Tensor | float) -> Tensor:
    """Return ``unit**s * zeta(s, q)``; the sum of ``((q + k) / unit) ** -s``."""
    possible = (s > 1.0) & (q > 0.0) & (q < inf)
    exponent, first = tp.where(possible, s, 2.0), tp.where(possible, q, 1.0)
    a = first + float(_TERMS)
    power = (a / unit) ** -exponent
    # Beyond, the remainder is less than the rounding error of the first term.
    bounded = tp.minimum(exponent, 4.0 * a)
    inverse = 1.0 / a
    square = inverse * inverse
    nested: Any = 0.0
    for j in range(_LAST, 0, -1):
        weight = BERNOULLI[j - 1] / factorial(2 * j)
        step = (bounded + (2.0 * j - 1.0)) * (bounded + 2.0 * j) * square
        nested = weight + nested * step
    rest = a / (exponent - 1.0) + 0.5 + bounded * inverse * nested
    total = power * rest
    for k in reversed(range(_TERMS)):
        total = total + ((first + float(k)) / unit) ** -exponent
    whole = (q <= 0.0) & (tp.floor(q) == q)
    outside = tp.where((s == 1.0) | ((s > 1.0) & whole), inf, nan)
    return tp.where(possible, total, tp.where((s > 1.0) & (q == inf), 0.0, outside))
