"""Products: groups whose one reduction is a sum of products of two factors.

The axes that remain are those of the *rows*, along which only the first factor varies, those of
the *columns*, along which only the second one does, and those of a *batch*. Both vary along the
*inner* axes. ``product_tiles`` writes the kernels; here is what they depend on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.plugin import Reduction
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.recording import plain
from tensorplug_loops.schedule.references import is_dense
from tensorplug_loops.schedule.structures import parameters_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.plugin import DType, Expression, Group
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.loops import Loops, Operand

_INT: Final = 4  # bytes of the integers that processors multiply
_LEAST: Final = 4  # rows and columns; below, one factor is hardly read again
_DEPTH: Final = 2048  # bytes of a row that are multiplied before the sums are added to others
_FEW: Final = 4  # times that a factor is read again where it lies
_NARROW: Final = 16  # panels of columns
_ITEMS: Final = 32  # that keep many cores busy
_WAVES: Final = 4  # items for each core
_CHUNK: Final = 32  # elements along an axis that an item copies, at least
_PANELS: Final = 16  # of rows that an item takes, at most
_WIDE: Final = 32  # registers, from which on tiles have twice the rows


class Roles(NamedTuple):
    """Axes by what they are, and the numbers of the rows' and the columns' factors."""

    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    inner: tuple[int, ...]
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class Tile:
    """How a product is computed: with the loops' structure, all that its kernels depend on.

    ``rows``, ``vectors``, ``lanes``: of a tile, whose sums are variables. ``depth``: the inner
    elements that are multiplied before the sums are added to others, at most. ``packs``: whether
    the factors' elements are copied to where tiles read them one after the other: of the rows, in
    each item, and of the columns, by a kernel before. ``split``: the inner axis of which a block
    takes a part; it takes all of those behind it. ``blocked``: whether there are several blocks.
    ``runs``: whether rows are copied one after the other, since their elements lie side by side
    along the last inner axis, by a loop with so many lanes, or, if it is negative, so many times
    without a loop; 0 if they are interleaved. ``windows``: whether rows are read where they lie
    though they are windows, which may reach over an edge. ``slices``: whether items share the
    blocks of a tile, and write sums instead of outputs.
    """

    roles: Roles
    rows: int
    vectors: int
    lanes: int
    depth: int
    packs: tuple[bool, bool]
    split: int
    blocked: bool
    runs: int = 0
    windows: bool = False
    slices: bool = False

    @property
    def columns(self) -> int:
        """The columns of a tile."""
        return self.vectors * self.lanes


def factored(group: Group) -> Group | None:
    """Return a group with two reductions, of the factors, in the place of the one of products.

    If a sum of products is added up, there are two for each. The result of the first stands for
    that of the sum of products. None if there is no such sum, or outputs do not have the axes that
    remain.
    """
    if len(group.reductions) != 1 or group.folds:
        return None
    (reduction,) = group.reductions
    product = reduction.expression
    terms = list(_terms(product))
    is_sum = reduction.op == "sum" and not reduction.running
    if (
        not is_sum
        or any(term.op != "multiply" for term in terms)
        or product.dtype not in dt.FLOATING | dt.INTEGER
        or 0 in group.shape
    ):
        return None
    kept = tuple(not reduced for reduced in reduction.axes)
    outputs = enumerate(group.outputs)
    if not all(is_dense(group, j) and output.spans == kept for j, output in outputs):
        return None
    factors = [factor for term in terms for factor in term.operands]
    sums = tuple([Reduction("sum", factor, reduction.axes) for factor in factors])
    return replace(group, reductions=sums)


def _terms(value: Expression) -> Iterator[Expression]:
    if value.op == "add":
        for operand in value.operands:
            yield from _terms(operand)
    else:
        yield value


def _axes_of(loops: Loops, root: Expression, known: dict[int, frozenset[int]]) -> frozenset[int]:
    """Return the axes along which a value varies; ``known``: by operand."""
    found: frozenset[int] = frozenset()
    for node in ex.order([root], lambda _: False):
        if node.op == "axis":
            found |= {int(node.value)}  # type: ignore[arg-type]  # a number
        elif node.op == "parameter":
            found |= _axes_of_operand(loops, int(node.value), known)  # type: ignore[arg-type]
    return found


def _axes_of_operand(loops: Loops, k: int, known: dict[int, frozenset[int]]) -> frozenset[int]:
    if k not in known:
        axes: frozenset[int] = frozenset()
        for at in loops.operands[k].linears():
            axes |= {axis for axis, step in enumerate(at.steps) if step}
            for _, rest in at.rests:
                axes |= _axes_of(loops, rest, known)
        known[k] = axes
    return known[k]


def roles_of(loops: Loops) -> Roles | None:
    """Return the roles of axes, the first factor's axes as rows; None if an axis has none."""
    known: dict[int, frozenset[int]] = {}
    factors = loops.roots[: len(loops.group.reductions)]
    left, right = (
        frozenset().union(*(_axes_of(loops, root, known) for root in factors[which::2]))
        for which in (0, 1)
    )
    kept = loops.kept()
    inner = tuple(axis for axis, reduced in enumerate(loops.reduced) if reduced)
    batch = tuple(axis for axis in kept if axis in left and axis in right)
    rows = tuple(axis for axis in kept if axis in left and axis not in right)
    columns = tuple(axis for axis in kept if axis in right and axis not in left)
    if len(batch) + len(rows) + len(columns) < len(kept) or not inner:
        return None
    return Roles(batch, rows, columns, inner, 0, 1)


