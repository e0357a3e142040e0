"""Strided copies, for every family that moves elements without computing.

There are two programs. If one axis is dense in both arrays, or in neither, work-items copy runs
along the target's innermost axis. If the arrays are dense along different axes, as in a transpose,
groups carry square tiles through local memory, so that both sides are read and written in whole
lines.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import DType, Shape, TensorType, shapes
from tensorplug_opencl.codegen import calls, ctypes, layouts, templates
from tensorplug_opencl.runtime import LIGHT_GROUP

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.codegen.layouts import Layout, Strides
    from tensorplug_opencl.runtime import Launch, Runtime


TILE: Final = 32  # elements along either side of a tile
PRIVATE_TILE: Final = 16  # likewise of one that a single work-item carries
SHORTEST_SIDE: Final = 8  # of a block, below which tiles would be mostly empty
SHORTEST_RUN: Final = 16  # below which a CPU may copy along another axis
RUN: Final = 2048  # elements that one work-item of a CPU copies
HEAVY_RUN: Final = 32  # elements from which on a work-item counts as heavy
KEPT: Final = 256  # texts in memory, of each kind of copy
PER_ITEM: Final = 4  # elements that one work-item of a GPU copies in long runs


def is_dense(shape: Shape, strides: Strides) -> bool:
    """Return whether ``strides`` walk ``shape`` one element after the other."""
    own, contiguous = layouts.collapse(shape, [strides, layouts.row_major(shape)]).strides
    return own == contiguous


def make_mover(
    runtime: Runtime,
    dtype: DType,
    shape: Shape,
    source: Strides,
    target: Strides,
    reach: int,
    *,
    starts: tuple[int, int] = (0, 0),
) -> Launch:
    """Return the copy of ``shape`` (not empty) from strides ``source`` to strides ``target``.

    ``reach``: the number of elements in the larger of the two arrays. ``starts``: the first
    element in either; required if strides are negative.
    """
    layout = layouts.collapse(shape, [source, target])
    index = layouts.index_dtype(shapes.size(shape), reach)
    sides = _find_crossed_axes(layout)
    if sides is None:
        return _launch_runs(runtime, ctypes.moved(dtype), layout, starts, index)
    return _launch_tiles(runtime, ctypes.moved(dtype), layout, sides, starts, index)


def make_reader(
    runtime: Runtime,
    x: TensorType,
    shape: Shape,
    strides: Strides,
    out: TensorType,
    start: int = 0,
) -> Call:
    """Return a callable that reads x from ``start`` on with ``strides``, in ``out``'s order.

    ``strides`` are along the axes of ``shape``, which has as many elements as ``out``. The result
    shares the memory if they walk it one element after the other.
    """
    final = out.shape
    if not out.size:
        return calls.make_empty(runtime, out)
    if is_dense(shape, strides):
        if not start:
            return lambda x: x.view(final)
        return lambda x: x.view(final, start)
    target = layouts.row_major(shape)
    copy = make_mover(
        runtime, x.dtype, shape, strides, target, max(x.size, out.size), starts=(start, 0)
    )
    return calls.make_producer(runtime, out, copy)


class Pieces(NamedTuple):
    """How runs of a length are shared out: each run is copied by ``number`` work-items.

    Work-item p takes the elements ``p * first + k * step`` below ``p * first + span``. ``heavy``:
    each work-item copies much.
    """

    number: int
    first: int
    span: int
    step: int

    @property
    def heavy(self) -> bool:
        """Return whether work-items copy so much that groups should be small."""
        return self.span // self.step > HEAVY_RUN

    @property
    def sizes(self) -> dict[str, int]:
        """The constants of a program that copies them."""
        return dict(zip(("pieces", "first", "span", "step"), self, strict=True))

    @property
    def declare(self) -> str:
        """The C declarations of ``row`` and ``piece``, from i: without a division if possible."""
        if self.number == 1:
            return "const index_t row = i, piece = 0;"
        return "const index_t row = i / pieces, piece = i % pieces;"


def cut_pieces(runtime: Runtime, length: int) -> Pieces:
    """Return the pieces of runs of ``length`` elements.

    One after the other on a CPU, which has caches; interleaved on a GPU, whose neighbouring
    work-items then read neighbouring elements.
    """
    if runtime.is_cpu:
        span = min(length, RUN)
        return Pieces(-(-length // span), span, span, 1)
    count = -(-length // PER_ITEM) if length >= PER_ITEM * TILE else length
    return Pieces(count, 1, length, count)


def _find_crossed_axes(layout: Layout) -> tuple[int, int] | None:
    """Return the axes along which the source and the target are dense, if they differ."""
    dense = []
    for strides in layout.strides:
        along = [at for at, step in enumerate(strides) if step == 1]
        if not along or layout.sizes[along[-1]] < SHORTEST_SIDE:
            return None
        dense.append(along[-1])
    wide, tall = dense
    if wide == tall or min(layout.strides[0][tall], layout.strides[1][wide]) < 1:
        return None
    return wide, tall


def _drop_axes(layout: Layout, axes: tuple[int, ...]) -> Layout:
    kept = [axis for axis in range(layout.rank) if axis not in axes]
    return layouts.Layout(
        tuple(layout.sizes[axis] for axis in kept),
        tuple(tuple(stride[axis] for axis in kept) for stride in layout.strides),
    )


def _define_offsets(rank: int) -> str:
    """Return the struct of the outer axes, and the functions that find a run or a tile."""
    fields = [("size", rank), ("x_step", rank), ("y_step", rank)]
    if not rank:
        return ""
    return "\n".join(
        [
            templates.declare_layout(fields),
            templates.define_offset("x_offset", rank, "size", "x_step"),
            templates.define_offset("y_offset", rank, "size", "y_step"),
        ]
    )


def _write_start(side: str, rank: int, which: str) -> str:
    """Return the C expression for the start of the run or tile called ``which``."""
    return f"{side}_start" + (f" + {side}_offset({which}, layout)" if rank else "")


def _convert_starts(starts: tuple[int, int], index: templates.Index) -> list[Any]:
    return [np.int64(start).astype(index) for start in starts]


def _launch_runs(
    runtime: Runtime, ctype: str, layout: Layout, starts: tuple[int, int], index: templates.Index
) -> Launch:
    """Return the copy along the last axis, whose length and steps are constants."""
    last = _choose_run_axis(layout, any_axis=runtime.is_cpu)
    outer = _drop_axes(layout, (last,)) if layout.rank else layout
    length = layout.sizes[last] if layout.rank else 1
    steps = [stride[last] if layout.rank else 1 for stride in layout.strides]
    pieces = cut_pieces(runtime, length)
    items = shapes.size(outer.sizes) * pieces.number
    by = tuple(str(step) if step in (0, 1) else "" for step in steps)
    text = _write_run_source(
        ctype, outer.rank, by, pieces.declare, index, interleaved=not runtime.is_cpu
    )
    struct = layouts.pack([outer], index)
    constants = [
        *map(index.type, (items, length, *pieces)),
        *_convert_starts(starts, index),
        *map(np.int64, steps),
        *([] if struct is None else [struct]),
    ]
    return runtime.launch(text, 2, constants, items, heavy=pieces.heavy)


def _choose_run_axis(layout: Layout, *, any_axis: bool) -> int:
    """Return the axis to copy along: the last; or the source's, if that one is short."""
    last = layout.rank - 1
    if any_axis and layout.rank and layout.sizes[last] < SHORTEST_RUN:
        along = [at for at, step in enumerate(layout.strides[0]) if step == 1]
        if along and layout.sizes[along[-1]] >= SHORTEST_RUN:
            return along[-1]
    return last


