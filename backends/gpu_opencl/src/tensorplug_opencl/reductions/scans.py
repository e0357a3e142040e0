"""Running folds along the middle axis of [outer, length, inner] arrays.

If there are too few rows for the device, rows are cut into parts: the first pass folds each part,
the same code scans the totals, and the last pass runs through each part from the total before it.
A work-item runs alone, through multiple neighbouring rows at once on a CPU; on a GPU a group
shares a contiguous row, tile by tile through local memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorplug.plugin import DType, TensorType
from tensorplug_opencl.codegen import calls, ctypes, layouts, templates, vectors
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.reductions import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.codegen.folds import Fold
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime


GROUP: Final = 128  # work-items that share a row, if the device takes as many
PER_ITEM: Final = 8  # elements of a tile for each of them
PART: Final = 4096  # elements that are worth another work-item on a CPU
SHORTEST_PART: Final = 64  # elements of a part on a GPU if each work-item has a row


class Scan(NamedTuple):
    """The fold, its array, and the positions of its results."""

    title: str
    fold: Fold
    shape: tuple[int, int, int]
    exclusive: bool
    reverse: bool


class _Way(NamedTuple):
    """How rows are walked: in vectors of ``width``, or by groups of ``group`` if that is not 0."""

    width: int
    group: int
    parts: int


def make_scanner(
    runtime: Runtime, scan: Scan, source: DType, out: TensorType
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    """Return a callable of a buffer of ``source`` giving ``out``, of as many elements (not 0)."""
    way = _choose_way(runtime, scan, source, out.dtype)
    run = _launch(runtime, scan, way, source, out.dtype, totals=False)
    if way.parts == 1:
        return calls.make_producer(runtime, out, lambda x, y: run(x, x, y))
    between = out.dtype.compute
    outer, _, inner = scan.shape
    shape = (outer, way.parts, inner)
    totals = TensorType(between, shape)
    fold_parts = _launch(runtime, scan, way, source, between, totals=True)
    before = Scan(scan.title, scan.fold, shape, exclusive=True, reverse=False)
    carried = make_scanner(runtime, before, between, totals)
    make_totals = runtime.prepare_empty(totals)

    def write(x: DeviceBuffer, y: DeviceBuffer) -> None:
        sums = make_totals()
        fold_parts(x, x, sums)
        run(x, carried(sums), y)

    return calls.make_producer(runtime, out, write)


def _choose_way(runtime: Runtime, scan: Scan, source: DType, target: DType) -> _Way:
    outer, length, inner = scan.shape
    if runtime.is_cpu:
        used = scan.fold.element, ctypes.stored(source), ctypes.stored(target)
        widest = vectors.choose_lanes(runtime, *used)
        width = min(widest, 1 << (inner.bit_length() - 1))
        units = outer * -(-inner // width)
        idle = rows.PARTS * runtime.device.max_compute_units // units
        # Two walks instead of one are worth it only if cores would otherwise be idle.
        enough = units >= runtime.device.max_compute_units
        parts = 1 if enough else min(idle, length * width // PART)
        return _Way(width, 0, max(1, parts))
    if inner > 1:
        idle = runtime.parallel_items // (outer * inner)
        return _Way(1, 0, max(1, min(idle, length // SHORTEST_PART)))
    most = min(GROUP, runtime.device.max_work_group_size)
    group = 1 << (most.bit_length() - 1)
    idle = runtime.parallel_items // (outer * group)
    return _Way(1, group, max(1, min(idle, length // (group * PER_ITEM))))


def _launch(
    runtime: Runtime, scan: Scan, way: _Way, source: DType, target: DType, *, totals: bool
) -> Launch:
    """Return the launch (x, the start value of each part (x if there is one part), y)."""

    def of_size(group: int) -> Launch:
        return _launch_sized(
            runtime, scan, way._replace(group=group), source, target, totals=totals
        )

    return calls.shrink_until_allowed(of_size, way.group) if way.group else of_size(0)


def _launch_sized(
    runtime: Runtime, scan: Scan, way: _Way, source: DType, target: DType, *, totals: bool
) -> Launch:
    """Return the launch for groups of this size; 0: each work-item walks alone."""
    outer, length, inner = scan.shape
    strips = -(-inner // way.width)
    units = outer * way.parts * strips
    index = layouts.index_dtype(2 * outer * length * inner, units)
    carried = way.parts > 1 and not totals
    between = target.compute
    body = _write_by_groups(scan, way, target, totals=totals, carried=carried)
    if not way.group:
        body = _write_by_items(scan, way, source, target, totals=totals, carried=carried)
    element = scan.fold.element
    declarations = f"typedef {element if way.width == 1 else f'{element}{way.width}'} A;"
    if way.width > 1:
        moved = (ctypes.stored(dtype) for dtype in (source, between, target))
        declarations += f"\n{vectors.declare(way.width, *moved)}"
    kind = f"{'totals' if totals else 'runs'}{' from parts' if carried else ''}"
    text = templates.write_program(
        f"{scan.title} {source} to {target}: {kind} by {way.group or way.width}",
        [
            Array("x", ctypes.stored(source)),
            Array("carry", ctypes.stored(between if carried else source)),
            Array("y", ctypes.stored(target), written=True),
        ],
        [
            *templates.declare_indices("items", "parts", "length", "span", "inner"),
            "const int exclusive",
            "const int reverse",
        ],
        body,
        index=index,
        declarations=declarations,
    )
    span = -(-length // way.parts)
    runtime.check_steps(-(-span // (way.group or 1)))
    numbers = map(index.type, (units, way.parts, length, span, inner))
    flags = [np.int32(scan.exclusive), np.int32(scan.reverse)]
    if way.group:
        return runtime.launch(text, 3, [*numbers, *flags], units * way.group, group=way.group)
    return runtime.launch(text, 3, [*numbers, *flags], units, heavy=span > rows.LONG_WALK)


def _write_load(element: str, stored: str, width: int, pointer: str) -> str:
    if width == 1:
        return f"(A)(*({pointer}))"
    loaded = vectors.load(stored, width, pointer)
    return loaded if stored == element else f"convert_{element}{width}({loaded})"


def _write_store(element: str, stored: str, width: int, value: str, pointer: str) -> str:
    if width == 1:
        return f"*({pointer}) = ({stored})({value});"
    value = value if stored == element else f"convert_{stored}{width}({value})"
    return vectors.store(stored, width, pointer, value)


def _write_by_items(
    scan: Scan, way: _Way, source: DType, target: DType, *, totals: bool, carried: bool
) -> str:
    fold, width = scan.fold, way.width
    element, stored = fold.element, ctypes.stored(target)
    between = ctypes.stored(target.compute)
    begun = (
        f"{{ const A v = {_write_load(element, between, width, 'carry + part_at')}; {fold.step} }}"
    )
    keep = _write_store(element, stored, width, fold.result, "y + at")
    final = _write_store(element, stored, width, fold.result, "y + part_at")
    return f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t strips = (inner + {width - 1}) / {width};
  const index_t own = i / strips % parts, outer = i / strips / parts;
  // The last strip overlaps the one before it: both write the same.
  const index_t side = min(i % strips * {width}, inner - {width});
  const index_t part_at = (outer * parts + own) * inner + side;
  const index_t begin = min(length, own * span), end = min(length, begin + span);
  {fold.state}
  {begun if carried else ""}
  for (index_t c = begin; c < end; c++) {{
    const index_t at = (outer * length + (reverse ? length - 1 - c : c)) * inner + side;
    const A v = {_write_load(element, ctypes.stored(source), width, "x + at")};
    {"" if totals else f"if (exclusive) {{ {keep} }}"}
    {fold.step}
    {"" if totals else f"if (!exclusive) {{ {keep} }}"}
  }}
  {final if totals else ""}"""