def accumulated(dtype: DType) -> DType:
    """Return the dtype in which products of numbers of ``dtype`` are added; integers wrap."""
    return dt.int32 if dtype in dt.INTEGER and dtype.itemsize < _INT else dtype.compute


def length_along(loops: Loops, axes: Sequence[int]) -> int:
    """Return how many elements there are along axes."""
    return prod(loops.lengths[axis] for axis in axes)


def _is_flat(loops: Loops, operand: Operand, axes: Sequence[int]) -> bool:
    """Return whether an operand's elements along axes have one distance."""
    steps = operand.offset.steps
    return all(steps[a] == steps[b] * loops.lengths[b] for a, b in pairwise(axes))


def inner_operand(loops: Loops, roles: Roles, *, right: bool) -> int | None:
    """Return the operand that a factor is, if inner elements have one distance."""
    root = loops.roots[roles.right if right else roles.left]
    if root.op != "parameter":
        return None
    k = int(root.value)  # type: ignore[arg-type]  # a number
    operand = loops.operands[k]
    inside = all(check.holds for check in operand.checks) and not operand.offset.rests
    return k if inside and _is_flat(loops, operand, roles.inner) else None


def plain_operand(loops: Loops, roles: Roles, *, right: bool) -> int | None:
    """Return the operand that a factor is, if tiles can read it where it lies."""
    k = inner_operand(loops, roles, right=right)
    if k is None or (dtype := loops.operands[k].dtype) is not accumulated(dtype):
        return None
    operand = loops.operands[k]
    flat = _is_flat(loops, operand, roles.columns)
    lies = flat and operand.offset.steps[roles.columns[-1]] == 1
    return k if lies or not right else None


def window_operand(loops: Loops, roles: Roles) -> int | None:
    """Return the operand that the rows' factor is, if it is 0 outside and its index is affine."""
    root = loops.roots[roles.left]
    if root.op != "parameter":
        return None
    k = int(root.value)  # type: ignore[arg-type]  # a number
    operand = loops.operands[k]
    affine = not any(at.rests for at in operand.linears())
    return (
        k if affine and not operand.outside and operand.dtype is accumulated(root.dtype) else None
    )


def swapped(roles: Roles) -> Roles:
    """Return the roles with rows and columns exchanged."""
    batch, rows, columns, inner, left, right = roles
    return Roles(batch, columns, rows, inner, left=right, right=left)


def _turned(loops: Loops, roles: Roles, lanes: int) -> Roles:
    """Return the roles with those columns along which outputs lie side by side.

    But for few columns, and where the columns' factor would be much larger than what it is read
    from, as windows are.
    """
    other = swapped(roles)
    output = loops.operands[-1].offset.steps
    if output[roles.rows[-1]] == 1:
        roles, other = other, roles
    own, turned = length_along(loops, roles.columns), length_along(loops, other.columns)
    if own < lanes and turned > own and (own < _LEAST or not _is_window(loops, roles)):
        return other
    grows = [plain_operand(loops, each, right=True) is None for each in (roles, other)]
    large = own * length_along(loops, roles.inner) * length_along(loops, roles.batch)
    if (
        turned >= lanes
        and grows[0]
        and large > _FEW * length_along(loops, other.columns) * length_along(loops, roles.inner)
    ):
        read = _size_read(loops, roles.right)
        if large > _FEW * read:
            return other
    return roles


def _size_read(loops: Loops, number: int) -> int:
    """Return about how many elements a factor is read from: its largest operand's."""
    numbers = parameters_in((loops.roots[number],))
    return max((loops.group.inputs[k].type.size for k in numbers), default=1)


