"""Special functions from primitives: the formulas of ``ops.special``, on tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.special import (
    error_functions,
    gamma_formulas,
    gamma_functions,
    incomplete_beta_formulas,
    incomplete_functions,
    incomplete_gamma_formulas,
    normal_formulas,
)
from tensorplug.ops.special.tensor_functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable()

_FORMULAS: Final[dict[KernelSpec, Callable[..., Any]]] = {
    gamma_functions.LGAMMA: gamma_formulas.lgamma,
    gamma_functions.DIGAMMA: gamma_formulas.digamma,
    error_functions.ERFC: normal_formulas.erfc,
    error_functions.ERFCX: normal_formulas.erfcx,
    error_functions.ERFINV: normal_formulas.erfinv,
    error_functions.NDTRI: normal_formulas.ndtri,
}


def _decompose(spec: KernelSpec, formula: Callable[..., Any]) -> None:
    @decompositions.of(spec)
    def decomposed(x: Tensor) -> Tensor:
        result: Tensor = formula(FUNCTIONS, x)
        return result


for _spec, _formula in _FORMULAS.items():
    _decompose(_spec, _formula)


@decompositions.of(incomplete_functions.IGAMMA)
def igamma(a: Tensor, x: Tensor) -> Tensor:
    result: Tensor = incomplete_gamma_formulas.gammainc(FUNCTIONS, a, x)
    return result


@decompositions.of(incomplete_functions.IGAMMAC)
def igammac(a: Tensor, x: Tensor) -> Tensor:
    result: Tensor = incomplete_gamma_formulas.gammaincc(FUNCTIONS, a, x)
    return result


@decompositions.of(incomplete_functions.BETAINC)
def betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    result: Tensor = incomplete_beta_formulas.betainc(FUNCTIONS, a, b, x)
    return result


@decompositions.of(gamma_functions.POLYGAMMA)
def polygamma(x: Tensor, *, n: int) -> Tensor:
    result: Tensor = gamma_formulas.polygamma(FUNCTIONS, x, n)
    return result
