"""The gamma function's logarithm and its derivatives, the beta and zeta functions.

The functions live in ``tensorplug.special``.
"""

from __future__ import annotations

from math import factorial, inf, nan
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import attributes, inference, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch, dispatch_unary
from tensorplug.errors import ArgumentError
from tensorplug.ops.elementwise import exp, floor, log, maximum, minimum, where
from tensorplug.ops.powers import log1p
from tensorplug.ops.special.arguments import compute
from tensorplug.ops.special.gamma_formulas import BERNOULLI, stirling_remainder

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["beta", "betaln", "digamma", "gammaln", "polygamma", "zeta"]

LGAMMA = KernelSpec(
    "Lgamma", ("x",), inference.same, accepts=dt.REAL, promote=("x",), inexact=True
)
DIGAMMA = KernelSpec(
    "Digamma", ("x",), inference.same, accepts=dt.REAL, promote=("x",), inexact=True
)


def _infer_polygamma(x: TensorType, *, n: int) -> TensorType:  # noqa: ARG001 - an attribute
    return x


POLYGAMMA = KernelSpec(
    "Polygamma",
    ("x",),
    _infer_polygamma,
    attributes={"n": attributes.integer(at_least=1)},
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,
)


def gammaln(x: Any, /) -> Tensor:
    """Return ``ln |gamma(x)|`` elementwise. Integers become the default float first.

    It is infinite at 0, -1, -2, ... and at both infinities. Its gradient is ``digamma``.

    Source: NIST's Digital Library of Mathematical Functions (DLMF), chapter 5. SciPy has the same
    name, others ``lgamma``.

    Examples:
        ``gammaln([0.5, 5.0])`` is ``[ln(sqrt(pi)), ln(24)]``, ``[0.572365, 3.178054]``.

    """
    return dispatch_unary(LGAMMA, x)


def digamma(x: Any, /) -> Tensor:
    """Return the derivative of ``gammaln`` elementwise. Integers become the default float first.

    It is -inf at 0, inf at -0.0, and NaN at -1, -2, ..., where its sign changes.

    Examples:
        ``digamma([1.0])`` is ``[-0.577216]``, Euler's constant with a minus sign.

    """
    return dispatch_unary(DIGAMMA, x)


def polygamma(n: int, x: Any, /) -> Tensor:
    """Return derivative number ``n`` of ``digamma`` elementwise.

    Args:
        n: a whole number, at least 0; 0 is ``digamma`` itself.
        x: a tensor; integers become the default float first.

    Returns:
        A tensor like ``x``. At 0 it is infinite; at -1, -2, ... it is inf for an odd ``n``, and
        NaN for an even one.

    Raises:
        ArgumentError: ``n`` is not a whole number, or negative.

    Examples:
        ``polygamma(1, [1.0])`` is ``[1.644934]``, pi**2 / 6.

    """
    order = shapes.index(n, "polygamma: n")
    if order < 0:
        raise ArgumentError(f"polygamma: n must be at least 0, got {order}")
    return dispatch(POLYGAMMA, x, n=order) if order else digamma(x)


def betaln(a: Any, b: Any, /) -> Tensor:
    """Return ``gammaln(a) + gammaln(b) - gammaln(a + b)``, which broadcasts.

    For positive arguments it loses no digits to cancellation where one or both are large.

    Source: A. R. DiDonato and A. H. Morris, "Algorithm 708", ACM TOMS 18, 1992, for the
    rearrangement of Stirling's formula.

    Examples:
        ``betaln(2.0, 3.0)`` is ``-2.484907``, ln(1 / 12).

    """
    return compute("betaln", _betaln, a=a, b=b)


# From here on Stirling's formula is used.
_FAR: Final = 8.0
_HALF_LOG_2_PI: Final = 0.9189385332046727


def _betaln(a: Tensor, b: Tensor) -> Tensor:
    low, high = minimum(a, b), maximum(a, b)
    total = a + b
    far = high >= _FAR
    x = where(far, high, _FAR)  # a formula that is not chosen gets what gives no NaN
    y = where(far & (low > 0.0), low, _FAR)
    ratio = y / x
    bend = log1p(ratio)
    rest = stirling_remainder(x) - stirling_remainder(x + y)
    one_far = gammaln(y) - (x - 0.5) * bend - y * (log(x + y) - 1.0) + rest
    z = where(y >= _FAR, y, _FAR)
    share = log(ratio) - bend
    both_far = _HALF_LOG_2_PI - 0.5 * log(x) + (z - 0.5) * share - x * bend
    both_far = both_far + (rest + stirling_remainder(z))
    chosen = where(y >= _FAR, both_far, one_far)
    near = far & (low > 0.0)
    p, q, s = (where(near, 1.0, term) for term in (a, b, total))
    return where(near, chosen, gammaln(p) + gammaln(q) - gammaln(s))


def beta(a: Any, b: Any, /) -> Tensor:
    """Return ``gamma(a) * gamma(b) / gamma(a + b)``, which broadcasts.

    Its relative error grows with ``|betaln(a, b)|``, of which it is the exponential.

    Examples:
        ``beta(2.0, 3.0)`` is ``0.083333``, 1 / 12.

    """
    return compute("beta", _beta, a=a, b=b)


def _beta(a: Tensor, b: Tensor) -> Tensor:
    return exp(_betaln(a, b)) * (_sign(a) * _sign(b) * _sign(a + b))


def _sign(x: Tensor) -> Tensor:
    """Return the sign of ``gamma(x)``: NaN at its poles."""
    whole = floor(x)
    odd = whole - 2.0 * floor(whole * 0.5)
    pole = (whole == x) & (x <= 0.0)
    return where(x > 0.0, 1.0, where(pole, nan, 1.0 - 2.0 * odd))


def zeta(s: Any, q: Any = 1.0, /) -> Tensor:
    """Return Hurwitz's zeta function, the sum of ``(q + k) ** -s`` for k = 0, 1, ...

    With ``q`` 1 it is Riemann's. The arguments broadcast.

    Args:
        s: the exponent: the result is inf at 1 and NaN below, where the sum has no value.
        q: the first number: the result is inf at 0, -1, ... and NaN at other negative numbers.

    Returns:
        A floating tensor, differentiable in both.

    Source: DLMF 25.11.28, Euler and Maclaurin's formula.

    Examples:
        ``zeta(2.0)`` is ``1.644934``, pi**2 / 6.

    """
    return compute("zeta", _zeta, s=s, q=q)


_TERMS: Final = 10
_LAST: Final = 8


def _zeta(s: Tensor, q: Tensor) -> Tensor:
    possible = (s > 1.0) & (q > 0.0) & (q < inf)
    exponent, first = where(possible, s, 2.0), where(possible, q, 1.0)
    a = first + float(_TERMS)
    power = a**-exponent
    # Beyond, the remainder is less than the rounding error of the first term.
    bounded = minimum(exponent, 4.0 * a)
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
        total = total + (first + float(k)) ** -exponent
    whole = (q <= 0.0) & (floor(q) == q)
    outside = where((s == 1.0) | ((s > 1.0) & whole), inf, nan)
    return where(possible, total, where((s > 1.0) & (q == inf), 0.0, outside))
