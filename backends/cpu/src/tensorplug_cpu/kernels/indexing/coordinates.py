"""Coordinates of elements that are not zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.algorithms import host_functions
from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Call

kernels = Kernels()


@kernels.prepare(specs.WHERE, because="faster")
def where(condition: TensorType, *, out: TensorType) -> Call:
    """Find them in the flattened array, and compute the coordinates."""
    return without_warnings(host_functions.coordinates.where)
