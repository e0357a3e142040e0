"""Special functions from primitives: the formulas, on tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import DecompositionTable
from tensorplug_science.special import (
    bessel_formulas,
    gamma_formulas,
    incomplete_beta_formulas,
    incomplete_gamma_formulas,
    normal_formulas,
    specs,
)
from tensorplug_science.special.tensor_functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import KernelSpec, Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())

FORMULAS: Final[dict[KernelSpec, Callable[..., Any]]] = {
    specs.BESSEL_I0E: bessel_formulas.i0e,
    specs.BESSEL_I1E: bessel_formulas.i1e,
    specs.BESSEL_J0: bessel_formulas.j0,
    specs.BESSEL_J1: bessel_formulas.j1,
    specs.ERFCX: normal_formulas.erfcx,
    specs.ERFINV: normal_formulas.erfinv,
    specs.NDTRI: normal_formulas.ndtri,
    specs.LGAMMA: gamma_formulas.lgamma,
    specs.DIGAMMA: gamma_formulas.digamma,
}
"""The formulas of one input: the functions that they call, then x."""


def _decompose(spec: KernelSpec, formula: Callable[..., Any]) -> None:
    @decompositions.of(spec)
    def decomposed(x: Tensor) -> Tensor:
        result: Tensor = formula(FUNCTIONS, x)
        return result


for _spec, _formula in FORMULAS.items():
    _decompose(_spec, _formula)


@decompositions.of(specs.IGAMMA)
def igamma(a: Tensor, x: Tensor) -> Tensor:
    result: Tensor = incomplete_gamma_formulas.gammainc(FUNCTIONS, a, x)
    return result


@decompositions.of(specs.IGAMMAC)
def igammac(a: Tensor, x: Tensor) -> Tensor:
    result: Tensor = incomplete_gamma_formulas.gammaincc(FUNCTIONS, a, x)
    return result


@decompositions.of(specs.BETAINC)
def betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    result: Tensor = incomplete_beta_formulas.betainc(FUNCTIONS, a, b, x)
    return result


@decompositions.of(specs.POLYGAMMA)
def polygamma(x: Tensor, *, n: int) -> Tensor:
    result: Tensor = gamma_formulas.polygamma(FUNCTIONS, x, n)
    return result
