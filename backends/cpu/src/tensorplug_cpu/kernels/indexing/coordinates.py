"""Coordinates of elements that are not zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.algorithms import host_functions
from tensorplug.plugin import KernelTable, TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Call

kernels = KernelTable()


@kernels.prepare(specs.WHERE)
def where(condition: TensorType, *, out: TensorType) -> Call:
    """Find them in the flattened array, and compute the coordinates."""
    return without_warnings(host_functions.coordinates.where)
