"""How many lanes the vectors of a kernel have."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.recording import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tensorplug.plugin import Expression
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.loops import Loops, Operand

_LITTLE: Final = 2  # instructions for each operand
_MOST: Final = 2048
_COSTS: Final = {
    **dict.fromkeys(("constant", "parameter", "variable", "axis"), 0),
    "divide": 4,
    "sqrt": 4,
    "quotient": 20,
    "rest": 50,
}


def cost(roots: Iterable[Expression]) -> int:
    """Return about how many instructions usually compute the roots for a vector of elements."""
    return _cost(tuple(roots))


def cost_beyond(node: Expression, known: Callable[[Expression], bool]) -> int:
    """Return the same for one expression, whose known parts cost nothing."""
    return _instructions(ex.order([node], known, rare=False))


@lru_cache(_MOST)
def _cost(roots: tuple[Expression, ...]) -> int:
    return _instructions(ex.order(roots, lambda _: False, rare=False))


def _instructions(nodes: Iterable[Expression]) -> int:
    return sum(_COSTS.get(node.op, 20 if node.op in ex.FUNCTIONS else 1) for node in nodes)


@lru_cache(_MOST)
def _common_size(roots: tuple[Expression, ...], axis: int, same: frozenset[int]) -> int:
    """Return the bytes of the most common numbers, of those that differ along an axis.

    ``same``: the numbers of the parameters that do not.
    """
    differ: dict[int, bool] = {}
    sizes: Counter[int] = Counter()
    for node in ex.order(roots, lambda _: False):
        own = node.op == "parameter" and node.value not in same
        differ[id(node)] = (
            own
            or (node.op == "axis" and node.value == axis)
            or any(differ[id(operand)] for operand in node.operands)
        )
        if differ[id(node)] and node.dtype is not dt.bool_ and node.op != "axis":
            sizes[node.dtype.compute.itemsize] += 1
    (size, _), *_ = sizes.most_common(1) or [(roots[0].dtype.compute.itemsize, 0)]
    return size


def choose_lanes(machine: Machine, loops: Loops, axis: int) -> int:
    """Return the lanes of vectors: as many as numbers of the most common size in a register.

    No more than the axis has elements, unless it is the only one, so that one kernel serves all of
    its lengths; and 1 if little is computed of elements that do not lie side by side along it.
    """
    roots = loops.roots
    apart = [operand for operand in loops.operands if not is_near(operand, axis)]
    if apart and cost(roots) <= _LITTLE * len(loops.operands):
        return 1
    inputs = enumerate(loops.operands[: len(loops.group.inputs)])
    same = frozenset(k for k, operand in inputs if _is_same(operand, axis))
    size = _common_size(tuple(roots), axis, same)
    lanes = max(1, min(machine.lanes, machine.vector_bytes // size))
    if len(loops.lengths) == 1 and not loops.reduced[0]:
        return lanes
    length = max(1, *loops.lengths[axis : axis + 1], 1)
    most = 1 << (length - 1 if machine.masked else length >> 1).bit_length()
    chosen: int = plain(max(1, min(lanes, most)))
    return chosen


def _is_same(operand: Operand, axis: int) -> bool:
    """Return whether an operand's elements along an axis are one."""
    steps = [step for at in operand.linears() for step in at.steps[axis : axis + 1]]
    return not any(steps) and not any(at.rests for at in operand.linears())


def is_near(operand: Operand, axis: int) -> bool:
    """Return whether an operand's elements along an axis are one, or neighbours."""
    offset = operand.offset
    steps = offset.steps[axis : axis + 1]
    near = all(0 <= step <= 1 for step in steps)
    if not offset.rests:
        return near
    rests = ex.order([rest for _, rest in offset.rests], lambda _: False)
    return near and not any(n.op == "axis" and n.value == axis for n in rests)


def lies_near(loops: Loops, axis: int, which: Iterable[int] | None = None) -> bool:
    """Return whether operands' elements along an axis are one, or neighbours; None for all."""
    own = range(len(loops.operands)) if which is None else which
    return all(is_near(loops.operands[k], axis) for k in own)


def count_near(loops: Loops, axis: int) -> int:
    """Return how many operands' elements along an axis are one, or neighbours."""
    return sum(is_near(operand, axis) for operand in loops.operands)


def count_vectors(machine: Machine, loops: Loops, axis: int, lanes: int) -> int:
    """Return how many vectors along an axis to reduce side by side: as many as registers hold."""
    size = cost(loops.roots) + _LITTLE * len(loops.operands)
    most = min(8 if size <= 8 else 4 if size <= 20 else 2, machine.lanes // lanes)
    return most if lanes > 1 and size <= 40 and loops.lengths[axis] >= most * lanes else 1


def dense_axis(operand: Operand) -> int | None:
    """Return the last axis along which an operand's elements are neighbours."""
    steps = operand.offset.steps
    return len(steps) - 1 - steps[::-1].index(1) if 1 in steps else None


def crossed_inputs(loops: Loops) -> list[int]:
    """Return the inputs that are dense along another axis than the last one, which they span."""
    last = len(loops.lengths) - 1
    return [
        k
        for k, operand in enumerate(loops.operands[: len(loops.group.inputs)])
        if dense_axis(operand) not in {None, last} and operand.offset.steps[last]
    ]


def count_copies(machine: Machine, roots: Sequence[Expression]) -> int:
    """Return how many vectors to reduce at once along a row: as many as the registers hold."""
    size = cost(roots) + _LITTLE * len(roots)
    most = 8 if size <= 6 else 4 if size <= 16 else 2 if size <= 40 else 1
    return max(1, min(most, machine.registers // 4 // len(roots)))
