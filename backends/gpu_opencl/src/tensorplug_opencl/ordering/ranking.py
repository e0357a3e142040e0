"""Searches for the first element of each row: the largest or smallest, the first of equals.

A NaN comes before all numbers. Elements and indices together have a total order, so that parts of
a row can be searched separately, and their candidates after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import DType, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, folds, vectors
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.reductions import rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug_opencl.codegen.folds import Fold
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.reductions.rows import Walk
    from tensorplug_opencl.runtime import Launch, Runtime


# Of (a, its index) and (b, its index), which are different indices.
_BEFORE: Final = """
int before(A a, int a_index, A b, int b_index) {{
  if (a {sign} b || (a != a && b == b)) return 1;
  if (b {sign} a || (b != b && a == a)) return 0;
  return a_index < b_index;
}}"""
BLOCK: Final = 512  # elements whose best is searched for, in vectors, before its position
CHAINS: Final = 4  # vectors of a block that are compared at once


def arg_max(
    runtime: Runtime, walk: Walk, dtype: DType, out: TensorType
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    """Return a callable giving the int32 index of each row's first largest element."""
    return _find_first(runtime, walk, dtype, out, _BEFORE.format(sign=">"), folds.max_fold(dtype))


def arg_min(
    runtime: Runtime, walk: Walk, dtype: DType, out: TensorType
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    """Return a callable giving the int32 index of each row's first smallest element."""
    return _find_first(runtime, walk, dtype, out, _BEFORE.format(sign="<"), folds.min_fold(dtype))


def _find_first(
    runtime: Runtime, walk: Walk, dtype: DType, out: TensorType, order: str, best: Fold
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    contiguous = walk.reduced.rank == 1 and walk.reduced.strides[0] == (1,)
    by_blocks = contiguous and runtime.is_cpu
    search = _launch_blocks if by_blocks else _launch_walk
    parts_of = rows.count_parts_on_cpu if by_blocks else rows.count_parts
    parts = parts_of(runtime, walk.outputs, walk.length)
    if parts == 1:
        return calls.make_producer(runtime, out, search(runtime, walk, dtype, 1, order, best))
    make_parts = runtime.prepare_empty(TensorType(dt.int32, (walk.outputs, parts)))
    begin = search(runtime, walk, dtype, parts, order, best)
    finish = _launch_final(runtime, walk, dtype, parts, order)

    def write(x: DeviceBuffer, y: DeviceBuffer) -> None:
        candidates = make_parts()
        begin(x, candidates)
        finish(x, candidates, y)

    return calls.make_producer(runtime, out, write)


def _launch(
    runtime: Runtime,
    title: str,
    walk: Walk,
    dtype: DType,
    sizes: Mapping[str, int],
    body: str,
    functions: str,
    steps: int,
    *,
    among: bool = False,
) -> Launch:
    """Return the launch (x, y), or if ``among`` candidates (x, candidates, y)."""
    candidates = [Array("candidates", "int")] if among else []
    arrays = [Array("x", ctypes.stored(dtype)), *candidates, Array("y", "int", written=True)]
    declarations = [f"typedef {ctypes.computed(dtype)} A;", functions]
    title = f"first {title} {dtype}"
    return rows.launch_walk(runtime, walk, title, arrays, sizes, body, declarations, steps)


def _launch_walk(
    runtime: Runtime, walk: Walk, dtype: DType, parts: int, order: str, _best: Fold
) -> Launch:
    """Return the launch giving, for each part of each row, the index that comes first.

    The parts of a row are interleaved, so that neighbouring work-items read neighbouring elements:
    of one row or, if each has one part, of neighbouring rows.
    """
    body = f"""  x += {walk.row("i / parts")};
  int best = -1;
  A best_value = 0;
  for (index_t r = i % parts; r < length; r += parts) {{
    const A v = (A)x[{walk.element("r")}];
    if (best < 0 || before(v, (int)r, best_value, best)) {{ best = (int)r; best_value = v; }}
  }}
  y[i] = best;"""
    sizes = {"items": walk.outputs * parts, "parts": parts, "length": walk.length}
    steps = walk.length // parts
    return _launch(runtime, "by walking", walk, dtype, sizes, body, order, steps)


def _launch_blocks(
    runtime: Runtime, walk: Walk, dtype: DType, parts: int, order: str, best: Fold
) -> Launch:
    """Return the same launch for contiguous rows; it finds the best of blocks in vectors.

    It then searches only the block with the best element for its position.
    """
    width = vectors.choose_lanes(runtime, best.element, ctypes.stored(dtype))
    element, stored = best.element, ctypes.stored(dtype)
    load = vectors.load(stored, width, "x + at")
    wide = load if element == stored else f"convert_{element}{width}({load})"
    states = [f"acc{number}" for number in range(CHAINS)]
    steps = [f"{{ const A v = {wide}; {best.take(state)} at += {width}; }}" for state in states]
    joins = " ".join(best.take(states[0], state) for state in states[1:])
    sign = "<" if "a <" in order else ">"
    body = f"""  x += {walk.row("i / parts")};
  const index_t begin = i % parts * span, end = min(length, begin + span);
  A best = 0;
  index_t best_at = end;
  for (index_t block = begin; block < end; block += {BLOCK}) {{
    const index_t limit = min(end, block + {BLOCK});
    index_t at = block;
    union {{ A lane[{width}]; {element}{width} all; }} lanes;
    {{
      typedef {element}{width} A;
      {" ".join(map(best.declare, states))}
      while (at + {CHAINS * width} <= limit) {{
        {" ".join(steps)}
      }}
      while (at + {width} <= limit) {steps[0]}
      {joins}
      lanes.all = acc0;
      if (at == limit && best_at != end && !any((acc0 {sign} best) | (acc0 != acc0))) continue;
    }}
    {best.declare("acc")}
    for (int lane = 0; lane < {width}; lane++) {{ const A v = lanes.lane[lane]; {best.step} }}
    for (; at < limit; at++) {{ const A v = (A)x[at]; {best.step} }}
    if (best_at == end || before(acc, 1, best, 0)) {{ best = acc; best_at = block; }}
  }}
  while (best_at + 1 < end && (A)x[best_at] != best && !(best != best && x[best_at] != x[best_at]))
    best_at++;
  y[i] = best_at;"""
    span = -(-walk.length // parts)
    sizes = {"items": walk.outputs * parts, "parts": parts, "length": walk.length, "span": span}
    functions = f"{order}\n{vectors.declare(width, stored)}"
    return _launch(runtime, "by blocks", walk, dtype, sizes, body, functions, span)


def _launch_final(runtime: Runtime, walk: Walk, dtype: DType, parts: int, order: str) -> Launch:
    """Return the launch giving, for each row, the first of its parts' candidates."""
    body = f"""  x += {walk.row("i")};
  int best = -1;
  A best_value = 0;
  for (index_t part = 0; part < parts; part++) {{
    const int at = candidates[i * parts + part];
    const A v = (A)x[{walk.element("at")}];
    if (best < 0 || before(v, at, best_value, best)) {{ best = at; best_value = v; }}
  }}
  y[i] = best;"""
    sizes = {"items": walk.outputs, "parts": parts}
    return _launch(runtime, "of candidates", walk, dtype, sizes, body, order, parts, among=True)
