"""Products of few rows: each element of the other factor is read once, and used where it lies.

Such a product takes as long as reading its larger factor, the *columns'*, whose elements are
converted, unpacked and scaled in registers. An item takes a run of columns. It copies the rows to
its own memory unless they can be read where they lie, in chunks of the inner axes, after each of
which the sums are added to others.

If the columns' elements lie side by side along the last inner axis, lanes are inner elements, and
an item reads some columns at the same time. Otherwise lanes are columns, and an item adds some
inner elements of all its columns at the same time to sums in its own memory: it reads rows of the
factor in long pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug_loops.recording import plain
from tensorplug_loops.schedule.products import Roles, accumulated, length_along, swapped
from tensorplug_loops.schedule.structures import axes_in, parameters_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Expression
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.loops import Loops

_FEW: Final = 8  # rows, at most
_LEAST: Final = 16  # columns and inner elements; of fewer, the product is soon done
_WIDE: Final = 32  # registers, from which on there may be twice the sums
_SUMS: Final = 8  # vectors of sums that are in registers
_COLUMNS: Final = 4  # read at the same time, at most
_VECTORS: Final = 4  # of a column, one after the other in a turn of a loop
_SIZE: Final = 128  # columns of an item, at most
_COPIED: Final = 64  # likewise, at least, where it copies rows
_LONG: Final = 1024  # likewise, where lanes are columns
_SUMMED: Final = 8  # inner elements that are added at the same time, where lanes are columns
_ADDED: Final = 8192  # likewise, one after the other
_ITEMS: Final = 16  # that keep cores busy
_DEPTH: Final = 8192  # elements of rows in an item's memory
GAP: Final = 16  # elements between rows there, which a cache would keep in one set otherwise
_NEAR: Final = 2  # rows, more of which are copied for the same reason
_TERMS: Final = 512  # of a lane's sum, before it is added to another one
_BLOCKS: Final = 512  # whose scales are in an item's memory


@dataclass(frozen=True, slots=True)
class FewRows:
    """How a product of few rows is computed.

    ``rows``: all of them. ``lanes``: of vectors. ``across``: whether they are inner elements.
    ``columns``: of a turn. ``vectors``: of the last inner axis in a turn, or elements if lanes are
    columns. ``rest``: whether fewer remain there; ``once``: whether it is one turn. ``copied``:
    whether rows are copied, and ``runs``: by so many lanes. ``chunked``: whether there are several
    chunks. ``room``: for sums. ``blocks``: of a chunk, at most, whose sums are scaled; 0 if none.
    """

    roles: Roles
    rows: int
    lanes: int
    across: bool
    columns: int
    vectors: int
    rest: bool
    once: bool
    copied: bool
    runs: int
    depth: int
    chunked: bool
    room: int
    blocks: int


def tile_of(loops: Loops, roles: Roles, machine: Machine) -> FewRows | None:
    """Return how a product is computed, and set the numbers of its kernel.

    None if another schedule suits it better.
    """
    m, n, k = (length_along(loops, axes) for axes in (roles.rows, roles.columns, roles.inner))
    if m > n:
        roles, m, n = swapped(roles), n, m
    if m > _FEW or n < _LEAST or k < _LEAST or not machine.vector_bytes or not roles.columns:
        return None
    dtype = accumulated(loops.roots[0].dtype)
    most = max(1, min(machine.lanes, machine.vector_bytes // dtype.itemsize))
    last = roles.inner[-1]
    factors = loops.roots[: _count(loops)]
    steps = [_steps(loops, factors[which::2], last) for which in (roles.left, roles.right)]
    across = 1 in steps[1]
    axis = last if across else roles.columns[-1]
    near = _steps(loops, factors[roles.right :: 2], axis) <= {0, 1}
    length = loops.lengths[axis]
    if not near or (not across and len(roles.columns) > 1):
        return None
    lanes = plain(min(most, 1 << (length.bit_length() - 1)))
    if lanes < min(most, _COLUMNS):
        return None
    rows = plain(m)
    sums = _SUMS * (2 if machine.registers >= _WIDE else 1)
    columns = max(1, min(_COLUMNS, sums // rows))
    vectors, inside = 1, length_along(loops, roles.inner[1:])
    of_last = loops.lengths[last]
    most = _VECTORS if across else _SUMMED if rows <= _NEAR else _SUMMED // 2
    while vectors < most and of_last % (2 * vectors * (lanes if across else 1)) == 0:
        vectors *= 2
    blocks = _BLOCKS if across and scaled(loops, factors[roles.right :: 2], roles.inner) else 0
    depth, part, runs, copied = 0, loops.lengths[roles.inner[0]], 1, False
    if across:
        copied = m > _NEAR or not _in_place(loops, factors[roles.left :: 2]) or steps[0] != {1}
        runs = lanes if copied and steps[0] == {1} else 1
        depth = _DEPTH // (rows * (len(factors) // 2))
        terms = _TERMS * lanes
        if inside > min(depth, terms):
            return None
        most = (min(terms, depth) if copied else terms) // inside
        most = min(most, blocks) if blocks else most
        if part > most:  # in turns of the loop, as they ``rest`` counts them
            part = most if len(roles.inner) > 1 else most & -(vectors * lanes)
    elif k > _ADDED:
        return None
    batch = length_along(loops, roles.batch)
    room = _SIZE if across else _LONG // (1 if rows <= _NEAR else 2)
    turn = columns if across else lanes
    size = max(turn, _COPIED if copied else 1, min(room, -(-n * batch // _ITEMS)))
    chunks = -(-loops.lengths[roles.inner[0]] // part)
    loops.values.update(
        rows=m,
        columns=n,
        inner=k,
        size_n=size,
        groups_n=-(-n // size),
        part=part,
        chunks=chunks,
    )
    return FewRows(
        roles,
        rows,
        lanes,
        across,
        columns,
        vectors,
        bool(of_last % (vectors * (lanes if across else 1))),
        bool(of_last == vectors * lanes),
        copied,
        runs,
        depth,
        chunks > 1,
        room + columns,
        blocks,
    )


def _count(loops: Loops) -> int:
    """Return how many factors there are: two for each product that is added up."""
    return len(loops.group.reductions)


def _steps(loops: Loops, roots: Sequence[Expression], axis: int) -> set[int]:
    """Return the distances along an axis of what values are read from; 2 for any other one."""
    operands = [loops.operands[k] for k in parameters_in(tuple(roots))]
    steps = [each.offset.steps[axis] for each in operands]
    found = {plain(step) if 0 <= step <= 1 else 2 for step in steps}
    return {2} if any(at.rests for each in operands for at in each.linears()) else found


def _in_place(loops: Loops, roots: Sequence[Expression]) -> bool:
    """Return whether rows need no conversion."""
    return all(
        root.op == "parameter"
        and root.dtype is accumulated(root.dtype)
        and not loops.operands[int(root.value)].checks  # type: ignore[arg-type]  # a number
        for root in roots
    )


class Scaled(NamedTuple):
    """Factors that are ``numbers * scale``, or ``numbers * scale + offset``."""

    numbers: list[Expression]
    scale: Expression
    offset: Expression | None


def scaled(loops: Loops, roots: Sequence[Expression], inner: Sequence[int]) -> Scaled | None:
    """Return how blocks of all factors are scaled; None if they are not, or differently.

    A block lies along the last one of two inner axes.
    """
    if len(inner) != 2 or any(root.op not in {"multiply", "fma"} for root in roots):
        return None
    numbers, scales, offsets = zip(
        *((*root.operands, *(None,) * (3 - len(root.operands))) for root in roots), strict=True
    )
    alike = all(own[0] is each for own in (scales, offsets) for each in own)
    if not alike or any(_varies(loops, each, inner[1]) for each in (scales[0], offsets[0])):
        return None
    return Scaled(list(numbers), scales[0], offsets[0])


def _varies(loops: Loops, root: Expression | None, axis: int) -> bool:
    if root is None:
        return False
    operands = [loops.operands[k] for k in parameters_in((root,))]
    read = any(at.rests or at.steps[axis] for each in operands for at in each.linears())
    return read or axis in axes_in((root,))
