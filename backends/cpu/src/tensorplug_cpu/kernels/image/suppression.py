"""Non-maximum suppression, as on the host of any device."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tensorplug.algorithms import host_functions
from tensorplug.plugin import KernelSpec, KernelTable, TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Call

kernels = KernelTable()


def _register(spec: KernelSpec, function: Callable[..., Any]) -> None:
    @kernels.prepare(spec)
    def prepare(boxes: TensorType, scores: TensorType, *, attributes: dict[str, Any]) -> Call:
        return without_warnings(partial(function, **attributes))


_register(specs.NON_MAX_SUPPRESSION_V3, host_functions.suppression.plain)
_register(specs.NON_MAX_SUPPRESSION_V4, host_functions.suppression.padded)
_register(specs.NON_MAX_SUPPRESSION_V5, host_functions.suppression.scored)
