"""Stable sorts of rows: blocks by a network, then merges of ever longer runs.

Blocks are sorted in local memory: by the vectors of one work-item on a CPU, by a group of
work-items elsewhere. What is sorted has a total order, except for equal elements without indices,
which cannot be told apart: so networks, which are not stable, keep the order of equals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.plugin import DType, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, ctypes, networks, templates, vectors
from tensorplug_opencl.kernels.keys import Keys
from tensorplug_opencl.kernels.templates import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime

    Sorter = Callable[[DeviceBuffer], DeviceBuffer]

__all__ = ["ALONE", "make_sorter", "make_value_sorter", "sorts_vectors"]

SMALLEST: Final = 2  # elements in a block, of one work-item
NETWORK: Final = 256  # work-items that sort a block of twice as many, if the device takes them
BLOCK_BYTES: Final = 1 << 17  # of a block in vectors, which a core's own cache holds
BATCH: Final = 4096  # elements that a work-item sorts in vectors, at least, if rows are short
CHUNK: Final = {True: 4096, False: 16}  # elements that a work-item merges; on a CPU or not
ALONE: Final = "__attribute__((reqd_work_group_size(1, 1, 1)))"


def sorts_vectors(runtime: Runtime, keys: Keys) -> bool:
    """Return whether a work-item sorts blocks in vectors."""
    return runtime.is_cpu and vectors.choose_lanes(runtime, keys.lane) > 1


def make_sorter(
    runtime: Runtime, dtype: DType, count: int, length: int, *, descending: bool
) -> Sorter:
    """Return a callable of a dense [count, length] buffer giving the int32 indices that sort it.

    Equals keep the order of their indices, in descending order too.
    """
    return _make_sorter(runtime, Keys(dtype, descending, placed=True), count, length)


def make_value_sorter(
    runtime: Runtime, dtype: DType, count: int, length: int, *, descending: bool
) -> Sorter | None:
    """Return a callable of a dense [count, length] buffer giving the sorted elements.

    Zeros of either sign keep their order. None where it is best to sort indices.
    """
    keys = Keys(dtype, descending, placed=False)
    if not sorts_vectors(runtime, keys):
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


class _Rows(NamedTuple):
    """Rows to sort: ``number`` of ``length`` elements each, in blocks of ``block``."""

    number: int
    length: int
    block: int

    @property
    def blocks(self) -> int:
        """The number of blocks of a row."""
        return -(-self.length // self.block)

    @property
    def padded(self) -> int:
        """The number of elements of a row's blocks."""
        return self.blocks * self.block


def _make_sorter(runtime: Runtime, keys: Keys, count: int, length: int) -> Sorter:
    wide = sorts_vectors(runtime, keys)
    prepare = _launch_blocks if wide else _launch_network

    def begin_with(block: int) -> tuple[_Rows, Launch]:
        rows = _Rows(count, length, block)
        return rows, prepare(runtime, keys, rows)

    block = _choose_block(runtime, keys, length, wide=wide)
    rows, begin = calls.shrink_until_allowed(begin_with, block, SMALLEST)
    shown = dt.int32 if keys.placed else keys.dtype
    out = TensorType(shown, (count, length))
    if rows.blocks == 1:
        return calls.make_producer(runtime, out, begin)
    # The vectors of a CPU may be read two beyond the last element.
    make_elements = runtime.prepare_empty(keys.buffer(count * rows.padded + 2 * vectors.WIDEST))
    merge_runs = _launch_vector_merge if wide and not keys.paired else _launch_merge
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


