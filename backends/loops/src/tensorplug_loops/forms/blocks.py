"""Moving blocks of cells between spatial axes and the batch or the channels."""

from __future__ import annotations

from tensorplug.algorithms import cells_first_permutation, plan_depth_rearrangement
from tensorplug.plugin import Shape, TensorType, specs
from tensorplug_loops.forms.loops import Loops, flat, quotient, rest
from tensorplug_loops.forms.movement import rearrange
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

Pairs = tuple[tuple[int, int], ...]


@forms.form(specs.BATCH_TO_SPACE_ND)
def batch_to_space_nd(x: Operand, *, block_shape: Shape, crops: Pairs, out: TensorType) -> Form:
    """Read the cell of each place from the batch."""
    count = len(block_shape)
    if not any(map(any, crops)):
        order = cells_first_permutation(x.rank, count)
        back = [order.index(axis) for axis in range(len(order))]
        return rearrange(x, (*block_shape, out.shape[0], *x.shape[1:]), back, out)
    loops = Loops(out.shape)
    places = [
        at + before for at, (before, _) in zip(loops.axes[1 : count + 1], crops, strict=True)
    ]
    cells = [rest(at, block) for at, block in zip(places, block_shape, strict=True)]
    outer = [quotient(at, block) for at, block in zip(places, block_shape, strict=True)]
    batch = flat([*cells, loops.axes[0]], (*block_shape, out.shape[0]))
    return loops.write(out, loops.read(x, batch, *outer, *loops.axes[count + 1 :]))


@forms.form(specs.SPACE_TO_BATCH_ND)
def space_to_batch_nd(x: Operand, *, block_shape: Shape, paddings: Pairs, out: TensorType) -> Form:
    """Read the place of each cell; outside of x are zeros."""
    count = len(block_shape)
    loops = Loops((*block_shape, x.shape[0], *out.shape[1:]))
    cells, (batch, *places) = loops.axes[:count], loops.axes[count:]
    index = [
        at * block + cell - before
        for at, block, cell, (before, _) in zip(
            places[:count], block_shape, cells, paddings, strict=True
        )
    ]
    return loops.write(out, loops.read(x, batch, *index, *places[count:], outside=0))


@forms.form(specs.DEPTH_TO_SPACE)
def depth_to_space(x: Operand, *, block_size: int, data_format: str, out: TensorType) -> Form:
    """Read the cell of each place from the channels."""
    return rearrange(
        x, *plan_depth_rearrangement(x.type, block_size, data_format, into_depth=False), out
    )


@forms.form(specs.SPACE_TO_DEPTH)
def space_to_depth(x: Operand, *, block_size: int, data_format: str, out: TensorType) -> Form:
    """Read the place of each cell."""
    return rearrange(
        x, *plan_depth_rearrangement(x.type, block_size, data_format, into_depth=True), out
    )
