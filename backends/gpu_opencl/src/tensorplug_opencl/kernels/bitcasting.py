"""The same memory as another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import DType, KernelTable, TensorType, specs
from tensorplug_opencl.kernels import calls, moving

if TYPE_CHECKING:
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.kernels.calls import Call

kernels = KernelTable()


@kernels.prepare(specs.BITCAST)
def bitcast(input: TensorType, *, dtype: DType, backend: OpenCLBackend, out: TensorType) -> Call:
    """Share the memory, unless a view begins within an element of the wider dtype."""
    runtime = backend.runtime
    if not out.size:
        return calls.make_empty(runtime, out)
    old, new = input.dtype.itemsize, dtype.itemsize
    shape = out.shape

    def reinterpret(x: DeviceBuffer) -> DeviceBuffer:
        return x.reinterpret(dtype, shape)

    if new <= old:
        return reinterpret
    line, ahead = (input.size,), (1,)
    copy = calls.make_producer(
        runtime, input, moving.make_mover(runtime, input.dtype, line, ahead, ahead, input.size)
    )
    return lambda x: reinterpret(copy(x) if x.offset * old % new else x)
