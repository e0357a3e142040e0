"""Blocks of rows sorted in local memory: what a launch holds there at once.

A work-item of a CPU sorts a block alone, in vectors; elsewhere a group of work-items shares one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug_opencl.codegen import calls, ctypes, layouts, templates, vectors
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.ordering import networks

if TYPE_CHECKING:
    from tensorplug_opencl.ordering.keys import Keys
    from tensorplug_opencl.runtime import Launch, Runtime


SMALLEST: Final = 2  # elements in a block, of one work-item
NETWORK: Final = 256  # work-items that sort a block of twice as many, if the device takes them
BLOCK_BYTES: Final = 1 << 17  # of a block in vectors, which a core's own cache holds
BATCH: Final = 4096  # elements that a work-item sorts in vectors, at least, if rows are short
ABREAST: Final = 32  # short rows from which on they are sorted side by side, one in each lane
# Before a kernel whose groups are one work-item: no driver then vectorizes across work-items.
ALONE: Final = "__attribute__((reqd_work_group_size(1, 1, 1)))"


class Rows(NamedTuple):
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


def sorts_vectors(runtime: Runtime, keys: Keys) -> bool:
    """Return whether a work-item sorts blocks in vectors."""
    return runtime.is_cpu and vectors.choose_lanes(runtime, keys.lane) > 1


def launch_first(runtime: Runtime, keys: Keys, number: int, length: int) -> tuple[Rows, Launch]:
    """Return rows in the longest blocks that fit, and the launch that sorts these.

    It writes results if the rows are blocks, or else what is sorted.
    """
    wide = sorts_vectors(runtime, keys)
    if wide and length <= networks.REGISTERS and number >= ABREAST:
        rows = Rows(number, length, length)
        return rows, _launch_abreast(runtime, keys, rows)
    prepare = _launch_vectors if wide else _launch_network
    smallest = 1 << max(length - 1, 1).bit_length()
    room = _find_room(runtime, keys)
    if not wide:
        group = min(NETWORK, runtime.device.max_work_group_size)
        room = min(room, 2 << (group.bit_length() - 1))
    least = vectors.choose_lanes(runtime, keys.lane) if wide else SMALLEST

    def launch(block: int) -> tuple[Rows, Launch]:
        rows = Rows(number, length, block)
        return rows, prepare(runtime, keys, rows)

    return calls.shrink_until_allowed(launch, max(least, min(room, smallest)), least)


def _find_room(runtime: Runtime, keys: Keys) -> int:
    """Return the length of the longest block that there is local memory for."""
    most = min(BLOCK_BYTES, runtime.device.local_mem_size // 2) // keys.itemsize
    return 1 << (most.bit_length() - 1)


def choose_target(keys: Keys, *, last: bool) -> tuple[str, str]:
    """Return the C type of what a launch writes, and how it shows what is sorted."""
    return (keys.result, "shown({})") if last else ("E", "{}")


def _launch_network(runtime: Runtime, keys: Keys, rows: Rows) -> Launch:
    """Return the launch in which groups sort blocks: a network in local memory."""
    half = rows.block // 2
    ctype, show = choose_target(keys, last=rows.blocks == 1)
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
    const index_t offset = first + at;
    held[at] = offset < length ? element(key((A)x[offset]), (int)offset) : last();
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


def define_reading(keys: Keys, width: int) -> str:
    """Return ``read_block(held, m, from, first, span)``, and the definitions that it needs.

    It reads ``span`` elements, whose indices begin with ``first``, and fills up ``m`` vectors.
    Loads and stores of vectors are not among the definitions.
    """
    return f"""{keys.define()}
{networks.define_vectors(keys, width)}
{keys.define_wide(width)}
INLINE void read_block(
  local V *held, const int m, global const {ctypes.stored(keys.dtype)} *from, const int first,
  const index_t span
) {{
  for (int number = 0; number < m; number++) {{
    const int at = number * {width};
    if (at + {width} <= span) held[number] = elements(keys_all(from + at), first + at);
    else for (int k = at; k < at + {width}; k++)
      put(held, k, k < span ? element(key((A)from[k]), first + k) : last());
  }}
}}"""


def _launch_vectors(runtime: Runtime, keys: Keys, rows: Rows) -> Launch:
    """Return the launch in which work-items sort blocks in vectors."""
    width = vectors.choose_lanes(runtime, keys.lane)
    m, last = rows.block // width, rows.blocks == 1
    ctype, show = choose_target(keys, last=last)
    index = layouts.index_dtype(2 * rows.number * rows.padded)
    room = m if m <= networks.REGISTERS else _find_room(runtime, keys) // width
    stored = ctypes.stored(keys.dtype)
    declarations = [
        vectors.define_parts(width, stored, keys.lane, keys.result),
        define_reading(keys, width),
        networks.define_block_sort(width, m),
    ]
    if m < width:
        write = f"""    for (int at = 0; at < limit; at++)
      to[at] = {show.format(f"get(held, at % m * {width} + at / m)")};"""
    else:
        declarations.append(networks.define_transpose(ctype if last else keys.lane, width))
        write = _write_rows(keys, width, last=last)
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
    read_block(held, m, from, first, span);
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


def _write_rows(keys: Keys, width: int, *, last: bool) -> str:
    """Return the statements that write a sorted block in its order, vectors at a time."""
    if last:
        parts = {"r": (keys.result, "shown_all(held[at + k])")}
        write = f"write_{keys.result}(to + offset, r[k], limit - offset);"
    elif keys.paired:
        parts = {"r": (keys.lane, "held[at + k].key"), "s": (keys.lane, "held[at + k].index")}
        write = "{ V v; v.key = r[k]; v.index = s[k]; store_all(to + offset, v); }"
    else:
        parts = {"r": (keys.lane, "held[at + k]")}
        write = "store_all(to + offset, r[k]);"
    reads = "".join(
        f"""      {ctype}{width} {name}[{width}];
      for (int k = 0; k < {width}; k++) {name}[k] = {value};
      transpose({name});
