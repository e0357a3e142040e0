"""Gradients of special functions."""

from __future__ import annotations

from math import inf, pi, sqrt
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.unary import exp, square
from tensorplug.ops.special import error_functions as error
from tensorplug.ops.special import gamma_functions as gamma
from tensorplug.ops.special import (
    incomplete_beta_formulas,
    incomplete_functions,
    incomplete_gamma_formulas,
)
from tensorplug.ops.special.incomplete_gamma_slopes import concentration_slope
from tensorplug.ops.special.tensor_functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
_TWO_OVER_ROOT_PI: Final = 2.0 / sqrt(pi)


@rules.vjp(gamma.LGAMMA, "x")
def lgamma(dy: Tensor, x: Tensor) -> Tensor:
    return dy * gamma.digamma(x)


@rules.vjp(gamma.DIGAMMA, "x")
def digamma(dy: Tensor, x: Tensor) -> Tensor:
    return dy * gamma.polygamma(1, x)


@rules.vjp(gamma.POLYGAMMA, "x")
def polygamma(dy: Tensor, x: Tensor, *, n: int) -> Tensor:
    return dy * gamma.polygamma(n + 1, x)


@rules.vjp(error.ERFC, "x")
def erfc(dy: Tensor, x: Tensor) -> Tensor:
    return dy * (-_TWO_OVER_ROOT_PI * exp(-square(x)))


@rules.vjp(error.ERFCX, "x")
def erfcx(dy: Tensor, x: Tensor, out: Tensor) -> Tensor:
    # 2 x erfcx(x) - 2 / sqrt(pi) cancels for large x: from there on, by the asymptotic series of
    # erfcx (DLMF 7.12.1), whose first term is that constant.
    reach = 10.0 if x.dtype is dt.float64 else 4.5
    far = x > reach
    w = 0.5 / square(where(far, x, reach))
    series: Any = 1.0
    for k in range(31, 1, -2):  # 1 - 3 w + 15 w**2 - 105 w**3 ...
        series = 1.0 - k * w * series
    near = 2.0 * where(far, 0.0, x) * out - _TWO_OVER_ROOT_PI
    return dy * where(far, -_TWO_OVER_ROOT_PI * w * series, near)


@rules.vjp(error.ERFINV, "x")
def erfinv(dy: Tensor, out: Tensor) -> Tensor:
    return dy * (0.5 * sqrt(pi) * exp(square(out)))


@rules.vjp(error.NDTRI, "x")
def ndtri(dy: Tensor, out: Tensor) -> Tensor:
    return dy * (sqrt(2.0 * pi) * exp(0.5 * square(out)))


@rules.vjp(incomplete_functions.IGAMMA, "a")
def igamma_wrt_a(dy: Tensor, a: Tensor, x: Tensor) -> Tensor:
    return dy * _in_single(concentration_slope, a, x)


@rules.vjp(incomplete_functions.IGAMMAC, "a")
def igammac_wrt_a(dy: Tensor, a: Tensor, x: Tensor) -> Tensor:
    return dy * -_in_single(concentration_slope, a, x)


@rules.vjp(incomplete_functions.IGAMMA, "x")
def igamma_wrt_x(dy: Tensor, a: Tensor, x: Tensor) -> Tensor:
    return dy * _in_single(_gamma_density, a, x)


@rules.vjp(incomplete_functions.IGAMMAC, "x")
def igammac_wrt_x(dy: Tensor, a: Tensor, x: Tensor) -> Tensor:
    return dy * -_in_single(_gamma_density, a, x)


rules.stop(
    incomplete_functions.BETAINC,
    "a",
    "b",
    because="no formula is known that is accurate for all of them",
)


@rules.vjp(incomplete_functions.BETAINC, "x")
def betainc_wrt_x(dy: Tensor, a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    return dy * _in_single(_beta_density, a, b, x)


def _in_single(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Return ``function`` of the inputs, for half precision computed in float32."""
    dtype = inputs[0].dtype
    if dtype.itemsize >= dt.float32.itemsize:
        return function(*inputs)
    return astype(function(*[astype(given, dt.float32) for given in inputs]), dtype)


def _beta_density(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """Return ``x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)``: at an end infinite, a number or 0."""
    inside = (x > 0.0) & (x < 1.0)
    at = where(inside, x, 0.5)
    rest = 1.0 - at
    power = incomplete_beta_formulas.log_density(
        FUNCTIONS, a, b, at, rest, FUNCTIONS.log(at), FUNCTIONS.log1p(-at)
    )
    near, far = where(x == 0.0, a, b), where(x == 0.0, b, a)
    edge = where(near < 1.0, inf, where(near == 1.0, far, 0.0))
    edge = where((x == 0.0) | (x == 1.0), edge, 0.0 * at)
    return where(inside, exp(power) / (at * rest), edge)


def _gamma_density(a: Tensor, x: Tensor) -> Tensor:
    """Return ``x**(a - 1) * exp(-x) / gamma(a)``: at 0 it is infinite, 1 or 0."""
    inside = x > 0.0
    at = where(inside, x, 1.0)
    density: Tensor = exp(incomplete_gamma_formulas.log_density(FUNCTIONS, a, at)) * (a / at)
    edge = where(a < 1.0, inf, where(a == 1.0, 1.0, at * 0.0))
    return where(inside, density, edge)
