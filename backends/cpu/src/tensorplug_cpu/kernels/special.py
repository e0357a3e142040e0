"""Special functions: the formulas of ``tensorplug.special``, in float64."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import (
    gamma_formulas,
    incomplete_beta_formulas,
    incomplete_gamma_formulas,
    normal_formulas,
)
from tensorplug.plugin import KernelSpec, TensorType, specs
from tensorplug_cpu.execution.outputs import elementwise_kernel
from tensorplug_cpu.jit.groups.elementary import compiled
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_FORMULAS: dict[KernelSpec, Callable[..., Any]] = {
    specs.LGAMMA: gamma_formulas.lgamma,
    specs.DIGAMMA: gamma_formulas.digamma,
    specs.ERFC: normal_formulas.erfc,
    specs.ERFCX: normal_formulas.erfcx,
    specs.ERFINV: normal_formulas.erfinv,
    specs.NDTRI: normal_formulas.ndtri,
}


def _evaluate(formula: Callable[..., Any], result: Array, *inputs: Array) -> None:
    result[...] = formula(np, *[operand.astype(np.float64, copy=False) for operand in inputs])


def _register(spec: KernelSpec, formula: Callable[..., Any]) -> None:
    @kernels.prepare(spec, because="faster")
    def prepare(x: TensorType, *, out: TensorType) -> Call:
        work = partial(_evaluate, formula)
        return compiled(spec, out) or elementwise_kernel(work, out, in_blocks=True)


for _spec, _formula in _FORMULAS.items():
    _register(_spec, _formula)


@kernels.prepare(specs.IGAMMA, because="faster")
def igamma(a: TensorType, x: TensorType, *, out: TensorType) -> Call:
    """Lower incomplete gamma function."""
    return elementwise_kernel(partial(_evaluate, incomplete_gamma_formulas.gammainc), out)


@kernels.prepare(specs.IGAMMAC, because="faster")
def igammac(a: TensorType, x: TensorType, *, out: TensorType) -> Call:
    """Upper incomplete gamma function."""
    return elementwise_kernel(partial(_evaluate, incomplete_gamma_formulas.gammaincc), out)


@kernels.prepare(specs.BETAINC, because="faster")
def betainc(a: TensorType, b: TensorType, x: TensorType, *, out: TensorType) -> Call:
    """Incomplete beta function."""
    return elementwise_kernel(partial(_evaluate, incomplete_beta_formulas.betainc), out)


@kernels.prepare(specs.POLYGAMMA, because="faster")
def polygamma(x: TensorType, *, n: int, out: TensorType) -> Call:
    """The n-th derivative of digamma."""

    def formula(xp: Any, x: Array) -> Any:
        return gamma_formulas.polygamma(xp, x, n)

    return elementwise_kernel(partial(_evaluate, formula), out, in_blocks=True)
