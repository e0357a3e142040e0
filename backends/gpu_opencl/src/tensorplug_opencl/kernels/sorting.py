"""Sort, ArgSort and TopK: the indices that sort, then the elements at these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import DType, KernelTable, TensorType, specs
from tensorplug_opencl.codegen import calls, ctypes, layouts
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.movement import moving
from tensorplug_opencl.ordering import merging, selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch, Runtime

kernels = KernelTable()


@kernels.prepare(specs.TOP_K)
def top_k(
    x: TensorType, *, k: int, backend: OpenedDevice, out: tuple[TensorType, TensorType]
) -> Callable[..., Any]:
    """Return values and indices, always sorted."""
    runtime = backend.runtime
    makers = [runtime.prepare_empty(type_) for type_ in out]
    if not out[0].size:
        return lambda _x: [make() for make in makers]
    length = x.shape[-1]
    count = x.size // length
    select = selection.make_selector(runtime, x.dtype, count, length, k)
    if select is None:
        select = _make_sorting_selector(runtime, x.dtype, count, length, k)

    def run(x: DeviceBuffer) -> list[DeviceBuffer]:
        values, indices = (make() for make in makers)
        select(x, values, indices)
        return [values, indices]

    return run


def _make_sorting_selector(
    runtime: Runtime, dtype: DType, count: int, length: int, k: int
) -> Callable[[DeviceBuffer, DeviceBuffer, DeviceBuffer], None]:
    """Return what ``selection.make_selector`` does, by sorting whole rows."""
    order_of = merging.make_sorter(runtime, dtype, count, length, descending=True)
    values_at = _launch_take(runtime, dtype, count, length, k)
    indices_at = _launch_take(runtime, None, count, length, k)

    def run(x: DeviceBuffer, values: DeviceBuffer, indices: DeviceBuffer) -> None:
        order = order_of(x)
        values_at(x, order, values)
        indices_at(order, indices)

    return run


@kernels.prepare(specs.SORT)
def sort(
    x: TensorType, *, axis: int, descending: bool, backend: OpenedDevice, out: TensorType
) -> Call:
    """Sort rows along any axis; equals always keep their order."""
    runtime, length = backend.runtime, x.shape[axis]
    if not x.size:
        return calls.make_empty(runtime, out)
    count = x.size // length
    values = merging.make_value_sorter(runtime, x.dtype, count, length, descending=descending)
    if values is not None:
        return _along(runtime, x, axis, values, out)
    order_of = merging.make_sorter(runtime, x.dtype, count, length, descending=descending)
    take = _launch_take(runtime, x.dtype, count, length, length)
    rows = TensorType(x.dtype, (count, length))
    by_order = calls.make_producer(runtime, rows, lambda x, y: take(x, order_of(x), y))
    return _along(runtime, x, axis, by_order, out)


@kernels.prepare(specs.ARG_SORT)
def arg_sort(
    x: TensorType, *, axis: int, descending: bool, backend: OpenedDevice, out: TensorType
) -> Call:
    """Return the indices that sort."""
    runtime, length = backend.runtime, x.shape[axis]
    if not x.size:
        return calls.make_empty(runtime, out)
    count = x.size // length
    order_of = merging.make_sorter(runtime, x.dtype, count, length, descending=descending)
    return _along(runtime, x, axis, order_of, out)


def _along(
    runtime: Runtime,
    x: TensorType,
    axis: int,
    by_rows: Callable[[DeviceBuffer], DeviceBuffer],
    out: TensorType,
) -> Call:
    """Return a callable that gives ``by_rows`` of the rows along ``axis``, in their places."""
    length = x.shape[axis]
    last = [*range(axis), *range(axis + 1, x.rank), axis]
    back = [*range(axis), x.rank - 1, *range(axis, x.rank - 1)]
    moved = tuple(x.shape[other] for other in last)
    rows = TensorType(x.dtype, (x.size // length, length))
    by = layouts.permuted_strides(x.shape, last)
    arrange = moving.make_reader(runtime, x, moved, by, rows)
    by = layouts.permuted_strides(moved, back)
    put_back = moving.make_reader(runtime, out, x.shape, by, out)
    return lambda x: put_back(by_rows(arrange(x)))


def _launch_take(runtime: Runtime, dtype: DType | None, count: int, length: int, k: int) -> Launch:
    """Return the launch that writes the first ``k`` of each row in order.

    It reads elements of ``dtype`` and the order; or else the order only, and writes indices.
    """
    ctype = "int" if dtype is None else ctypes.moved(dtype)
    source = [] if dtype is None else [Array("x", ctype)]
    return calls.launch_sized(
        runtime,
        f"take {'indices' if dtype is None else ctype} in order",
        [*source, Array("order", "int"), Array("y", ctype, written=True)],
        {"items": count * k, "k": k, "length": length},
        f"""  const index_t row = i / k * length, at = order[row + i % k];
  y[i] = {"at" if dtype is None else "x[row + at]"};""",
        index=layouts.index_dtype(count * length),
    )