@lru_cache(KEPT)
def _write_run_source(
    ctype: str,
    rank: int,
    steps: tuple[str, ...],
    declarations: str,
    index: templates.Index,
    *,
    interleaved: bool,
) -> str:
    """Return the program; steps of 0 and 1 stand in it, so that compilers see whole vectors."""
    by = [step or f"{side}_by" for step, side in zip(steps, "xy", strict=True)]
    body = f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  {declarations}
  global const {ctype} *restrict from = x + (index_t)({_write_start("x", rank, "row")});
  global {ctype} *restrict to = y + (index_t)({_write_start("y", rank, "row")});
  const long begin = piece * first;
  const long end = min((long)length, begin + (long)span);
  for (long k = begin; k < end; k += {"step" if interleaved else "1"})
    to[k * {by[1]}] = from[k * {by[0]}];"""
    names = ("items", "length", "pieces", "first", "span", "step", "x_start", "y_start")
    return templates.write_program(
        f"move {ctype} in runs",
        [templates.Array("x", ctype), templates.Array("y", ctype, written=True)],
        [
            *templates.declare_indices(*names),
            "const long x_by",
            "const long y_by",
            *(["const Layout layout"] if rank else []),
        ],
        body,
        index=index,
        declarations=_define_offsets(rank),
    )


def _launch_tiles(
    runtime: Runtime,
    ctype: str,
    layout: Layout,
    sides: tuple[int, int],
    starts: tuple[int, int],
    index: templates.Index,
) -> Launch:
    """Return the copy by tiles over the axis dense in the source and the one in the target."""
    wide, tall = sides
    outer = _drop_axes(layout, sides)
    width, height = layout.sizes[wide], layout.sizes[tall]
    struct = layouts.pack([outer], index)
    steps = (layout.strides[0][tall], layout.strides[1][wide])

    def of_side(side: int) -> Launch:
        across, down = -(-width // side), -(-height // side)
        tiles = shapes.size(outer.sizes) * across * down
        constants = [
            *map(index.type, (tiles, across, down, width, height)),
            *_convert_starts(starts, index),
            *_convert_starts(steps, index),
            *([] if struct is None else [struct]),
        ]
        if runtime.is_cpu:
            text = _write_tile_source(ctype, outer.rank, index, side, _BY_ITEM)
            return runtime.launch(text, 2, constants, tiles, heavy=True)
        text = _write_tile_source(ctype, outer.rank, index, side, _BY_GROUP)
        return runtime.launch(text, 2, constants, tiles * LIGHT_GROUP)

    return of_side(PRIVATE_TILE) if runtime.is_cpu else calls.shrink_until_allowed(of_side, TILE)


# For every size of groups, each takes one tile after the other. Rows of the tile are one element
# longer than needed: a column then lies in as many banks of local memory as it has elements.
_BY_GROUP: Final = """  local T tile[SIDE * (SIDE + 1)];
  const index_t own = get_local_id(0), items = get_local_size(0);
  for (index_t at = get_group_id(0); at < tiles; at += get_num_groups(0)) {
    const index_t left = at % across * SIDE, top = at / across % down * SIDE;
    const index_t from = FROM(at / across / down) + left + top * x_by;
    const index_t to = TO(at / across / down) + top + left * y_by;
    for (index_t k = own; k < SIDE * SIDE; k += items) {
      const index_t row = k / SIDE, column = k % SIDE;
      if (left + column < width && top + row < height)
        tile[row * (SIDE + 1) + column] = x[from + row * x_by + column];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (index_t k = own; k < SIDE * SIDE; k += items) {
      const index_t row = k / SIDE, column = k % SIDE;
      if (left + row < width && top + column < height)
        y[to + row * y_by + column] = tile[column * (SIDE + 1) + row];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }"""
# One work-item of a CPU carries a tile alone: in registers and its nearest cache.
_BY_ITEM: Final = """  const index_t at = get_global_id(0);
  if (at >= tiles) return;
  const index_t left = at % across * SIDE, top = at / across % down * SIDE;
  global const T *restrict from = x + (index_t)(FROM(at / across / down) + left + top * x_by);
  global T *restrict to = y + (index_t)(TO(at / across / down) + top + left * y_by);
  if (left + SIDE <= width && top + SIDE <= height) {
    T tile[SIDE * SIDE];
    for (int row = 0; row < SIDE; row++)
      for (int column = 0; column < SIDE; column++)
        tile[row * SIDE + column] = from[(ulong)row * x_by + column];
    for (int row = 0; row < SIDE; row++)
      for (int column = 0; column < SIDE; column++)
        to[(ulong)row * y_by + column] = tile[column * SIDE + row];
    return;
  }
  for (index_t row = 0; row < min((index_t)SIDE, width - left); row++)
    for (index_t column = 0; column < min((index_t)SIDE, height - top); column++)
      to[(ulong)row * y_by + column] = from[(ulong)column * x_by + row];"""


@lru_cache(KEPT)
def _write_tile_source(ctype: str, rank: int, index: templates.Index, side: int, body: str) -> str:
    names = ("tiles", "across", "down", "width", "height", "x_start", "y_start", "x_by", "y_by")
    macros = [
        f"#define T {ctype}",
        f"#define SIDE {side}",
        f"#define FROM(block) ({_write_start('x', rank, 'block')})",
        f"#define TO(block) ({_write_start('y', rank, 'block')})",
    ]
    return templates.write_program(
        f"move {ctype} in tiles",
        [templates.Array("x", ctype), templates.Array("y", ctype, written=True)],
        [*templates.declare_indices(*names), *(["const Layout layout"] if rank else [])],
        body,
        index=index,
        declarations="\n".join([*macros, _define_offsets(rank)]),
    )
