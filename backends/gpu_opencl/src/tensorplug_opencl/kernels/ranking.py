"""Order: which element comes first, on one definition for ArgMax, TopK and sorting.

An element comes before another if it is larger, a NaN being largest of all, or if it is equal
and its index is lower. That order is total, so any sorting network gives a stable result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug import dtypes as dt
from tensorplug.spec import TensorType
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, ctypes, rows, templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dtypes import DType
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.kernels.rows import Walk
    from tensorplug_opencl.runtime import Launch, Runtime

__all__ = ["ASCENDING", "DESCENDING", "arg_max", "sorter", "width"]

# Of (a, its index) and (b, its index), which are different indices.
DESCENDING: Final = """
int before(A a, int a_index, A b, int b_index) {
  if (a > b || (a != a && b == b)) return 1;
  if (a < b || (b != b && a == a)) return 0;
  return a_index < b_index;
}"""
ASCENDING: Final = """
int before(A a, int a_index, A b, int b_index) {
  if (a < b) return 1;
  if (a > b) return 0;
  return a_index < b_index;
}"""

COUNTED: Final = 512  # up to here it is quicker to count, for each element, those before it


def arg_max(
    runtime: Runtime, over: Walk, dtype: DType, out: TensorType
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    """Return a callable giving the int32 index of each walk's first element in order."""
    parts = rows.parts_of(runtime, over.outputs, over.length)
    if parts == 1:
        launch = _winners(runtime, over, dtype, over.length, 1, among=False)
        return calls.producer(runtime, out, lambda x, y: launch(x, x, y))
    make_parts = runtime.maker(TensorType(dt.int32, (over.outputs, parts)))
    begin = _winners(runtime, over, dtype, over.length, parts, among=False)
    finish = _winners(runtime, over, dtype, parts, 1, among=True)

    def write(x: DeviceBuffer, y: DeviceBuffer) -> None:
        candidates = make_parts()
        begin(x, x, candidates)
        finish(x, candidates, y)

    return calls.producer(runtime, out, write)