def _write_by_groups(scan: Scan, way: _Way, target: DType, *, totals: bool, carried: bool) -> str:
    """Return the body for groups: tiles of ``PER_ITEM`` elements for each work-item.

    Each work-item folds its own elements in order, the group scans these totals, and each runs
    through its own elements again from there. All of them keep the compensated total before the
    tile.
    """
    fold, size, stored = scan.fold, way.group, ctypes.stored(target)
    tile = size * PER_ITEM
    neutral = f"(A)({fold.initial})"
    source = "row * length + (reverse ? length - 1 - c : c)"
    join = fold.join
    return f"""  local A held[{tile}];
  local A sums[{size}];
  const index_t i = get_group_id(0), lane = get_local_id(0);
  const index_t own = i % parts, row = i / parts;
  const index_t begin = min(length, own * span), end = min(length, begin + span);
  {fold.state}
  {f"{{ const A v = (A)carry[i]; {fold.step} }}" if carried else ""}
  for (index_t first = begin; first < end; first += {tile}) {{
    for (index_t at = lane; at < {tile}; at += {size}) {{
      const index_t c = first + at;
      held[at] = c < end ? (A)x[{source}] : {neutral};
    }}
    barrier(CLK_LOCAL_MEM_FENCE);
    A whole = {neutral};
    for (int k = 0; k < {PER_ITEM}; k++) {{
      const A v = held[lane * {PER_ITEM} + k];
      whole = {join("whole", "v")};
    }}
    sums[lane] = whole;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (index_t apart = 1; apart < {size}; apart *= 2) {{
      const A v = sums[lane], u = lane >= apart ? sums[lane - apart] : {neutral};
      barrier(CLK_LOCAL_MEM_FENCE);
      sums[lane] = {join("u", "v")};
      barrier(CLK_LOCAL_MEM_FENCE);
    }}
    const A carried = {fold.result};
    A inside = lane ? sums[lane - 1] : {neutral};
    for (int k = 0; k < {PER_ITEM}; k++) {{
      const A v = held[lane * {PER_ITEM} + k];
      const A after = {join("inside", "v")}, chosen = exclusive ? inside : after;
      held[lane * {PER_ITEM} + k] = {join("carried", "chosen")};
      inside = after;
    }}
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        ""
        if totals
        else f'''for (index_t at = lane; at < {tile}; at += {size}) {{
      const index_t c = first + at;
      if (c < end) y[{source}] = ({stored})held[at];
    }}'''
    }
    {{ const A v = sums[{size - 1}]; {fold.step} }}
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
  {f"if (lane == 0) y[i] = ({stored})({fold.result});" if totals else ""}"""
