"""Strips: neighbouring elements that a work-item reads and writes at once (``Machine.strip``)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tensorplug.plugin import expressions as ex

if TYPE_CHECKING:
    from tensorplug.plugin import Expression
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.loops import Loops, Operand
    from tensorplug_loops.statements import Kernel


def takes_strips(loops: Loops, axis: int, machine: Machine) -> bool:
    """Return whether ``Machine.strip`` elements along an axis are read and written at once.

    All operands' elements along it are one, or neighbours in whole strips. Memory of one axis
    reaches beyond its last element; where outputs have more elements, those are not overwritten.
    """
    size, length = machine.strip, loops.lengths[axis]
    written = all(each.type.size == length for each in loops.group.outputs)
    beyond = len(loops.lengths) == 1 and not loops.reduced[axis] and written
    if size == 1 or (length % size and not beyond):
        return False
    steps = [operand.offset.steps[axis] for operand in loops.operands]
    return 1 in steps and all(_is_strip(loops, operand, axis, size) for operand in loops.operands)


def _is_strip(loops: Loops, operand: Operand, axis: int, size: int) -> bool:
    offset = operand.offset
    checks = [check.at for check in operand.checks if not check.holds]
    rests = [rest for at in (offset, *checks) for _, rest in at.rests]
    step = offset.steps[axis]
    if any(at.steps[axis] for at in checks) or any(_varies(loops, rest, axis) for rest in rests):
        return False
    apart = [offset.constant, *offset.steps, *(each for each, _ in offset.rests)]
    apart[1 + axis] = 0
    return step == 0 or (step == 1 and not any(each % size for each in apart))


def _varies(loops: Loops, root: Expression, axis: int) -> bool:
    """Return whether a value may differ along an axis."""
    for node in ex.order([root], lambda _: False):
        if node.op == "axis" and node.value == axis:
            return True
        if node.op == "parameter":
            number = int(node.value)  # type: ignore[arg-type]
            if number >= len(loops.group.inputs):
                return True
            for at in loops.operands[number].linears():
                if at.steps[axis] or any(_varies(loops, rest, axis) for _, rest in at.rests):
                    return True
    return False


def marked(kernel: Kernel, loops: Loops, axis: int) -> Kernel:
    """Return a kernel whose operands that are dense along an axis are in strips."""
    own = len(loops.operands)
    dense = [operand.offset.steps[axis] == 1 for operand in loops.operands]
    arrays = [replace(each, strip=is_) for each, is_ in zip(kernel.arrays, dense, strict=False)]
    return replace(kernel, arrays=(*arrays, *kernel.arrays[own:]))
