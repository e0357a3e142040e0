"""The derivative of the incomplete gamma function P in its concentration.

Each formula of ``incomplete_gamma_formulas`` is differentiated term by term. Formulas that are not
chosen get safe numbers, so that the derivative of this derivative has no NaN.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug_science.special import incomplete_gamma_formulas as formulas
from tensorplug_science.special.gamma_functions import digamma, gammaln
from tensorplug_science.special.tensor_functions import FUNCTIONS

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor


def concentration_slope(a: Tensor, x: Tensor) -> Tensor:
    """Return dP(a, x) / da, and 0 where ``a`` or ``x`` is not positive and finite."""
    inside = (a > 0.0) & (a < inf) & (x > 0.0) & (x < inf)
    p, t = tp.where(inside, a, 1.0), tp.where(inside, x, 1.0)
    lower = formulas.is_lower(FUNCTIONS, p, t)
    by_series = lower & (p < formulas.WHOLE)
    by_small = ~lower & (t < formulas.SMALL)
    by_fraction = ~lower & ~by_small & (t < formulas.FAR)
    by_integral = ~(by_series | by_small | by_fraction)
    found = tp.where(
        by_series,
        _series(tp.where(by_series, p, 1.0), tp.where(by_series, t, 1.0)),
        tp.where(
            by_integral,
            _integral(tp.where(by_integral, p, 30.0), tp.where(by_integral, t, 30.0), lower),
            tp.where(
                by_small,
                _small(tp.where(by_small, p, 0.5), tp.where(by_small, t, 1.0)),
                _fraction(tp.where(by_fraction, p, 1.0), tp.where(by_fraction, t, 2.0)),
            ),
        ),
    )
    slope = tp.where(lower, found, -found)
    return tp.where(inside, slope, 0.0 * p)


def _series(a: Tensor, x: Tensor) -> Tensor:
    total: Any = 1.0
    change: Any = 0.0
    for n in range(formulas.SERIES_TERMS, 0, -1):
        ratio = x / (a + float(n))
        change = (change - total / (a + float(n))) * ratio
        total = 1.0 + total * ratio
    density = tp.exp(formulas.log_density(FUNCTIONS, a, x))
    slope: Tensor = density * (total * (tp.log(x) - digamma(a + 1.0)) + change)
    return slope


def _fraction(a: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of Q."""
    result: Any = x - a + (2.0 * formulas.FRACTION_TERMS + 1.0)
    change: Any = -1.0
    for n in range(formulas.FRACTION_TERMS, 0, -1):
        share = float(n) / result
        change = share + share * (float(n) - a) / result * change - 1.0
        result = x - a + (2.0 * n - 1.0) - share * (float(n) - a)
    part = tp.exp(formulas.log_density(FUNCTIONS, a, x)) * a / result
    slope: Tensor = part * (tp.log(x) - digamma(a) - change / result)
    return slope


def _small(a: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of Q."""
    total: Any = 0.0
    change: Any = 0.0
    for n in range(formulas.SMALL_TERMS, 0, -1):
        inverse = 1.0 / (a + float(n))
        factor = x * (-1.0 / float(n))
        change = (change - inverse * inverse) * factor
        total = (inverse + total) * factor
    power = tp.exp(a * tp.log(x) - gammaln(a + 1.0))
    log_slope = tp.log(x) - digamma(a + 1.0)
    slope: Tensor = -power * (log_slope * (1.0 + a * total) + total + a * change)
    return slope


def _integral(a: Tensor, x: Tensor, lower: Tensor) -> Tensor:
    """Return the derivative of P where P is the one to compute, else of Q."""
    total, moment = formulas.integrate(
        FUNCTIONS, a, x, lower & (x < a), lambda u: (FUNCTIONS.log1p(u),)
    )
    density = tp.exp(formulas.log_density(FUNCTIONS, a, x)) * (a / x)
    result: Tensor = density * (total * (tp.log(x) - digamma(a)) + moment)
    return result
