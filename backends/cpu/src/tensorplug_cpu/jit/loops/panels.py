"""Matrices in panels: some neighbouring columns, row after row, as loops of products read them.

Where columns are left over, the last panel is filled up with zeros.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tensorplug_cpu.jit.codegen.functions import Function
from tensorplug_cpu.jit.loops.calls import address, dense, is_large, launch
from tensorplug_cpu.memory.pool import empty

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array
    from tensorplug_cpu.jit.loops.products import Size


_TOGETHER: Final = 4  # panels that are written at once: their columns are neighbours
_COPIED: Final = 4  # multiplications that take as long as to copy an element


def to_panels(matrices: Array, order: Array, size: Size) -> Array:
    """Return matrices [count, rows, columns] as [panels, matrices * rows, columns of a panel].

    ``order``: the numbers of the matrices, in the order in which they are to lie.
    """
    count, (_, rows, columns) = len(order), matrices.shape
    panel = size.lanes * size.vectors
    in_order = count == len(matrices) and (order[1:] > order[:-1]).all()
    if panel == columns and in_order and matrices.flags.c_contiguous:
        return dense(matrices)
    matrices = matrices if matrices.flags.aligned else dense(matrices)
    result = empty((-(-columns // panel), count * rows, panel), matrices.dtype)
    steps = [stride // matrices.itemsize for stride in matrices.strides]
    name, side_by_side = matrices.dtype.name, steps[-1] == 1
    function = panel_function(name, size.lanes, size.vectors, side_by_side=side_by_side)
    together = -(-len(result) // _TOGETHER)
    integers = together * count, count, rows, columns, *steps, len(result)
    pointers = address(matrices), address(result), address(order)
    launch(function, pointers, integers, shared=is_large(_COPIED * result.size))
    return result


@cache
def panel_function(dtype: str, lanes: int, vectors: int, *, side_by_side: bool) -> Any:
    """Return the function that copies matrices to panels.

    Its pointers: the matrices, the panels, the number of each matrix in their order, the counter
    of some neighbouring panels of a matrix. Its integers: how many of these there are; the
    matrices, rows and columns; the elements between matrices, rows and columns; the panels.

    ``side_by_side``: there are none between columns.
    """
    f = Function(
        "panels",
        dtype,
        ("matrices", "panels", "order", "counter"),
        ("count", "number", "rows", "columns", "apart", "step", "stride", "all"),
    )
    zero, panel = f.number(0.0, f.vector(lanes)), vectors * lanes
    between = f.multiply(f.multiply(f["number"], f["rows"]), panel)  # a panel and the next

    def copy(matrix: tuple[Any, Any], begin: Any, count: int, *, whole: bool) -> None:
        """Copy ``count`` panels from the one with number ``begin`` on, row by row."""
        source, target = matrix
        first = f.multiply(begin, panel)
        source = f.add(source, f.multiply(first, f["stride"]))
        target = f.add(target, f.multiply(begin, between))
        masks = [
            None if whole else f.mask(f.add(first, at * lanes), f["columns"], lanes)
            for at in range(vectors)
        ]
        with f.loop(0, f["rows"]) as row:
            here = f.add(source, f.multiply(row, f["step"]))
            for number in range(count):
                to = f.add(target, f.multiply(between, number), f.multiply(row, panel))
                for at, mask in enumerate(masks):
                    offset = number * panel + at * lanes
                    value = load(mask, f.add(here, f.multiply(f["stride"], offset)))
                    f.store(value, f["panels"], f.add(to, at * lanes))

    def load(mask: Any, offset: Any) -> Any:
        if lanes > 1 and not side_by_side:
            known = f.mask(0, lanes, lanes) if mask is None else mask
            return f.gather(known, zero, f["matrices"], offset, f["stride"])
        if mask is None:
            return f.load(f["matrices"], offset, lanes)
        return f.load_where(mask, zero, f["matrices"], offset)

    with f.taken(f["count"]) as item:
        number = f.builder.srem(item, f["number"])
        begin = f.multiply(f.builder.sdiv(item, f["number"]), _TOGETHER)
        source = f.multiply(f.whole(f["order"], number), f["apart"])
        matrix = source, f.multiply(f.multiply(number, f["rows"]), panel)
        end = f.least(f.add(begin, _TOGETHER), f["all"])
        full = f.builder.sdiv(f["columns"], f.number(panel))
        at = f.variable(begin)
        for count, stop in ((_TOGETHER, f.least(end, full)), (1, f.least(end, full))):
            with f.loop(at.get(), f.add(f.subtract(stop, count), 1), count) as panels:
                copy(matrix, panels, count, whole=True)
                at.set(f.add(panels, count))
        with f.loop(at.get(), end) as panels:
            copy(matrix, panels, 1, whole=False)
    return f.compiled()