"""
        for name, (ctype, value) in parts.items()
    )
    return f"""    for (int at = 0; at < m; at += {width}) {{
{reads}      for (int k = 0, offset = at; k < {width} && offset < limit; k++, offset += m)
        {write}
    }}"""


def _launch_abreast(runtime: Runtime, keys: Keys, rows: Rows) -> Launch:
    """Return the launch in which work-items sort as many short rows at once as a vector has lanes.

    There is one vector for each column of the rows.
    """
    width = vectors.choose_lanes(runtime, keys.lane)
    m = 1 << (rows.length - 1).bit_length()
    stored = ctypes.stored(keys.dtype)
    declarations = [
        keys.define(),
        networks.define_vectors(keys, width),
        networks.define_block_sort(width, m, lanes=True),
    ]
    index = layouts.index_dtype(rows.number * rows.length)
    text = templates.write_program(
        f"sort short rows side by side, {m} vectors of {keys.describe()}",
        [Array("x", stored), Array("y", keys.result, written=True)],
        templates.declare_indices("number", "length", "batch"),
        f"""  local V held[{m}];
  const index_t end = min(number, (index_t)(get_group_id(0) + 1) * batch);
  for (index_t row = get_group_id(0) * batch; row < end; row += {width}) {{
    const int lanes = (int)min(end - row, (index_t){width});
    global const {stored} *from = x + row * length;
    global {keys.result} *to = y + row * length;
    for (int at = length; at < {m}; at++)
      for (int lane = 0; lane < {width}; lane++) put(held, at * {width} + lane, last());
    for (int lane = 0; lane < lanes; lane++)
      for (int at = 0; at < length; at++)
        put(held, at * {width} + lane, element(key((A)*from++), at));
    sort_block(held, {m});
    for (int lane = 0; lane < lanes; lane++)
      for (int at = 0; at < length; at++) *to++ = shown(get(held, at * {width} + lane));
  }}""",
        index=index,
        declarations="\n".join([*declarations, ALONE]),
    )
    batch = width * max(1, BATCH // (m * width))
    constants = map(index.type, (rows.number, rows.length, batch))
    return runtime.launch(text, 2, [*constants], -(-rows.number // batch), group=1)
