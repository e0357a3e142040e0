"""Kernels for outputs at indices that are computed: what meets is combined.

Axes that by themselves say the index along one axis of the output are those of items: what
differs there never meets. The others are loops, in order, unless the device combines atomically.
Where a device ends long loops (``Machine.steps``), several launches share the kernel: each goes on
where the one before it ended. If nothing meets, a nest writes the elements as it does those of
dense outputs.
"""

from __future__ import annotations

from contextlib import nullcontext
from math import prod
from typing import TYPE_CHECKING

from tensorplug.plugin import dtypes as dt
from tensorplug_loops.schedule.accumulators import combine
from tensorplug_loops.schedule.lowering import Lowering
from tensorplug_loops.schedule.writer import ZERO, Writer
from tensorplug_loops.statements import Kernel, Store, Update, item, load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.plugin import DType, GroupOutput
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.loops import Loops


def held(output: GroupOutput, machine: Machine) -> DType:
    """Return the dtype in which elements are combined in memory.

    Integers of less than 32 bits are atomically combined as wider ones, if at all.
    """
    dtype = output.type.dtype
    if output.combine == "last":
        return dtype
    widens = dtype in dt.INTEGER and dtype.itemsize < dt.int32.itemsize
    return dt.int32 if widens and "int32" in machine.atomics else dtype.compute


def _is_atomic(output: GroupOutput, machine: Machine) -> bool:
    """Return whether elements are combined atomically: extrema do not depend on the order."""
    dtype = output.expression.dtype
    of_bits = f"uint{8 * dtype.itemsize}" in machine.atomics and output.combine in {"max", "min"}
    return output.combine != "last" and (of_bits or dtype.name in machine.atomics)


def apart(loops: Loops, machine: Machine) -> list[int]:
    """Return the axes of items: elements with different indices along them may run together."""
    (output,) = loops.group.outputs
    if _is_atomic(output, machine):
        return list(range(len(loops.lengths)))
    alone = set()
    for check in loops.operands[-1].checks:
        steps = [axis for axis, step in enumerate(check.at.steps) if step]
        if len(steps) == 1 and not check.at.rests:
            alone.add(steps[0])
    return sorted(alone)


def repeated(loops: Loops, machine: Machine) -> list[int]:
    """Return the axes of loops, along which a work-item goes in order."""
    items = apart(loops, machine)
    return [axis for axis in range(len(loops.lengths)) if axis not in items]


def shares(loops: Loops, machine: Machine) -> Iterator[tuple[dict[str, int], int]]:
    """Yield, for each launch, the numbers of its part of the loops, and how many steps it has.

    One takes all, unless a work-item may take ``machine.steps`` at most, outer loops included.
    """
    axes = repeated(loops, machine)
    lengths = [loops.lengths[axis] for axis in axes]
    most = machine.steps // max(1, len(axes)) if machine.steps else prod(lengths)
    for part in _parts(lengths, most):
        numbers: dict[str, int] = {}
        for axis, (start, stop) in zip(axes, part, strict=True):
            numbers |= {f"from{axis}": start, f"to{axis}": stop}
        yield numbers, prod([stop - start for start, stop in part])


def _parts(lengths: Sequence[int], most: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield starts and stops of loops, in order, such that each part has so many steps at most."""
    if prod(lengths) <= most:
        yield tuple((0, length) for length in lengths)
        return
    inner = prod(lengths[1:])
    step = max(1, most // inner)
    for start in range(0, lengths[0], step):
        stop = min(start + step, lengths[0])
        for rest in _parts(lengths[1:], most):
            yield ((start, stop), *rest)


def never_meet(loops: Loops) -> bool:
    """Return whether each element is written to one of its own, inside of the output.

    Each axis of the loops is that of an index along one axis of the output, alone. So a nest of
    loops may write them, in any order.
    """
    axes: list[int] = []
    for check in loops.operands[-1].checks:
        steps = [axis for axis, step in enumerate(check.at.steps) if step]
        if not check.holds or len(steps) > 1:
            return False
        axes += steps
    return sorted(axes) == list(range(len(loops.lengths)))


def write(loops: Loops, machine: Machine) -> Kernel:
    """Return the kernel; the output, initialized, is its last array."""
    items = apart(loops, machine)
    (output,) = loops.group.outputs
    op = output.combine
    assert op is not None
    lowering = Lowering(machine, loops.signs)
    loops.lowered(lowering.lower(loops.everything()))
    w = Writer(loops, lowering)
    atomic = _is_atomic(output, machine)
    number = w.let(item()) if items else ZERO
    w.bind_all(items, number)

    def put() -> None:
        k = w.inputs
        value = w.value(loops.roots[0])
        inside = w.inside(k)
        offset = w.offset(k)
        dtype = output.expression.dtype
        with w.when(inside) if inside is not None else nullcontext():
            if op == "last":
                w.emit(Store(w.array(k), offset, value))
            elif atomic:
                w.emit(Update(w.array(k), offset, value, op))
            else:
                at = w.let(offset)
                before = w.copy(load(w.array(k), lowering.converter.held(dtype), at))
                w.emit(Store(w.array(k), at, w.here(combine(op, before, value))))

    def walk(axes: Sequence[int]) -> None:
        if not axes:
            put()
            return
        axis = axes[0]
        start = w.number(f"from{axis}") if machine.steps else ZERO
        with w.loop(axis, start, w.number(f"to{axis}" if machine.steps else f"n{axis}")):
            walk(axes[1:])

    walk(repeated(loops, machine))
    return w.kernel(loops.group.name)
