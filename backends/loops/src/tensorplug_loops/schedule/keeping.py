"""Values that several passes need: kept in the row of an output, which is written last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.lanes import cost_beyond
from tensorplug_loops.statements import Store, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import DType, Expression
    from tensorplug_loops.schedule.writer import Writer

_WORTH_KEEPING: Final = 5  # instructions; fewer are computed again


class Kept(NamedTuple):
    """A value that the pass ``first`` writes for later ones, to an operand's element."""

    node: Expression
    first: int
    needed: frozenset[int]
    operand: int


def choose_kept(
    w: Writer,
    passes: Sequence[Sequence[Expression]],
    rows: Sequence[tuple[int, DType]],
    axis: int,
) -> list[Kept]:
    """Return what a later pass needs again and is not worth computing again.

    Args:
        w: the writer of the kernel.
        passes: the expressions of each.
        rows: the numbers of outputs, which the last pass writes, and their dtypes.
        axis: the last one that the passes walk along.

    """
    first: dict[int, int] = {}
    needed: dict[int, set[int]] = {}
    chosen: dict[int, Expression] = {}

    def is_same(node: Expression) -> bool:  # along the row: computed once, outside the pass
        return axis not in w.needs(node)

    for at, roots in enumerate(passes):

        def is_known(node: Expression, at: int = at) -> bool:
            if is_same(node):
                return True
            if first.get(id(node), at) == at or cost_beyond(node, is_same) < _WORTH_KEEPING:
                return False
            chosen[id(node)] = node
            needed.setdefault(id(node), set()).add(at)
            return True

        for node in ex.order(roots, is_known, rare=False):
            first.setdefault(id(node), at)
    free, kept = list(rows), []
    for node in chosen.values():
        row = next((row for row in free if row[1] is node.dtype), None)
        if row is not None:
            free.remove(row)
            kept.append(Kept(node, first[id(node)], frozenset(needed[id(node)]), row[0]))
    return kept


def fetch(w: Writer, kept: Sequence[Kept], at: int) -> None:
    """Read here what the pass ``at`` needs of values kept before."""
    for each in kept:
        if at in each.needed:
            k = each.operand
            w.know(each.node, load(w.array(k), each.node.dtype, w.offset(k)))


def keep(w: Writer, kept: Sequence[Kept], at: int) -> None:
    """Write here what the pass ``at`` is the first to compute."""
    for each in kept:
        if at == each.first:
            k = each.operand
            w.emit(Store(w.array(k), w.offset(k), w.value(each.node)))
