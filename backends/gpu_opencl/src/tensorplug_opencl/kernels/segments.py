"""Sums by segment, and counts: scatters of rows by their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import KernelTable, TensorType, shapes, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, layouts, pointwise, templates
from tensorplug_opencl.codegen.pointwise import Formula
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.kernels import scattering

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()


def _sum(
    backend: OpenedDevice,
    ids: TensorType,
    rows: int,
    x: TensorType,
    size: int,
    out: TensorType,
) -> Call:
    """Return a callable of numbers and x, [*numbers, *rest], that adds up equal numbers' elements.

    The numbers are in ``rows`` rows, each of which has ``size`` separate sums. A number outside 0
    to ``size - 1`` gets a place outside and is dropped: negative numbers do not count from the end
    here.
    """
    runtime, count = backend.runtime, ids.size
    rest = x.shape[ids.rank :]
    places = TensorType(dt.int64, (count, 1))
    flat = TensorType(x.dtype, (rows * size, *rest))
    updates = TensorType(x.dtype, (count, *rest))
    index = layouts.index_dtype(count, rows * size)
    stored = ctypes.stored(ids.dtype)
    text = templates.write_program(
        f"places of {ids.dtype}",
        [Array("ids", stored), Array("y", "long", written=True)],
        templates.declare_indices("items", "count", "rows", "size"),
        """  const index_t i = get_global_id(0);
  if (i >= items) return;
  const int fits = ids[i] >= 0 && (ulong)ids[i] < (ulong)size;
  y[i] = fits ? (long)(i / count) * size + (long)ids[i] : (long)rows * size;""",
        index=index,
    )
    numbers = map(index.type, (count, count // rows, rows, size))
    find = runtime.launch(text, 2, [*numbers], count)
    make_places = runtime.prepare_empty(places)
    add = scattering.scatter_nd(places, updates, shape=flat.shape, backend=backend, out=flat)

    def run(ids: DeviceBuffer, x: DeviceBuffer) -> DeviceBuffer:
        found = make_places()
        find(ids, found)
        return add(found, x.view(updates.shape)).view(out.shape)

    return run


@kernels.prepare(specs.UNSORTED_SEGMENT_SUM)
def unsorted_segment_sum(
    x: TensorType,
    segment_ids: TensorType,
    *,
    num_segments: int,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Add up rows by their id; drop those whose id is out of range."""
    if not out.size or not x.size:
        return calls.make_constant(backend.runtime, out)
    add = _sum(backend, segment_ids, 1, x, num_segments, out)
    return lambda x, segment_ids: add(segment_ids, x)


@kernels.prepare(specs.BINCOUNT, dtypes=dt.REAL)
def bincount(
    x: TensorType,
    weights: TensorType | None,
    *,
    size: int,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Count, or add up weights."""
    return _make_counter(backend, x, weights, 1, size, out)


@kernels.prepare(specs.DENSE_BINCOUNT, dtypes=dt.REAL)
def dense_bincount(
    x: TensorType,
    weights: TensorType | None,
    *,
    size: int,
    binary_output: bool,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Count, or add up weights, row by row; or return whether there is any."""
    rows = shapes.size(x.shape[:-1])
    if not binary_output:
        return _make_counter(backend, x, weights, rows, size, out)
    counts = TensorType(dt.kernel_int, out.shape)
    count = _make_counter(backend, x, None, rows, size, counts)
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    title, any_at_all = f"any counted, {out.dtype}", Formula("x > 0")
    found = pointwise.prepare_formula(backend.runtime, title, any_at_all, {"x": counts}, out)
    return lambda x, _weights: found(count(x, None))


def _make_counter(
    backend: OpenedDevice,
    x: TensorType,
    weights: TensorType | None,
    rows: int,
    size: int,
    out: TensorType,
) -> Callable[[DeviceBuffer, DeviceBuffer | None], DeviceBuffer]:
    """Return the callable that counts in ``rows`` rows of ``size`` bins."""
    runtime = backend.runtime
    if not out.size or not x.size:
        return calls.make_constant(runtime, out)
    weights_type = TensorType(out.dtype, x.shape)
    add = _sum(backend, x, rows, weights_type, size, out)
    if weights is not None and weights.size:
        return add
    make_ones, filling = runtime.prepare_empty(weights_type), calls.make_element(1, out.dtype)

    def count(x: DeviceBuffer, _weights: DeviceBuffer | None) -> DeviceBuffer:
        ones = make_ones()
        runtime.fill(ones, filling)
        return add(x, ones)

    return count
