"""Stable sorts of rows: blocks in local memory by a network, then merges of ever longer runs.

The programs sort pairs of a key and an index. A key is an unsigned integer that orders as the
elements do: 0.0 and -0.0 are equal, NaNs are largest and equal to one another. The network orders
by key, then index, which is a total order; a merge takes the earlier run first: so equals stay in
order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import DType, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, ctypes, templates
from tensorplug_opencl.kernels.templates import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime

__all__ = ["make_sorter"]

SMALLEST: Final = 2  # elements in a block, of one work-item
NETWORK: Final = 256  # work-items that sort a block of twice as many, if the device takes them
CHUNK: Final = {True: 512, False: 16}  # elements that a work-item merges; on a CPU or not


def make_sorter(
    runtime: Runtime, dtype: DType, count: int, length: int, *, descending: bool
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    """Return a callable of a dense [count, length] buffer giving the int32 indices that sort it.

    Equals keep the order of their indices, in descending order too.
    """
    index = layouts.index_dtype(2 * count * length)
    key = dt.uint64 if dtype.itemsize == 8 else dt.uint32
    make_keys = runtime.prepare_empty(TensorType(key, (count, length)))
    make_order = runtime.prepare_empty(TensorType(dt.int32, (count, length)))

    def network(block: int) -> tuple[int, Launch]:
        launch = _launch_network(
            runtime, dtype, count, length, block, index, descending=descending
        )
        return block, launch

    run, begin = calls.shrink_until_allowed(
        network, _choose_block(runtime, dtype, length), SMALLEST
    )
    merges: list[Launch] = []
    while run < length:
        merges.append(_launch_merge(runtime, key, count, length, run, index))
        run *= 2

    def sort(x: DeviceBuffer) -> DeviceBuffer:
        keys, order = make_keys(), make_order()
        begin(x, keys, order)
        if merges:
            other_keys, other = make_keys(), make_order()
            for merge in merges:
                merge(keys, order, other_keys, other)
                keys, order, other_keys, other = other_keys, other, keys, order
        return order

    return sort


def _choose_block(runtime: Runtime, dtype: DType, length: int) -> int:
    """Return the length of the blocks that are sorted first: a power of two."""
    pair = 4 + max(4, dtype.itemsize)
    room = runtime.device.local_mem_size // 2 // pair
    most = min(2 * NETWORK, 2 * runtime.device.max_work_group_size, room)
    wanted = 1 << max(length - 1, 1).bit_length()
    return min(1 << (most.bit_length() - 1), wanted)


def define_key(dtype: DType, *, descending: bool) -> str:
    """Return the type K and the C function ``key(A)`` for elements of ``dtype``."""
    wide = "ulong" if dtype.itemsize == 8 else "uint"
    top = "((K)1 << (8 * sizeof(K) - 1))"
    if dtype.kind == "float":
        body = (
            f"  if (x != x) return {'0' if descending else '~(K)0'};\n"
            f"  const K bits = as_{wide}(x + 0);  // of 0.0 for -0.0\n"
            f"  const K up = x == 0 ? {top} : bits & {top} ? ~bits : bits | {top};\n"
        )
    elif dtype.kind == "signed":
        signed = "long" if dtype.itemsize == 8 else "int"
        body = f"  const K up = (K)({signed})x ^ {top};\n"
    else:
        body = "  const K up = (K)x;\n"
    ordered = "~up" if descending else "up"
    return (
        f"typedef {ctypes.computed(dtype)} A;\ntypedef {wide} K;\n"
        f"K key(A x) {{\n{body}  return {ordered};\n}}"
    )


def _launch_network(
    runtime: Runtime,
    dtype: DType,
    count: int,
    length: int,
    block: int,
    index: templates.Index,
    *,
    descending: bool,
) -> Launch:
    """Return the launch that sorts blocks: Batcher's bitonic network in local memory.

    Elements beyond the row's end come last, for they have the largest key and the largest indices.
    """
    half = block // 2
    blocks = -(-length // block)
    text = templates.write_program(
        f"sort blocks of {block} {dtype} {'down' if descending else 'up'}",
        [
            Array("x", ctypes.stored(dtype)),
            Array("keys", "ulong" if dtype.itemsize == 8 else "uint", written=True),
            Array("order", "int", written=True),
        ],
        templates.declare_indices("length", "blocks"),
        f"""  local K held[{block}];
  local int numbers[{block}];
  const int lane = get_local_id(0);
  const index_t row = get_group_id(0) / blocks;
  const index_t first = get_group_id(0) % blocks * {block};
  for (int at = lane; at < {block}; at += {half}) {{
    const index_t place = first + at;
    held[at] = place < length ? key((A)x[row * length + place]) : ~(K)0;
    numbers[at] = place < length ? (int)place : INT_MAX;
  }}
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int size = 2; size <= {block}; size *= 2) {{
    for (int apart = size / 2; apart; apart /= 2) {{
      const int low = lane / apart * 2 * apart + lane % apart, high = low + apart;
      const K a = held[low], b = held[high];
      const int m = numbers[low], n = numbers[high];
      const int after = a > b || (a == b && m > n);
      if (after != ((low & size) != 0)) {{
        held[low] = b; held[high] = a;
        numbers[low] = n; numbers[high] = m;
      }}
      barrier(CLK_LOCAL_MEM_FENCE);
    }}
  }}
  for (int at = lane; at < {block}; at += {half}) {{
    const index_t place = first + at;
    if (place < length) {{
      keys[row * length + place] = held[at];
      order[row * length + place] = numbers[at];
    }}
  }}""",
        index=index,
        declarations=define_key(dtype, descending=descending),
    )
    constants = [index.type(length), index.type(blocks)]
    return runtime.launch(text, 3, constants, count * blocks * half, group=half)


def _launch_merge(
    runtime: Runtime, key: DType, count: int, length: int, run: int, index: templates.Index
) -> Launch:
    """Return the launch that merges neighbouring runs of ``run`` elements of each row.

    Each work-item writes a chunk. It searches the diagonal on which its chunk begins to find how
    many elements before it come from the first run (the "merge path").
    """
    chunk = min(CHUNK[runtime.is_cpu], 2 * run)
    chunks = -(-length // chunk)
    ctype = ctypes.stored(key)
    text = templates.write_program(
        f"merge runs of {ctype}",
        [
            Array("keys", ctype),
            Array("order", "int"),
            Array("new_keys", ctype, written=True),
            Array("new_order", "int", written=True),
        ],
        templates.declare_indices("items", "length", "run", "chunk", "chunks"),
        """  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t row = i / chunks * length, place = i % chunks * chunk;
  const index_t start = place / (2 * run) * (2 * run);
  const index_t middle = min(start + run, length), end = min(middle + run, length);
  const index_t ahead = place - start, firsts = middle - start, seconds = end - middle;
  keys += row; order += row; new_keys += row; new_order += row;
  index_t low = ahead > seconds ? ahead - seconds : 0, high = min(ahead, firsts);
  while (low < high) {
    const index_t half_way = (low + high) / 2;
    if (keys[start + half_way] <= keys[middle + ahead - 1 - half_way]) low = half_way + 1;
    else high = half_way;
  }
  index_t a = start + low, b = middle + ahead - low;
  const index_t stop = min(place + chunk, end);
  for (index_t at = place; at < stop; at++) {
    const int first = a < middle && (b >= end || keys[a] <= keys[b]);
    const index_t from = first ? a : b;
    new_keys[at] = keys[from];
    new_order[at] = order[from];
    a += first;
    b += !first;
  }""",
        index=index,
    )
    numbers = (count * chunks, length, run, chunk, chunks)
    constants = [*map(index.type, numbers)]
    return runtime.launch(text, 4, constants, count * chunks, heavy=chunk > CHUNK[False])
