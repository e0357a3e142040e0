"""Distinct values, by the stable sort of this backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.algorithms import host_functions
from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.numerics.stable_sort import arg_sorted

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.UNIQUE, because="faster")
def unique(x: TensorType, *, axis: int, out: tuple[TensorType, TensorType]) -> Call:
    """Number the values in their order, then in that of their first occurrence."""
    return without_warnings(lambda x: host_functions.sets.unique_with(_order, x, axis))


def _order(flat: Array) -> Array:
    if flat.dtype.kind in "biuf":
        return arg_sorted(flat, descending=False)
    return np.argsort(flat, kind="stable")
