"""Binary search in sorted rows: a work-item for each value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from tensorplug.plugin import KernelTable, TensorType, specs
from tensorplug_opencl.codegen import calls, ctypes, layouts, templates
from tensorplug_opencl.codegen.templates import Array

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()

# Whether an element comes before the place of v; NaNs are largest and equal to one another.
_BEFORE: Final = {
    "left": "x < v || (v != v && x == x)",
    "right": "x <= v || v != v",
}


@kernels.prepare(specs.SEARCH_SORTED)
def search_sorted(
    sorted_sequence: TensorType,
    values: TensorType,
    *,
    side: Literal["left", "right"],
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Search the only row, or search each row for its own row of values."""
    runtime, length = backend.runtime, sorted_sequence.shape[-1]
    if not out.size:
        return calls.make_empty(runtime, out)
    if not length:
        return calls.make_constant(runtime, out)
    alone = sorted_sequence.rank == 1
    count = values.size if alone else values.shape[-1]
    index = layouts.index_dtype(2 * sorted_sequence.size, values.size)
    stored = ctypes.stored(sorted_sequence.dtype)
    text = templates.write_program(
        f"search {sorted_sequence.dtype} from the {side}",
        [Array("rows", stored), Array("values", stored), Array("y", "int", written=True)],
        templates.declare_indices("items", "count", "length"),
        f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  rows += i / count * length;
  const A v = (A)values[i];
  index_t low = 0, high = length;
  while (low < high) {{
    const index_t half_way = (low + high) / 2;
    const A x = (A)rows[half_way];
    if ({_BEFORE[side]}) low = half_way + 1;
    else high = half_way;
  }}
  y[i] = low;""",
        index=index,
        declarations=f"typedef {ctypes.computed(sorted_sequence.dtype)} A;",
    )
    numbers = map(index.type, (values.size, count, length))
    return calls.make_producer(runtime, out, runtime.launch(text, 3, [*numbers], values.size))
