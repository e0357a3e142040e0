"""Stable sorts of rows: blocks by a network, then merges of ever longer runs.

Blocks are sorted in local memory: by the vectors of one work-item on a CPU, by a group of
work-items elsewhere. What is sorted has a total order, except for equal elements without indices,
which are the same: so networks, which are not stable, keep the order of equals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import DType, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, layouts, templates, vectors
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.ordering import blocks, networks
from tensorplug_opencl.ordering.keys import Keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.ordering.blocks import Rows
    from tensorplug_opencl.runtime import Launch, Runtime

    Sorter = Callable[[DeviceBuffer], DeviceBuffer]


CHUNK: Final = {True: 4096, False: 16}  # elements that a work-item merges; on a CPU or not


def make_sorter(
    runtime: Runtime, dtype: DType, count: int, length: int, *, descending: bool
) -> Sorter:
    """Return a callable of a dense [count, length] buffer giving the int32 indices that sort it.

    Equals keep the order of their indices, in descending order too.
    """
    return _make_sorter(runtime, Keys(dtype, descending, indexed=True), count, length)


def make_value_sorter(
    runtime: Runtime, dtype: DType, count: int, length: int, *, descending: bool
) -> Sorter | None:
    """Return a callable of a dense [count, length] buffer giving the sorted elements.

    Zeros of either sign keep their order. None where it is best to sort indices.
    """
    keys = Keys(dtype, descending, indexed=False)
    if not blocks.sorts_vectors(runtime, keys):
        return None
    sort = _make_sorter(runtime, keys, count, length)
    if dtype.kind != "float":
        return sort
    restore = _launch_restore(runtime, dtype, count, length, descending=descending)

    def run(x: DeviceBuffer) -> DeviceBuffer:
        result = sort(x)
        restore(x, result)
        return result

    return run


def _make_sorter(runtime: Runtime, keys: Keys, count: int, length: int) -> Sorter:
    rows, begin = blocks.launch_first(runtime, keys, count, length)
    shown = dt.int32 if keys.indexed else keys.dtype
    out = TensorType(shown, (count, length))
    if rows.blocks == 1:
        return calls.make_producer(runtime, out, begin)
    # The vectors of a CPU may be read two beyond the last element.
    make_elements = runtime.prepare_empty(keys.buffer(count * rows.padded + 2 * vectors.WIDEST))
    wide = blocks.sorts_vectors(runtime, keys)
    merge_runs = _launch_vector_merge if wide else _launch_merge
    merges: list[Launch] = []
    run = rows.block
    while run < rows.padded:
        merges.append(merge_runs(runtime, keys, rows, run, last=2 * run >= rows.padded))
        run *= 2

    def sort(x: DeviceBuffer, result: DeviceBuffer) -> None:
        elements = make_elements()
        begin(x, elements)
        if len(merges) > 1:
            others = make_elements()
            for merge in merges[:-1]:
                merge(elements, others)
                elements, others = others, elements
        merges[-1](elements, result)

    return calls.make_producer(runtime, out, sort)


# Finds how many elements before a work-item's chunk come from the first of two runs: by a search
# on the diagonal on which the chunk begins (the "merge path").
_SPLIT: Final = """  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t row = i / chunks, begin = i % chunks * chunk;
  const index_t start = begin / (2 * run) * (2 * run);
  const index_t middle = min(start + run, length), end = min(middle + run, length);
  const index_t ahead = begin - start, firsts = middle - start, seconds = end - middle;
  x += row * length; y += row * stride;
  index_t low = ahead > seconds ? ahead - seconds : 0, high = min(ahead, firsts);
  while (low < high) {
    const index_t half_way = (low + high) / 2;
    if (!after(x[start + half_way], x[middle + ahead - 1 - half_way])) low = half_way + 1;
    else high = half_way;
  }
  index_t a = start + low, b = middle + ahead - low;
