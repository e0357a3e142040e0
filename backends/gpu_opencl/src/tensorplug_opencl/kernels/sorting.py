"""Sort, ArgSort and TopK: the indices that sort, then the elements at these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import KernelTable, TensorType, shapes, specs
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, ctypes, merging, moving, templates
from tensorplug_opencl.kernels.templates import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime

    Call = Callable[..., DeviceBuffer]

kernels = KernelTable()


@kernels.prepare(specs.TOP_K)
def top_k(
    x: TensorType, *, k: int, backend: OpenCLBackend, out: tuple[TensorType, TensorType]
) -> Callable[..., Any]:
    """Return values and indices, always sorted."""
    runtime = backend.runtime
    makers = [runtime.prepare_empty(type_) for type_ in out]
    if not out[0].size:
        return lambda _x: [make() for make in makers]
    length = x.shape[-1]
    order_of = merging.make_sorter(runtime, x.dtype, x.size // length, length, descending=True)
    values_at = _launch_take(runtime, x, x.rank - 1, k, values=True)
    indices_at = _launch_take(runtime, x, x.rank - 1, k, values=False)

    def run(x: DeviceBuffer) -> list[DeviceBuffer]:
        values, indices = (make() for make in makers)
        order = order_of(x)
        values_at(x, order, values)
        indices_at(order, indices)
        return [values, indices]

    return run


@kernels.prepare(specs.SORT)
def sort(
    x: TensorType, *, axis: int, descending: bool, backend: OpenCLBackend, out: TensorType
) -> Call:
    """Sort rows along any axis; equals always keep their order."""
    if not x.size:
        return calls.make_empty(backend.runtime, out)
    order_of = _make_order(backend.runtime, x, axis, descending=descending)
    take = _launch_take(backend.runtime, x, axis, x.shape[axis], values=True)
    return calls.make_producer(backend.runtime, out, lambda x, y: take(x, order_of(x), y))


@kernels.prepare(specs.ARG_SORT)
def arg_sort(
    x: TensorType, *, axis: int, descending: bool, backend: OpenCLBackend, out: TensorType
) -> Call:
    """Return the indices that sort."""
    if not x.size:
        return calls.make_empty(backend.runtime, out)
    order_of = _make_order(backend.runtime, x, axis, descending=descending)
    if shapes.size(x.shape[axis + 1 :]) == 1:
        return lambda x: order_of(x).view(out.shape)
    take = _launch_take(backend.runtime, x, axis, x.shape[axis], values=False)
    return calls.make_producer(backend.runtime, out, lambda x, y: take(order_of(x), y))


def _make_order(
    runtime: Runtime, x: TensorType, axis: int, *, descending: bool
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    """Return a callable giving the indices that sort ``x`` along ``axis``, with that axis last."""
    length = x.shape[axis]
    sorter = merging.make_sorter(runtime, x.dtype, x.size // length, length, descending=descending)
    others = [*range(axis), *range(axis + 1, x.rank), axis]
    strides = layouts.row_major(x.shape)
    moved = tuple(x.shape[other] for other in others)
    by = tuple(strides[other] for other in others)
    rows = TensorType(x.dtype, (x.size // length, length))
    arrange = moving.make_reader(runtime, x.dtype, moved, by, x.size, rows)
    return lambda x: sorter(arrange(x))


def _launch_take(runtime: Runtime, x: TensorType, axis: int, k: int, *, values: bool) -> Launch:
    """Return the launch that writes the first ``k`` of each row in order, at their places.

    With ``values`` it reads x and the order; otherwise it reads the order only, and writes
    indices.
    """
    length, inner = x.shape[axis], shapes.size(x.shape[axis + 1 :])
    items = x.size // length * k
    index = layouts.index_dtype(max(x.size, items))
    ctype = ctypes.moved(x.dtype)
    source = [Array("x", ctype)] if values else []
    result = "x[(outer * length + at) * inner + side]" if values else "at"
    text = templates.write_program(
        f"take {ctype} in order" if values else "take indices in order",
        [*source, Array("order", "int"), Array("y", ctype if values else "int", written=True)],
        templates.declare_indices("items", "k", "length", "inner"),
        f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t side = i % inner, place = i / inner % k, outer = i / inner / k;
  const index_t at = order[(outer * inner + side) * length + place];
  y[i] = {result};""",
        index=index,
    )
    numbers = map(index.type, (items, k, length, inner))
    return runtime.launch(text, 3 if values else 2, [*numbers], items)
