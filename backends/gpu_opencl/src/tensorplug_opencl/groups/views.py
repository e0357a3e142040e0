"""Kernels that would copy a run of an input as it lies: their results share its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorplug_loops.schedule.loops import Loops
from tensorplug_loops.schedule.references import used

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Group, Shape
    from tensorplug_opencl.memory.buffers import DeviceBuffer


class View(NamedTuple):
    """A run of the input with this number, from the element ``start`` on."""

    number: int
    shape: Shape
    start: int


def compile_view(view: View) -> Callable[..., list[DeviceBuffer]]:
    """Return a function of the inputs' buffers that returns a view of one."""
    number, shape, start = view

    def alone(*buffers: DeviceBuffer) -> DeviceBuffer:
        return buffers[number].view(shape, start)

    def run(*buffers: DeviceBuffer) -> list[DeviceBuffer]:
        return [alone(*buffers)]

    run.alone = alone  # type: ignore[attr-defined]  # for tensorplug_loops.kernels
    return run


def find_view(group: Group) -> View | None:
    """Return the run that a group would copy; None if it computes."""
    if group.reductions or group.folds or len(group.outputs) > 1:
        return None
    (output,) = group.outputs
    if output.expression.op != "parameter" or output.index is not None:
        return None
    own, kept = used(group)
    if len(kept) > 1:
        return None
    loops = Loops(own, output.spans)
    source, target = loops.operands
    ahead = [1] * min(1, len(loops.lengths))
    if source.checks or source.offset.rests or source.offset.steps != ahead:
        return None
    if target.offset.steps != ahead:
        return None
    return View(kept[0], output.type.shape, source.offset.constant)
