"""Kernels for the backend cpu: the formulas on NumPy arrays, in float64."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import KernelSpec, KernelTable, TensorType
from tensorplug_cpu.extensions import elementwise_kernel
from tensorplug_science.decompositions.special import FORMULAS
from tensorplug_science.special import (
    gamma_formulas,
    incomplete_beta_formulas,
    incomplete_gamma_formulas,
    specs,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]

kernels = KernelTable()


def _evaluate(formula: Callable[..., Any], result: Array, *inputs: Array) -> None:
    result[...] = formula(np, *[operand.astype(np.float64, copy=False) for operand in inputs])


def _register(spec: KernelSpec, formula: Callable[..., Any]) -> None:
    @kernels.prepare(spec, fuses=True)
    def prepare(x: TensorType, *, out: TensorType) -> Callable[..., Array]:
        return elementwise_kernel(partial(_evaluate, formula), out, in_blocks=True)


for _spec, _formula in FORMULAS.items():
    _register(_spec, _formula)


@kernels.prepare(specs.IGAMMA, fuses=True)
def igamma(a: TensorType, x: TensorType, *, out: TensorType) -> Callable[..., Array]:
    return elementwise_kernel(partial(_evaluate, incomplete_gamma_formulas.gammainc), out)


@kernels.prepare(specs.IGAMMAC, fuses=True)
def igammac(a: TensorType, x: TensorType, *, out: TensorType) -> Callable[..., Array]:
    return elementwise_kernel(partial(_evaluate, incomplete_gamma_formulas.gammaincc), out)


@kernels.prepare(specs.BETAINC, fuses=True)
def betainc(
    a: TensorType, b: TensorType, x: TensorType, *, out: TensorType
) -> Callable[..., Array]:
    return elementwise_kernel(partial(_evaluate, incomplete_beta_formulas.betainc), out)


@kernels.prepare(specs.POLYGAMMA, fuses=True)
def polygamma(x: TensorType, *, n: int, out: TensorType) -> Callable[..., Array]:
    def formula(xp: Any, x: Array) -> Any:
        return gamma_formulas.polygamma(xp, x, n)

    return elementwise_kernel(partial(_evaluate, formula), out, in_blocks=True)
