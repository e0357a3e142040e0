"""Moving blocks of cells between spatial axes and the batch or the channels."""

from __future__ import annotations

from tensorplug.plugin import Shape, TensorType, specs
from tensorplug_loops.forms.loops import Loops, flat, quotient, rest, unravel
from tensorplug_loops.forms.nn.windows import placed, taken
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

Pairs = tuple[tuple[int, int], ...]


@forms.form(specs.BATCH_TO_SPACE_ND)
def batch_to_space_nd(x: Operand, *, block_shape: Shape, crops: Pairs, out: TensorType) -> Form:
    """Read the cell of each place from the batch."""
    loops = Loops(out.shape)
    count = len(block_shape)
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
    loops = Loops(out.shape)
    count = len(block_shape)
    *cells, batch = unravel(loops.axes[0], (*block_shape, x.shape[0]))
    index = [
        at * block + cell - before
        for at, block, cell, (before, _) in zip(
            loops.axes[1 : count + 1], block_shape, cells, paddings, strict=True
        )
    ]
    return loops.write(out, loops.read(x, batch, *index, *loops.axes[count + 1 :], outside=0))


@forms.form(specs.DEPTH_TO_SPACE)
def depth_to_space(x: Operand, *, block_size: int, data_format: str, out: TensorType) -> Form:
    """Read the cell of each place from the channels."""
    loops = Loops(out.shape)
    batch, (row, column), channel = taken(data_format, loops.axes)
    cell = rest(row, block_size) * block_size + rest(column, block_size)
    depth = cell * out.shape[data_format.index("C")] + channel
    place = [quotient(row, block_size), quotient(column, block_size)]
    return loops.write(out, loops.read(x, *placed(data_format, batch, place, depth)))


@forms.form(specs.SPACE_TO_DEPTH)
def space_to_depth(x: Operand, *, block_size: int, data_format: str, out: TensorType) -> Form:
    """Read the place of each cell."""
    loops = Loops(out.shape)
    batch, places, depth = taken(data_format, loops.axes)
    sizes = (block_size, block_size, x.shape[data_format.index("C")])
    *cells, channel = unravel(depth, sizes)
    index = [at * block_size + cell for at, cell in zip(places, cells, strict=True)]
    return loops.write(out, loops.read(x, *placed(data_format, batch, index, channel)))
