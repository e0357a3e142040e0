"""Non-maximum suppression, as on the host of any device."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tensorplug.contract.tables import KernelTable
from tensorplug.host_functions import suppression
from tensorplug.ops.image import suppression as ops
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug_cpu.arrays import Call

kernels = KernelTable()


def _register(spec: KernelSpec, function: Callable[..., Any]) -> None:
    @kernels.prepare(spec)
    def prepare(boxes: TensorType, scores: TensorType, *, attributes: dict[str, Any]) -> Call:
        return quietly(partial(function, **attributes))


_register(ops.NON_MAX_SUPPRESSION_V3, suppression.plain)
_register(ops.NON_MAX_SUPPRESSION_V4, suppression.padded)
_register(ops.NON_MAX_SUPPRESSION_V5, suppression.scored)
