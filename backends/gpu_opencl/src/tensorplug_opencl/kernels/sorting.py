"""The largest entries: sort indices, then gather the first ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.ops.sorting import TOP_K
from tensorplug.tables import KernelTable
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import ctypes, ranking, templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.spec import TensorType
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch

kernels = KernelTable()


@kernels.prepare(TOP_K)
def top_k(
    x: TensorType, *, k: int, backend: OpenCLBackend, out: tuple[TensorType, TensorType]
) -> Callable[..., Any]:
    """Return values and indices, always sorted."""
    runtime = backend.runtime
    makers = [runtime.maker(each) for each in out]
    if not out[0].size:
        return lambda _x: [make() for make in makers]
    length = x.shape[-1]
    sort = ranking.sorter(runtime, x.dtype, x.size // length, length, ranking.DESCENDING)
    take = _taker(backend, x, k)

    def run(x: DeviceBuffer) -> list[DeviceBuffer]:
        values, indices = (make() for make in makers)
        take(x, sort(x), values, indices)
        return [values, indices]

    return run


def _taker(backend: OpenCLBackend, x: TensorType, k: int) -> Launch:
    length = x.shape[-1]
    items = x.size // length * k
    wide = ranking.width(length)
    index = layouts.index_dtype(x.size // length * wide)
    ctype = ctypes.moved(x.dtype)
    text = templates.program(
        f"take the first {ctype}",
        [
            templates.Array("x", ctype),
            templates.Array("order", "int"),
            templates.Array("values", ctype, written=True),
            templates.Array("indices", "int", written=True),
        ],
        templates.indices("items", "k", "length", "wide"),
        """  const index_t i = get_global_id(0);
  if (i >= items) return;
  const int at = order[i / k * wide + i % k];
  indices[i] = at;
  values[i] = x[i / k * length + at];""",
        index=index,
    )
    numbers = map(index.type, (items, k, length, wide))
    return backend.runtime.launch(text, 4, [*numbers], items)