def _choose_block(runtime: Runtime, keys: Keys, length: int, *, wide: bool) -> int:
    """Return the length of the blocks that are sorted first: a power of two."""
    room = runtime.device.local_mem_size // 2 // keys.itemsize
    wanted = 1 << max(length - 1, 1).bit_length()
    if wide:
        most = min(BLOCK_BYTES // keys.itemsize, room)
        least = vectors.choose_lanes(runtime, keys.lane)
    else:
        most = min(2 * NETWORK, 2 * runtime.device.max_work_group_size, room)
        least = SMALLEST
    return max(least, min(1 << (most.bit_length() - 1), wanted))


def _choose_target(keys: Keys, *, last: bool) -> tuple[str, str, str]:
    """Return the C type of what a launch writes, and how it shows one and a vector of them."""
    if last:
        return keys.result, "shown({})", "shown_all({})"
    return "E", "{}", "{}"


def _launch_network(runtime: Runtime, keys: Keys, rows: _Rows) -> Launch:
    """Return the launch in which groups sort blocks: a network in local memory."""
    half = rows.block // 2
    ctype, show, _ = _choose_target(keys, last=rows.blocks == 1)
    index = layouts.index_dtype(2 * rows.number * rows.padded)
    text = templates.write_program(
        f"sort blocks of {rows.block} {keys.describe()}, {'whole' if ctype != 'E' else 'in part'}",
        [Array("x", ctypes.stored(keys.dtype)), Array("y", ctype, written=True)],
        templates.declare_indices("length", "blocks", "stride"),
        f"""  local E held[{rows.block}];
  const int lane = get_local_id(0);
  const index_t row = get_group_id(0) / blocks;
  const index_t first = get_group_id(0) % blocks * {rows.block};
  x += row * length; y += row * stride;
  for (int at = lane; at < {rows.block}; at += {half}) {{
    const index_t place = first + at;
    held[at] = place < length ? element(key((A)x[place]), (int)place) : last();
  }}
  network(held, lane, {rows.block});
  for (int at = lane; at < {rows.block}; at += {half})
    if (first + at < stride) y[first + at] = {show.format("held[at]")};""",
        index=index,
        declarations=f"{keys.define()}\n{networks.define_network()}",
    )
    stride = rows.length if rows.blocks == 1 else rows.padded
    constants = map(index.type, (rows.length, rows.blocks, stride))
    return runtime.launch(text, 2, [*constants], rows.number * rows.blocks * half, group=half)


def _launch_blocks(runtime: Runtime, keys: Keys, rows: _Rows) -> Launch:
    """Return the launch in which work-items sort blocks in vectors."""
    width = vectors.choose_lanes(runtime, keys.lane)
    m, last = rows.block // width, rows.blocks == 1
    ctype, show, show_all = _choose_target(keys, last=last)
    index = layouts.index_dtype(2 * rows.number * rows.padded)
    room = m if m <= networks.REGISTERS else _room(runtime, keys) // width
    stored = ctypes.stored(keys.dtype)
    written = ctype if last else keys.lane
    declarations = [
        vectors.declare(width, stored, written),
        keys.define(),
        networks.define_vectors(keys, width),
        keys.define_wide(width),
        networks.define_block_sort(width, m),
    ]
    if m < width or (keys.paired and not last):
        write = f"""    for (int at = 0; at < limit; at++)
      to[at] = {show.format(f"get(held, at % m * {width} + at / m)")};"""
    else:
        declarations += [
            networks.define_transpose(written, width),
            _define_store(written, width),
        ]
        write = f"""    for (int at = 0; at < m; at += {width}) {{
      {written}{width} r[{width}];
      for (int k = 0; k < {width}; k++) r[k] = {show_all.format("held[at + k]")};
      transpose(r);
      for (int k = 0; k < {width}; k++) store(to + k * m + at, limit - k * m - at, r[k]);
    }}"""
    text = templates.write_program(
        f"sort blocks of {m if m <= networks.REGISTERS else 'many'} vectors of {keys.describe()}, "
        f"{'whole' if last else 'in part'}",
        [Array("x", stored), Array("y", ctype, written=True)],
        templates.declare_indices("items", "length", "block", "blocks", "stride", "batch"),
        f"""  local V held[{room}];
  const int m = block / {width};
  const index_t end = min(items, (index_t)(get_group_id(0) + 1) * batch);
  for (index_t item = get_group_id(0) * batch; item < end; item++) {{
    const index_t first = item % blocks * block, span = min(block, length - first);
    const int limit = (int)min(block, stride - first);
    global const {stored} *from = x + item / blocks * length + first;
    for (int at = 0; at < block; at += {width}) {{
      if (at + {width} <= span) {{
        held[at / {width}] = elements(keys_all(from + at), (int)first + at);
        continue;
      }}
      for (int k = at; k < at + {width}; k++)
        put(held, k, k < span ? element(key((A)from[k]), (int)first + k) : last());
    }}
    sort_block(held, m);
    global {ctype} *to = y + item / blocks * stride + first;
{write}
  }}""",
        index=index,
        declarations="\n".join([*declarations, ALONE]),
    )
    items = rows.number * rows.blocks
    batch = max(1, BATCH // rows.block)
    stride = rows.length if last else rows.padded
    numbers = (items, rows.length, rows.block, rows.blocks, stride, batch)
    constants = map(index.type, numbers)
    return runtime.launch(text, 2, [*constants], -(-items // batch), group=1)


def _room(runtime: Runtime, keys: Keys) -> int:
    """Return the length of the longest block that is sorted in vectors."""
    most = min(BLOCK_BYTES, runtime.device.local_mem_size // 2) // keys.itemsize
    return 1 << (most.bit_length() - 1)


def _define_store(ctype: str, width: int) -> str:
    """Return ``store(to, left, v)``: it writes a vector, or what is ``left`` to be written."""
    return f"""INLINE void store(global {ctype} *to, const long left, const {ctype}{width} v) {{
  if (left >= {width}) {{ {vectors.store(ctype, width, "to", "v")} return; }}
  union {{ {ctype}{width} all; {ctype} lane[{width}]; }} u;
  u.all = v;
  for (int k = 0; k < left; k++) to[k] = u.lane[k];
}}"""


# Finds how many elements before a work-item's chunk come from the first of two runs: by a search
# on the diagonal on which the chunk begins (the "merge path").
_SPLIT: Final = """  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t row = i / chunks, place = i % chunks * chunk;
  const index_t start = place / (2 * run) * (2 * run);
  const index_t middle = min(start + run, length), end = min(middle + run, length);
  const index_t ahead = place - start, firsts = middle - start, seconds = end - middle;
  x += row * length; y += row * stride;
  index_t low = ahead > seconds ? ahead - seconds : 0, high = min(ahead, firsts);
  while (low < high) {
    const index_t half_way = (low + high) / 2;
    if (!after(x[start + half_way], x[middle + ahead - 1 - half_way])) low = half_way + 1;
    else high = half_way;
  }
  index_t a = start + low, b = middle + ahead - low;
"""


def _launch_merge(runtime: Runtime, keys: Keys, rows: _Rows, run: int, *, last: bool) -> Launch:
    """Return the launch that merges neighbouring runs of ``run`` elements of each row."""
    ctype, show, _ = _choose_target(keys, last=last)
    body = f"""{_SPLIT}  const index_t stop = min(place + chunk, min(end, stride));
  for (index_t at = place; at < stop; at++) {{
    const int first = a < middle && (b >= end || !after(x[a], x[b]));
    const E e = x[first ? a : b];
    y[at] = {show.format("e")};
    a += first;
    b += !first;
  }}"""
    return _launch_chunks(runtime, keys, rows, run, ctype, keys.define(), body, last=last)


def _launch_vector_merge(
    runtime: Runtime, keys: Keys, rows: _Rows, run: int, *, last: bool
) -> Launch:
    """Return the same launch with vectors: each is merged with the greatest elements so far.

    A vector comes from the run with the lesser next element. So of these elements and the vector,
    the lesser half comes before all others.
    """
    width = vectors.choose_lanes(runtime, keys.lane)
    ctype, _, show_all = _choose_target(keys, last=last)
    written = ctype if last else keys.lane
    numbers = ", ".join(map(str, range(width)))
    lane = keys.lane
    declarations = [
        vectors.declare(width, keys.lane, written, ctypes.stored(keys.dtype)),
        keys.define(),
        networks.define_vectors(keys, width),
        keys.define_wide(width),
        _define_store(written, width),
    ]
    take = f"""    const int first = a < middle && (b >= end || !after(x[a], x[b]));
    const index_t from = first ? a : b, to = first ? middle : end;
    const E left = from < to ? min(to - from, (index_t){width}) : 0;
    V v = {vectors.load(lane, width, "x + from")};
    v = ({lane}{width})({numbers}) < left ? v : ({lane}{width})(last());
    if (first) a += {width}; else b += {width};"""
    body = f"""{_SPLIT}  const index_t stop = min(place + chunk, end);
  V rest;
  {{
{take}
    rest = v;
  }}
  for (index_t at = place; at < stop; at += {width}) {{
{take}
    V w = turn_{width - 1}(v);
    exchange(&rest, &w);
    store(y + at, (long)stride - (long)at, {show_all.format(f"merge_{width}(rest)")});
    rest = merge_{width}(w);
  }}"""
    return _launch_chunks(
        runtime, keys, rows, run, ctype, "\n".join(declarations), body, last=last
    )


def _launch_chunks(
    runtime: Runtime,
    keys: Keys,
    rows: _Rows,
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
