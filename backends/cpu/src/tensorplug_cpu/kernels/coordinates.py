"""Where elements are not zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import KernelTable
from tensorplug.host_functions.coordinates import where as find
from tensorplug.ops import coordinates as ops
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug_cpu.arrays import Call

kernels = KernelTable()


@kernels.prepare(ops.WHERE)
def where(condition: TensorType, *, out: TensorType) -> Call:
    """Find them among all elements, and tell the axes apart."""
    return quietly(find)
