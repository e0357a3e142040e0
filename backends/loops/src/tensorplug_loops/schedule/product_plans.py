"""The launches of a product: its kernels, and what adds up slices of its inner axes."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.plugin import Group, Reduction, TensorType, groups
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule import few_rows, group_shapes, products
from tensorplug_loops.schedule.exchange_tiles import ExchangeTiles
from tensorplug_loops.schedule.few_rows import FewRows
from tensorplug_loops.schedule.few_rows_kernel import FewRowsKernel
from tensorplug_loops.schedule.group_shapes import GroupTile
from tensorplug_loops.schedule.group_tiles import GroupTiles
from tensorplug_loops.schedule.lanes import cost
from tensorplug_loops.schedule.launches import Launch
from tensorplug_loops.schedule.loops import Loops
from tensorplug_loops.schedule.product_tiles import Tiles
from tensorplug_loops.schedule.products import accumulated, factored, roles_of
from tensorplug_loops.schedule.references import used
from tensorplug_loops.schedule.scaled_rows import ScaledRowsKernel
from tensorplug_loops.schedule.structures import parameter

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tensorplug.plugin import DType
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.products import Tile
    from tensorplug_loops.statements import Kernel

    Made = list[tuple[Kernel, list[int]]]


_KEPT: Final = 1024

_kernels: Final[dict[Hashable, Made]] = {}


class Parts(NamedTuple):
    """The launches of a product, in order, and the dtypes and sizes of its temporaries.

    Their arrays are numbered: the group's, then the temporaries. ``rest``: a group that writes the
    outputs, and the numbers of its inputs.
    """

    launches: list[Launch]
    temporaries: list[tuple[DType, int]]
    rest: tuple[Group, list[int]] | None = None


def parts_of(group: Group, machine: Machine) -> Parts | None:
    """Return the launches of a group that is a product; None if it is none that tiles suit."""
    both = factored(group)
    if both is None:
        return None
    loops = Loops(both)
    roles = roles_of(loops)
    if roles is None:
        return None
    few = few_rows.tile_of(loops, roles, machine)
    if few is not None:
        return _of_few_rows(loops, machine, few)
    if not roles.rows or not roles.columns or len(both.reductions) > 2:
        return None
    if machine.neighbours:
        shared = group_shapes.tile_of(loops, roles, machine)
        return None if shared is None else _by_groups(group, loops, machine, shared)
    tile = products.tile_of(loops, roles, machine)
    return None if tile is None else _by_items(group, loops, machine, tile)


def _kept(loops: Loops, machine: Machine, tile: Tile | GroupTile | FewRows) -> Made:
    key = loops.key(), machine, tile
    if key not in _kernels:
        if len(_kernels) >= _KEPT:
            del _kernels[next(iter(_kernels))]
        if isinstance(tile, GroupTile):
            writer = ExchangeTiles if machine.exchange else GroupTiles
            _kernels[key] = [writer(loops, machine, tile).write()]
        elif isinstance(tile, FewRows):
            made = (ScaledRowsKernel if tile.blocks else FewRowsKernel)(loops, machine, tile)
            _kernels[key] = [made.write()]
        else:
            _kernels[key] = Tiles(loops, machine, tile).write()
    return _kernels[key]


def _of_few_rows(loops: Loops, machine: Machine, tile: FewRows) -> Parts:
    value = loops.values
    ((kernel, arrays),) = _kept(loops, machine, tile)
    numbers = tuple([loops.value(each.name) for each in kernel.numbers])
    items = prod(loops.lengths[axis] for axis in tile.roles.batch) * value["groups_n"]
    steps = value["inner"] * value["size_n"] // tile.lanes
    count = len(loops.group.reductions)
    each = cost(loops.roots[tile.roles.right : count : 2]) + tile.rows * (count // 2)
    return Parts([Launch(kernel, tuple(arrays), numbers, items, steps * each, steps)], [])


def _by_groups(group: Group, loops: Loops, machine: Machine, tile: GroupTile) -> Parts:
    value, shape, dtype = loops.values, tile.shape, accumulated(loops.roots[0].dtype)
    matrices = value["slices"] * prod(loops.lengths[axis] for axis in tile.roles.batch)
    ((kernel, arrays),) = _kept(loops, machine, tile)
    numbers = tuple(loops.value(each.name) for each in kernel.numbers)
    items = matrices * value["tiles_m"] * value["tiles_n"]
    cost = shape.high * shape.wide * value["span"]
    own = tuple([at if at >= 0 else len(loops.operands) for at in arrays])
    launches = [Launch(kernel, own, numbers, items, cost, value["span"])]
    if not tile.slices:
        return Parts(launches, [])
    temporary = dtype, matrices * value["rows"] * value["columns"]
    rest = _sum_of_slices(group, value["slices"], len(loops.operands))
    return Parts(launches, [temporary], rest)


def _sum_of_slices(group: Group, count: int, temporary: int) -> tuple[Group, list[int]]:
    """Return the group that adds up slices and computes the outputs, and its inputs' numbers."""
    (reduction,) = group.reductions
    given, axes = reduction.expression.dtype, reduction.axes
    none = Reduction("sum", ex.constant(0, given), axes)
    group, read = used(replace(group, reductions=(none,)))
    dtype, inputs = accumulated(given), len(group.inputs)
    first = axes.index(True)
    order = [first, *(axis for axis, reduced in enumerate(axes) if not reduced)]
    lengths = [1 if reduced else n for n, reduced in zip(group.shape, axes, strict=True)]
    lengths[first] = count
    type_ = TensorType(dtype, tuple(lengths[axis] for axis in order))
    slices = groups.mapped(type_, [ex.axis(axis) for axis in order], tuple(lengths))
    values = [ex.parameter(k, each.type.dtype) for k, each in enumerate(group.inputs)]
    values.append(parameter(inputs + 1, dtype, given))
    whole = Group(
        f"{group.name}: sum of slices",
        tuple(lengths),
        (*group.inputs, slices),
        (Reduction("sum", ex.parameter(inputs, dtype), axes),),
        tuple(
            replace(each, expression=ex.substitute([each.expression], values)[0])
            for each in group.outputs
        ),
    )
    return whole, [*read, temporary]


