"""The few largest elements of rows, in one pass: only what beats the last of them is kept.

A block in local memory begins with the best elements so far; what comes before the last one of
these replaces others, from the end of the best on. When the block is full it is sorted. A long row
is cut into parts, and the best of each part are selected from again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.plugin import DType, KernelRefusedError, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import ctypes, layouts, templates, vectors
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.ordering import blocks, networks
from tensorplug_opencl.ordering.keys import Keys
from tensorplug_opencl.reductions import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime

    Selector = Callable[[DeviceBuffer, DeviceBuffer, DeviceBuffer], None]


SHARE: Final = 4  # how many times as long as what is selected a block and a row must be
SHORTEST: Final = 64  # elements of a block in vectors
LONGEST: Final = 4096  # likewise; longer ones take sorting
GROUP: Final = 256  # work-items that share a row elsewhere, and half a block
PARTS: Final = 8  # blocks that are worth another part of a row


def make_selector(
    runtime: Runtime, dtype: DType, count: int, length: int, k: int
) -> Selector | None:
    """Return a callable that writes values and indices of the ``k`` largest of each row.

    It takes a dense [count, length] buffer, then those of the results, [count, k]: the largest
    first, of equals the one with the lowest index. None where it is best to sort the rows.
    """
    keys = Keys(dtype, descending=True, indexed=True)
    if blocks.sorts_vectors(runtime, keys):
        block = max(SHORTEST, 1 << (SHARE * k - 1).bit_length())
        parts = rows.count_parts_on_cpu(runtime, count, length)
    else:
        group = min(GROUP, runtime.device.max_work_group_size)
        block = 2 << (group.bit_length() - 1)
        parts = runtime.parallel_items // block // count
    room = runtime.device.local_mem_size // 2 // keys.itemsize
    if SHARE * k > min(block, length) or block > min(LONGEST, room):
        return None
    parts = max(1, min(parts, length // (PARTS * block)))
    try:
        return _prepare(runtime, keys, count, length, k, block, parts)
    except KernelRefusedError:  # such groups, or so much local memory
        return None


class _Search(NamedTuple):
    """One pass over ``number`` rows of ``length`` elements, in parts.

    ``size``: the number of elements of a row that it reads. These are all, or else, if ``among``,
    candidates, whose indices are in the order of the row.
    """

    number: int
    length: int
    size: int
    k: int
    block: int
    parts: int
    among: bool = False

    @property
    def items(self) -> int:
        """The number of parts of all rows."""
        return self.number * self.parts

    @property
    def position(self) -> str:
        """The index in its row of element ``at`` of a part."""
        return "own[at]" if self.among else "((int)first + (int)at)"

    @property
    def begin(self) -> str:
        """The statements that find part ``item`` of all."""
        own = "\n  global const int *own = candidates + item / parts * size;" * self.among
        return f"""  const index_t number = item % parts, rest = size % parts;
  const index_t first = size / parts * number + min(number, rest);
  const index_t span = size / parts + (number < rest);
  global const S *row = x + item / parts * length;{own}"""

    def write(self, at: str, source_index: str) -> str:
        """Return the statement that writes an index as number ``at``."""
        if self.parts > 1:
            return f"indices[item * k + {at}] = {source_index};"
        return (
            f"{{ const int source = {source_index}; indices[item * k + {at}] = source; "
            f"values[item * k + {at}] = row[source]; }}"
        )

    def launch(
        self, runtime: Runtime, keys: Keys, declarations: str, body: str, group: int, batch: int
    ) -> Launch:
        """Return the launch in which ``group`` work-items search ``batch`` parts."""
        stored = ctypes.stored(keys.dtype)
        arrays = [
            Array("x", stored),
            *([Array("candidates", "int")] if self.among else []),
            *([Array("values", stored, written=True)] if self.parts == 1 else []),
            Array("indices", "int", written=True),
        ]
        index = layouts.index_dtype(self.number * self.length, self.items * self.k)
        text = templates.write_program(
            f"select {'among' if self.among else 'from'} {keys.dtype}"
            + (", in parts" if self.parts > 1 else ""),
            arrays,
            templates.declare_indices("items", "length", "size", "parts", "k", "batch"),
            body,
            index=index,
            declarations=f"typedef {stored} S;\n{declarations}",
        )
        numbers = (self.items, self.length, self.size, self.parts, self.k, batch)
        constants = map(index.type, numbers)
        items = -(-self.items // batch) * group
        return runtime.launch(text, len(arrays), [*constants], items, group=group)


def _prepare(
    runtime: Runtime, keys: Keys, count: int, length: int, k: int, block: int, parts: int
) -> Selector:
    launch = _launch_vectors if blocks.sorts_vectors(runtime, keys) else _launch_group
    begin = launch(runtime, keys, _Search(count, length, length, k, block, parts))
    if parts == 1:
        return begin
    among = _Search(count, length, parts * k, k, block, 1, among=True)
    finish = launch(runtime, keys, among)
    make_candidates = runtime.prepare_empty(TensorType(dt.int32, (count, parts * k)))

    def select(x: DeviceBuffer, values: DeviceBuffer, indices: DeviceBuffer) -> None:
        candidates = make_candidates()
        begin(x, candidates)
        finish(x, candidates, values, indices)

    return select


def _launch_vectors(runtime: Runtime, keys: Keys, search: _Search) -> Launch:
    """Return the launch in which each work-item searches a part, in vectors."""
    width = vectors.choose_lanes(runtime, keys.lane)
    lanes = vectors.choose_lanes(runtime, keys.ctype)
    m, stored = search.block // width, ctypes.stored(keys.dtype)
    declarations = [
        vectors.declare(width, stored, keys.lane),
        blocks.define_reading(keys, width),
        networks.define_block_sort(width, m),
        f"INLINE int slot(int n) {{ return n % {m} * {width} + n / {m}; }}",
    ]
    step = f"""        const int position = {search.position};
        const K one = key((A)row[position]);
        if (one < least) {{ put(held, slot(count), element(one, position)); count++; }}"""
    if search.among:
        read = f"""    for (index_t at = 0; at < {search.block}; at++)
      put(held, at,
        at < span ? element(key((A)row[{search.position}]), {search.position}) : last());"""
        scan = f"""      for (; at < span && count < {search.block}; at++) {{
{step}
      }}"""
    else:
        if lanes != width:
            declarations += [vectors.declare(lanes, stored), keys.define_keys(lanes, "keys_many")]
        keys_many = "keys_all" if lanes == width else "keys_many"
        read = f"    read_block(held, {m}, row + first, (int)first, span);"
        scan = f"""      const int most = {search.block - lanes};
      for (; at + {lanes} <= span && count <= most; at += {lanes}) {{
        union {{ {keys.ctype}{lanes} all; K lane[{lanes}]; }} some;
        some.all = {keys_many}(row + first + at);
        if (!any(some.all < least)) continue;
        for (int lane = 0; lane < {lanes}; lane++) {{
          const K one = some.lane[lane];
          put(held, slot(count), element(one, (int)(first + at) + lane));
          count += one < least;
        }}
      }}
      if (at + {lanes} > span) for (; at < span && count < {search.block}; at++) {{
{step}
      }}"""
    body = f"""  local V held[{m}];
  const index_t end = min(items, (index_t)(get_group_id(0) + 1) * batch);
  for (index_t item = get_group_id(0) * batch; item < end; item++) {{
{search.begin}
{read}
    index_t at = {search.block};
    int count;
    do {{
      sort_block(held, {m});
      const K least = key_of(get(held, slot(k - 1)));
      count = k;
{scan}
    }} while (count > k);
    for (int n = 0; n < k; n++) {search.write("n", "shown(get(held, slot(n)))")}
  }}"""
    text = "\n".join([*declarations, blocks.ALONE])
    batch = max(1, blocks.BATCH // search.size)
    return search.launch(runtime, keys, text, body, 1, batch)


def _launch_group(runtime: Runtime, keys: Keys, search: _Search) -> Launch:
    """Return the launch in which groups of work-items search a part each."""
    block, group = search.block, search.block // 2
    body = f"""  local E held[{block}];
  local int kept;
  const int lane = get_local_id(0);
  const index_t item = get_group_id(0);
{search.begin}
  for (index_t at = lane; at < {block}; at += {group})
    held[at] = at < span ? element(key((A)row[{search.position}]), {search.position}) : last();
  index_t next = {block};
  int count;
  do {{
    network(held, lane, {block});
    const K least = key_of(held[k - 1]);
    if (lane == 0) kept = k;
    barrier(CLK_LOCAL_MEM_FENCE);
    count = k;
    while (next < span && count <= {group}) {{
      const index_t at = next + lane;
      if (at < span) {{
        const int position = {search.position};
        const K one = key((A)row[position]);
        if (one < least) held[atomic_inc(&kept)] = element(one, position);
      }}
      next += {group};
      barrier(CLK_LOCAL_MEM_FENCE);
      count = kept;
      barrier(CLK_LOCAL_MEM_FENCE);
    }}
  }} while (count > k);
  for (int n = lane; n < k; n += {group}) {search.write("n", "shown(held[n])")}"""
    runtime.check_steps(-(-search.size // (search.parts * group)))
    text = f"{keys.define()}\n{networks.define_network()}"
    return search.launch(runtime, keys, text, body, group, 1)
