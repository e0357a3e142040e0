"""Gradients of special functions."""

from __future__ import annotations

from math import factorial, inf, pi, sqrt
from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug.algorithms import polynomial
from tensorplug.errors import GradientNotFoundError
from tensorplug.plugin import RuleTable
from tensorplug.plugin import dtypes as dt
from tensorplug_science.special import bessel_functions as bessel
from tensorplug_science.special import (
    gamma_functions,
    incomplete_beta_formulas,
    incomplete_gamma_formulas,
    specs,
)
from tensorplug_science.special.incomplete_gamma_slopes import concentration_slope
from tensorplug_science.special.tensor_functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Tensor

rules: RuleTable = RuleTable()
_TWO_OVER_ROOT_PI: Final = 2.0 / sqrt(pi)
_SERIES: Final = tuple(0.5 / (factorial(k) * factorial(k + 1)) for k in range(8))


def _refused(name: str) -> Callable[[Tensor], Tensor]:
    def rule(dy: Tensor) -> Tensor:  # noqa: ARG001 - each rule has it
        raise GradientNotFoundError(
            f"betainc has no derivative with respect to {name} here: no formula is known that "
            f"is accurate everywhere. Pass tensorplug.stop_gradient({name}) for a constant"
        )

    return rule


def _in_single(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Return ``function`` of the inputs, for half precision computed in float32."""
    dtype = inputs[0].dtype
    if dtype.itemsize >= dt.float32.itemsize:
        return function(*inputs)
    return tp.astype(function(*[tp.astype(given, dt.float32) for given in inputs]), dtype)


def _gamma_density(a: Tensor, x: Tensor) -> Tensor:
    """Return ``x**(a - 1) * exp(-x) / gamma(a)``: at 0 it is infinite, 1 or 0."""
    inside = x > 0.0
    at = tp.where(inside, x, 1.0)
    density: Tensor = tp.exp(incomplete_gamma_formulas.log_density(FUNCTIONS, a, at)) * (a / at)
    edge = tp.where(a < 1.0, inf, tp.where(a == 1.0, 1.0, at * 0.0))
    return tp.where(inside, density, edge)


def _beta_density(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """Return ``x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)``: at an end infinite, a number or 0."""
    inside = (x > 0.0) & (x < 1.0)
    at = tp.where(inside, x, 0.5)
    rest = 1.0 - at
    power = incomplete_beta_formulas.log_density(
        FUNCTIONS, a, b, at, rest, FUNCTIONS.log(at), FUNCTIONS.log1p(-at)
    )
    near, far = tp.where(x == 0.0, a, b), tp.where(x == 0.0, b, a)
    edge = tp.where(near < 1.0, inf, tp.where(near == 1.0, far, 0.0))
    edge = tp.where((x == 0.0) | (x == 1.0), edge, 0.0 * at)
    return tp.where(inside, tp.exp(power) / (at * rest), edge)


def _over(out: Tensor, x: Tensor, factor: Tensor | float, square_sign: float) -> Tensor:
    """Return ``out / x`` for ``out = factor * x * (1 / 2 -+ x**2 / 16 ...)`` (DLMF 10.2.2).

    Near 0 it is that series: the derivative of the quotient is 0 / 0 there.
    """
    near = tp.abs(x) < 0.5
    quarter = tp.square(tp.where(near, x, 0.0)) * (0.25 * square_sign)
    series = polynomial(_SERIES, quarter) * factor
    return tp.where(near, series, out / tp.where(near, 1.0, x))


rules.formulas(specs.LGAMMA, x=lambda dy, x: dy * gamma_functions.digamma(x))
rules.formulas(specs.DIGAMMA, x=lambda dy, x: dy * gamma_functions.polygamma(1, x))
rules.formulas(specs.POLYGAMMA, x=lambda dy, x, *, n: dy * gamma_functions.polygamma(n + 1, x))
rules.formulas(
    specs.IGAMMA,
    a=lambda dy, a, x: dy * _in_single(concentration_slope, a, x),
    x=lambda dy, a, x: dy * _in_single(_gamma_density, a, x),
)
rules.formulas(
    specs.IGAMMAC,
    a=lambda dy, a, x: dy * -_in_single(concentration_slope, a, x),
    x=lambda dy, a, x: dy * -_in_single(_gamma_density, a, x),
)
rules.formulas(
    specs.BETAINC,
    a=_refused("a"),
    b=_refused("b"),
    x=lambda dy, a, b, x: dy * _in_single(_beta_density, a, b, x),
)
rules.formulas(specs.ERFINV, x=lambda dy, out: dy * (0.5 * sqrt(pi) * tp.exp(tp.square(out))))
rules.formulas(specs.NDTRI, x=lambda dy, out: dy * (sqrt(2.0 * pi) * tp.exp(0.5 * tp.square(out))))
rules.formulas(specs.BESSEL_I0E, x=lambda dy, x, out: dy * (bessel.i1e(x) - tp.sign(x) * out))
rules.formulas(specs.BESSEL_J0, x=lambda dy, x: dy * -bessel.j1(x))
rules.formulas(
    specs.BESSEL_J1, x=lambda dy, x, out: dy * (bessel.j0(x) - _over(out, x, 1.0, -1.0))
)


@rules.vjp(specs.ERFCX, "x")
def erfcx(dy: Tensor, x: Tensor, out: Tensor) -> Tensor:
    # 2 x erfcx(x) - 2 / sqrt(pi) cancels for large x: from there on, by the asymptotic series of
    # erfcx (DLMF 7.12.1), whose first term is that constant.
    reach = 10.0 if x.dtype is dt.float64 else 4.5
    far = x > reach
    w = 0.5 / tp.square(tp.where(far, x, reach))
    series: Any = 1.0
    for k in range(31, 1, -2):  # 1 - 3 w + 15 w**2 - 105 w**3 ...
        series = 1.0 - k * w * series
    near = 2.0 * tp.where(far, 0.0, x) * out - _TWO_OVER_ROOT_PI
    return dy * tp.where(far, -_TWO_OVER_ROOT_PI * w * series, near)


@rules.vjp(specs.BESSEL_I1E, "x")
def bessel_i1e(dy: Tensor, x: Tensor) -> Tensor:
    out = bessel.i1e(x)  # the one at hand may be rounded to fewer digits than far out are left
    return dy * (bessel.i0e(x) - tp.sign(x) * out - _over(out, x, tp.exp(-tp.abs(x)), 1.0))
