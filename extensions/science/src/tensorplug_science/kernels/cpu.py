"""Kernels for the backend cpu: the formulas on NumPy arrays, in float64."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import KernelSpec, KernelTable, TensorType
from tensorplug_cpu.extensions import elementwise_kernel
from tensorplug_science.decompositions.special import FORMULAS

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]

kernels = KernelTable()


def _evaluate(formula: Callable[..., Any], result: Array, *inputs: Array) -> None:
    result[...] = formula(np, *[operand.astype(np.float64, copy=False) for operand in inputs])


def _register(spec: KernelSpec, formula: Callable[..., Any]) -> None:
    @kernels.prepare(spec)
    def prepare(x: TensorType, *, out: TensorType) -> Callable[..., Array]:
        return elementwise_kernel(partial(_evaluate, formula), out, in_blocks=True)


for _spec, _formula in FORMULAS.items():
    _register(_spec, _formula)
