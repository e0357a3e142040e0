"""Gradients of special functions."""

from __future__ import annotations

from math import factorial
from typing import TYPE_CHECKING, Final

import tensorplug as tp
from tensorplug.algorithms import polynomial
from tensorplug.plugin import RuleTable
from tensorplug_science.special import bessel_functions as bessel
from tensorplug_science.special import specs

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor

rules: RuleTable = RuleTable()
_SERIES: Final = tuple(0.5 / (factorial(k) * factorial(k + 1)) for k in range(8))


rules.formulas(specs.BESSEL_I0E, x=lambda dy, x, out: dy * (bessel.i1e(x) - tp.sign(x) * out))
rules.formulas(specs.BESSEL_J0, x=lambda dy, x: dy * -bessel.j1(x))
rules.formulas(
    specs.BESSEL_J1, x=lambda dy, x, out: dy * (bessel.j0(x) - _over(out, x, 1.0, -1.0))
)


@rules.vjp(specs.BESSEL_I1E, "x")
def bessel_i1e(dy: Tensor, x: Tensor) -> Tensor:
    out = bessel.i1e(x)  # the one at hand may be rounded to fewer digits than far out are left
    return dy * (bessel.i0e(x) - tp.sign(x) * out - _over(out, x, tp.exp(-tp.abs(x)), 1.0))


def _over(out: Tensor, x: Tensor, factor: Tensor | float, square_sign: float) -> Tensor:
    """Return ``out / x`` for ``out = factor * x * (1 / 2 -+ x**2 / 16 ...)`` (DLMF 10.2.2).

    Near 0 it is that series: the derivative of the quotient is 0 / 0 there.
    """
    near = tp.abs(x) < 0.5
    quarter = tp.square(tp.where(near, x, 0.0)) * (0.25 * square_sign)
    series = polynomial(_SERIES, quarter) * factor
    return tp.where(near, series, out / tp.where(near, 1.0, x))