"""


def _launch_merge(runtime: Runtime, keys: Keys, rows: Rows, run: int, *, last: bool) -> Launch:
    """Return the launch that merges neighbouring runs of ``run`` elements of each row."""
    ctype, show = blocks.choose_target(keys, last=last)
    body = f"""{_SPLIT}  const index_t stop = min(begin + chunk, min(end, stride));
  for (index_t at = begin; at < stop; at++) {{
    const int first = a < middle && (b >= end || !after(x[a], x[b]));
    const E e = x[first ? a : b];
    y[at] = {show.format("e")};
    a += first;
    b += !first;
  }}"""
    return _launch_chunks(runtime, keys, rows, run, ctype, keys.define(), body, last=last)


def _launch_vector_merge(
    runtime: Runtime, keys: Keys, rows: Rows, run: int, *, last: bool
) -> Launch:
    """Return the same launch with vectors: each is merged with the greatest elements so far.

    A vector comes from the run with the lesser next element. So of these elements and the vector,
    the lesser half comes before all others.
    """
    width = vectors.choose_lanes(runtime, keys.lane)
    ctype, _ = blocks.choose_target(keys, last=last)
    declarations = [
        vectors.define_parts(width, keys.lane, keys.result, ctypes.stored(keys.dtype)),
        keys.define(),
        networks.define_vectors(keys, width),
        keys.define_wide(width),
    ]
    take = f"""    const int first = a < middle && (b >= end || !after(x[a], x[b]));
    const index_t from = first ? a : b, to = first ? middle : end;
    V v = cut(load_all(x + from), from < to ? min(to - from, (index_t){width}) : 0);
    if (first) a += {width}; else b += {width};"""
    write = (
        f"write_{ctype}(y + at, shown_all(v), stride - at);" if last else "store_all(y + at, v);"
    )
    body = f"""{_SPLIT}  const index_t stop = min(begin + chunk, min(end, stride));
  V rest;
  {{
{take}
    rest = v;
  }}
  for (index_t at = begin; at < stop; at += {width}) {{
{take}
    V w = turn_{width - 1}(v);
    exchange(&rest, &w);
    v = merge_{width}(rest);
    {write}
    rest = merge_{width}(w);
  }}"""
    return _launch_chunks(
        runtime, keys, rows, run, ctype, "\n".join(declarations), body, last=last
    )


def _launch_chunks(
    runtime: Runtime,
    keys: Keys,
    rows: Rows,
    run: int,
    ctype: str,
    declarations: str,
    body: str,
    *,
    last: bool,
) -> Launch:
    chunk = min(CHUNK[runtime.is_cpu], 2 * run)
    chunks = -(-rows.padded // chunk)
    index = layouts.index_dtype(2 * rows.number * rows.padded)
    text = templates.write_program(
        f"merge runs of {keys.describe()}, {'whole' if last else 'in part'}",
        [Array("x", "E"), Array("y", ctype, written=True)],
        templates.declare_indices("items", "length", "run", "chunk", "chunks", "stride"),
        body,
        index=index,
        declarations=declarations,
    )
    items, stride = rows.number * chunks, rows.length if last else rows.padded
    constants = map(index.type, (items, rows.padded, run, chunk, chunks, stride))
    return runtime.launch(text, 2, [*constants], items, heavy=chunk > CHUNK[False])


def _launch_restore(
    runtime: Runtime, dtype: DType, count: int, length: int, *, descending: bool
) -> Launch:
    """Return the launch that gives the zeros of sorted rows the signs that they had, in order.

    It does nothing to rows whose zeros have the same sign: that of the first and the last one.
    """
    before = "!(v <= 0)" if descending else "v < 0"
    stored = ctypes.stored(dtype)
    return calls.launch_sized(
        runtime,
        f"signs of zeros of {dtype} {'down' if descending else 'up'}",
        [Array("x", stored), Array("y", stored, written=True)],
        {"items": count, "length": length},
        f"""  x += i * length; y += i * length;
  index_t first = 0, end = length;
  while (first < end) {{
    const index_t half_way = (first + end) / 2;
    const A v = (A)y[half_way];
    if ({before}) first = half_way + 1;
    else end = half_way;
  }}
  index_t low = first;
  end = length;
  while (low < end) {{
    const index_t half_way = (low + end) / 2;
    if ((A)y[half_way] == 0) low = half_way + 1;
    else end = half_way;
  }}
  if (first == end || !signbit((A)y[first]) == !signbit((A)y[end - 1])) return;
  for (index_t at = 0; first < end; at++)
    if ((A)x[at] == 0) y[first++] = x[at];""",
        index=layouts.index_dtype(count * length),
        declarations=f"typedef {ctypes.computed(dtype)} A;",
        heavy=True,
    )