def _winners(
    runtime: Runtime, over: Walk, dtype: DType, length: int, parts: int, *, among: bool
) -> Launch:
    """Return the launch giving, for each part of each walk, the index that comes first.

    With ``among`` the walk is over the ``length`` candidates of each output instead of over
    all its elements.
    """
    items = over.outputs * parts
    index = layouts.index_dtype(over.outputs * over.length, items)
    kept, reduced = over.kept.rank, over.reduced.rank
    fields = [("size", kept), ("by", kept), ("inner", reduced), ("inner_by", reduced)]
    struct = templates.layout_struct(fields)
    declarations = [f"typedef {ctypes.computed(dtype)} A;", DESCENDING, struct]
    if kept:
        declarations.append(templates.place("kept_place", kept, "size", "by"))
    if reduced:
        declarations.append(templates.place("inner_place", reduced, "inner", "inner_by"))
    body = f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  x += {"kept_place(i / parts, layout)" if kept else "0"};
  const index_t start = i % parts * span;
  const index_t end = min(length, start + span);
  int best = -1;
  A best_value = 0;
  for (index_t r = start; r < end; r++) {{
    const int at = {"candidates[i * length + r]" if among else "(int)r"};
    const A v = (A)x[{"inner_place(at, layout)" if reduced else "0"}];
    if (best < 0 || before(v, at, best_value, best)) {{ best = at; best_value = v; }}
  }}
  y[i] = best;"""
    names = ("items", "parts", "length", "span")
    text = templates.program(
        f"ArgMax {dtype}",
        [
            templates.Array("x", ctypes.stored(dtype)),
            # Without candidates the parameter stands for nothing: it is given x again.
            templates.Array("candidates", "int" if among else ctypes.stored(dtype)),
            templates.Array("y", "int", written=True),
        ],
        [
            *(f"const index_t {name}" for name in names),
            *(["const Layout layout"] if struct else []),
        ],
        body,
        index=index,
        declarations="\n".join(declarations),
    )
    numbers = (items, parts, length, -(-length // parts))
    packed = layouts.packed([over.kept, over.reduced], index)
    constants = [*map(index.type, numbers), *([] if packed is None else [packed])]
    return runtime.launch(text, 3, constants, items, heavy=length // parts > rows.LONG_WALK)


def sorter(
    runtime: Runtime, dtype: DType, count: int, length: int, order: str
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    """Return a callable of a dense [count, length] buffer giving int32 indices in ``order``.

    ``order`` is DESCENDING or ASCENDING. The result is [count, width] with width at least
    length (a power of two where a network sorts); the first ``length`` of each row count.
    """
    if length <= COUNTED:
        return _by_counting(runtime, dtype, count, length, order)
    return _by_network(runtime, dtype, count, length, order)


def width(length: int) -> int:
    """Return the length of a row of what ``sorter`` gives."""
    return length if length <= COUNTED else 1 << (length - 1).bit_length()


def _by_counting(
    runtime: Runtime, dtype: DType, count: int, length: int, order: str
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    items = count * length
    index = layouts.index_dtype(items)
    body = """  const index_t i = get_global_id(0);
  if (i >= items) return;
  const int own = i % length;
  x += i - own;
  const A v = (A)x[own];
  int rank = 0;
  for (int j = 0; j < (int)length; j++)
    rank += j != own && before((A)x[j], j, v, own);
  y[i - own + rank] = own;"""
    text = templates.program(
        f"rank by counting {dtype}",
        [
            templates.Array("x", ctypes.stored(dtype)),
            templates.Array("y", "int", written=True),
        ],
        templates.indices("items", "length"),
        body,
        index=index,
        declarations=f"typedef {ctypes.computed(dtype)} A;{order}",
    )
    constants = [index.type(items), index.type(length)]
    launch = runtime.launch(text, 2, constants, items, heavy=length > rows.LONG_WALK)
    return calls.producer(runtime, TensorType(dt.int32, (count, length)), launch)


def _by_network(
    runtime: Runtime, dtype: DType, count: int, length: int, order: str
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    """Batcher's bitonic network on indices, padded to a power of two: one launch per step."""
    wide = width(length)
    index = layouts.index_dtype(count * wide)
    start = _numbered(runtime, count * wide, wide, index)
    text = _exchange(dtype, order, index)
    items = count * wide // 2
    steps = []
    block = 2
    while block <= wide:
        distance = block // 2
        while distance:
            numbers = (items, length, wide, block, distance)
            steps.append(runtime.launch(text, 2, [*map(index.type, numbers)], items))
            distance //= 2
        block *= 2

    def write(x: DeviceBuffer, y: DeviceBuffer) -> None:
        start(y)
        for step in steps:
            step(x, y)

    return calls.producer(runtime, TensorType(dt.int32, (count, wide)), write)


def _numbered(runtime: Runtime, items: int, wide: int, index: templates.Index) -> Launch:
    text = templates.program(
        "number rows",
        [templates.Array("y", "int", written=True)],
        templates.indices("items", "wide"),
        "  const index_t i = get_global_id(0);\n  if (i < items) y[i] = i % wide;",
        index=index,
    )
    return runtime.launch(text, 1, [index.type(items), index.type(wide)], items)


def _exchange(dtype: DType, order: str, index: templates.Index) -> str:
    """Return one step of the network: order the pairs that lie ``distance`` apart.

    Indices from ``length`` on are padding and come last, whatever the block's direction.
    """
    body = """  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t pairs = wide / 2;
  const index_t row = i / pairs, pair = i % pairs;
  const index_t low = pair / distance * 2 * distance + pair % distance;
  x += row * length;
  y += row * wide;
  const int a = y[low], b = y[low + distance];
  const int limit = length;
  const int b_first = a >= limit ? b < a
    : b < limit && before((A)x[b], b, (A)x[a], a);
  const int backwards = (low & block) != 0;
  if (b_first != backwards) { y[low] = b; y[low + distance] = a; }"""
    names = ("items", "length", "wide", "block", "distance")
    return templates.program(
        f"exchange {dtype}",
        [
            templates.Array("x", ctypes.stored(dtype)),
            templates.Array("y", "int", written=True),
        ],
        templates.indices(*names),
        body,
        index=index,
        declarations=f"typedef {ctypes.computed(dtype)} A;{order}",
    )
