"""Sums by segment: scatters of rows by their numbers.

The decomposition takes 3 to 5 times as long; the form adds in one work-item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, layouts
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.kernels import scattering

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()


@kernels.prepare(specs.UNSORTED_SEGMENT_SUM)
def unsorted_segment_sum(
    x: TensorType,
    segment_ids: TensorType,
    *,
    num_segments: int,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Add up rows by their id; drop those whose id is out of range.

    A scatter counts negative indices from the end. Segments have no negative ids, so the indices
    that it gets are ids in range, and one beyond the end for all others, which it drops.
    """
    runtime, count = backend.runtime, segment_ids.size
    if not out.size or not x.size:
        return calls.make_zeros(runtime, out)
    indices = TensorType(dt.int64, (count, 1))
    updates = TensorType(x.dtype, (count, *x.shape[segment_ids.rank :]))
    index = layouts.index_dtype(count, num_segments)
    stored = ctypes.stored(segment_ids.dtype)
    find = calls.launch_sized(
        runtime,
        f"indices of segments {segment_ids.dtype}",
        [Array("ids", stored), Array("y", "long", written=True)],
        {"items": count, "size": num_segments},
        """  const int fits = ids[i] >= 0 && (ulong)ids[i] < (ulong)size;
  y[i] = fits ? (long)ids[i] : (long)size;""",
        index=index,
    )
    make_indices = runtime.prepare_empty(indices)
    add = scattering.scatter_nd(indices, updates, shape=out.shape, backend=backend, out=out)

    def run(x: DeviceBuffer, segment_ids: DeviceBuffer) -> DeviceBuffer:
        targets = make_indices()
        find(segment_ids, targets)
        return add(targets, x.view(updates.shape))

    return run