def _by_items(group: Group, loops: Loops, machine: Machine, tile: Tile) -> Parts:
    value, dtype = loops.values, accumulated(loops.roots[0].dtype)
    batch = prod(loops.lengths[axis] for axis in tile.roles.batch)
    panels = batch * value["panels_n"]
    temporaries, launches, first = [], [], len(loops.operands)
    vectors = tile.rows * tile.vectors * (value["inner"] // value["slices"])
    counts = [
        (
            value["slices"] * batch * value["groups_m"] * value["groups_n"],
            value["size_m"] * value["size_n"] * vectors,
        )
    ]
    if tile.packs[1]:
        temporaries.append((dtype, panels * value["inner"] * tile.columns))
        of_panel = value["inner"] * tile.columns
        counts.insert(0, (panels * value["copies"], -(-of_panel // value["copies"])))
    if tile.blocked:
        size = panels * value["panels_m"] * tile.rows * tile.columns
        temporaries.append((dtype, value["slices"] * size))
    if tile.slices:
        size = batch * value["rows"] * value["columns"]
        temporaries.append((dtype, value["slices"] * size))
    for (kernel, arrays), (items, each) in zip(_kept(loops, machine, tile), counts, strict=True):
        numbers = tuple(loops.value(each.name) for each in kernel.numbers)
        own = tuple([at if at >= 0 else first - 1 - at for at in arrays])
        launches.append(Launch(kernel, own, numbers, items, each, each))
    if not tile.slices:
        return Parts(launches, temporaries)
    last = first + len(temporaries) - 1
    return Parts(launches, temporaries, _sum_of_slices(group, value["slices"], last))