def tile_of(loops: Loops, roles: Roles, machine: Machine) -> Tile | None:
    """Return how a product is computed, and set the numbers of its kernels.

    None if another schedule suits it better.
    """
    dtype = accumulated(loops.roots[0].dtype)
    size = machine.tile_bytes or machine.vector_bytes
    most = max(1, min(machine.lanes, size // dtype.itemsize))
    roles = _turned(loops, roles, most)
    m, n, k = (length_along(loops, axes) for axes in (roles.rows, roles.columns, roles.inner))
    if m < _LEAST or n < _LEAST or k < _LEAST:
        return None
    lanes = plain(min(most, 1 << (n - 1).bit_length()))
    rows, vectors = _choose(m, n, lanes, machine)
    depth = _DEPTH // dtype.itemsize
    split = next(
        at for at in range(len(roles.inner)) if length_along(loops, roles.inner[at + 1 :]) <= depth
    )
    blocks = _set_blocks(loops, roles, split, depth)
    panels_m, panels_n = -(-m // rows), -(-n // (vectors * lanes))
    block = min(k, depth if m <= _NARROW * rows else k)
    near = block * n * dtype.itemsize <= machine.cache_bytes // 2 or m <= _FEW * rows
    in_place = _reads_rows(loops, roles, panels_n)
    windows = not in_place and panels_n <= _FEW and _is_window(loops, roles)
    runs = 0
    if not (in_place or windows):
        runs = _choose_runs(loops, roles, most if machine.vector_bytes else 1)
    packs = (
        not (in_place or windows),
        not near or n < vectors * lanes or plain_operand(loops, roles, right=True) is None,
    )
    of_block = min(k, depth) * vectors * lanes * dtype.itemsize
    size_n = _even(panels_n, max(1, machine.cache_bytes // of_block))
    groups_n = -(-panels_n // size_n)
    batch = length_along(loops, roles.batch)
    size_m = _even(panels_m, max(1, min(_PANELS, panels_m * groups_n * batch // _ITEMS)))
    along = loops.lengths[roles.inner[0]]
    copied = -(-along // max(1, min(along // _CHUNK, _ITEMS // (panels_n * batch))))
    loops.values.update(
        rows=m,
        columns=n,
        inner=k,
        copied=copied,
        copies=-(-along // copied),
        panels_m=panels_m,
        panels_n=panels_n,
        size_m=size_m,
        size_n=size_n,
        groups_m=-(-panels_m // size_m),
        groups_n=groups_n,
    )
    slices = _set_slices(loops, batch, blocks, machine)
    return Tile(
        roles, rows, vectors, lanes, depth, packs, split, blocks > 1, runs, windows, slices
    )


def _is_window(loops: Loops, roles: Roles) -> bool:
    """Return whether rows are windows whose elements are neighbours along the rows."""
    k = window_operand(loops, roles)
    if k is None or inner_operand(loops, roles, right=False) is not None:
        return False
    steps = loops.operands[k].offset.steps
    return any(steps[axis] == 1 for axis in roles.rows)


def _set_slices(loops: Loops, batch: int, blocks: int, machine: Machine) -> bool:
    """Set how many items share the blocks of a tile; return whether several do."""
    value = loops.values
    items = batch * value["groups_m"] * value["groups_n"]
    share = -(-blocks // max(1, min(blocks, _WAVES * machine.cores // items)))
    value.update(share=share, slices=-(-blocks // share), batch=batch)
    return bool(value["slices"] > 1)


def _choose_runs(loops: Loops, roles: Roles, most: int) -> int:
    """Return how a row is copied along the last inner axis (``Tile.runs``)."""
    axis = roles.inner[-1]
    read = parameters_in((loops.roots[roles.left],))
    if not any(loops.operands[k].offset.steps[axis] == 1 for k in read):
        return 0
    length = loops.lengths[axis]
    if length < _LEAST:
        return -int(length)
    lanes = min(most, 1 << (length.bit_length() - 1))
    while length % lanes >= _LEAST:  # which are copied one by one
        lanes //= 2
    return int(lanes)


def _reads_rows(loops: Loops, roles: Roles, panels: int) -> bool:
    """Return whether tiles read rows where they lie, though for each of the columns' panels."""
    k = plain_operand(loops, roles, right=False)
    step = 0 if k is None else loops.operands[k].offset.steps[roles.inner[-1]]
    return k is not None and (step == 1 or panels <= _NARROW)


def _even(count: int, most: int) -> int:
    """Return a size of parts, at most ``most``, that are about equal."""
    return -(-count // -(-count // most))


def _choose(m: int, n: int, lanes: int, machine: Machine) -> tuple[int, int]:
    """Return the rows and vectors of a tile: those that compute the fewest useless sums."""
    if lanes == 1:
        return 4, 4
    vectors = min((2, 1), key=lambda each: -(-n // (each * lanes)) * (each + 1))
    largest = machine.tile_rows or (12 if machine.registers >= _WIDE else 6)
    if m > 16 * largest:
        return largest, vectors
    candidates = [each for each in (12, 8, 6, 4) if each <= largest]
    if vectors == 1 and largest == 12:  # one vector a row leaves room for two rows more
        candidates.append(14)
    return min(candidates, key=lambda each: -(-m // each) * (each + 2)), vectors


def _set_blocks(loops: Loops, roles: Roles, split: int, depth: int) -> int:
    """Set how the inner axes are taken in blocks; return how many there are."""
    length = loops.lengths[roles.inner[split]]
    part = _even(length, max(1, depth // length_along(loops, roles.inner[split + 1 :])))
    chunks = -(-length // part)
    blocks = chunks * length_along(loops, roles.inner[:split])
    loops.values.update(part=part, chunks=chunks, blocks=blocks)
    return blocks
