"""The same memory as another dtype; elements of less than a byte are packed and unpacked.

There is no form: it would copy what is shared here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import DType, KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, layouts
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.movement import moving

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Runtime

kernels = KernelTable()


@kernels.prepare(specs.BITCAST)
def bitcast(input: TensorType, *, dtype: DType, backend: OpenedDevice, out: TensorType) -> Call:
    """Share the memory, unless a view begins within an element of the wider dtype."""
    runtime = backend.runtime
    if not out.size:
        return calls.make_empty(runtime, out)
    if input.dtype.bits != dtype.bits and min(input.dtype.bits, dtype.bits) < 8:
        return _regroup(runtime, input, out)
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


def _regroup(runtime: Runtime, input: TensorType, out: TensorType) -> Call:
    """Read each byte several times, or write several elements into it, the first one lowest."""
    old, new = input.dtype.bits, out.dtype.bits
    few = min(old, new)
    inside, mask = min(8, max(old, new)) // few, (1 << few) - 1
    if new < old:
        text = f"x[i / {inside}] >> i % {inside} * {few} & {mask}"
    else:
        parts = (f"(x[i * {inside} + {at}] & {mask}) << {at * few}" for at in range(inside))
        text = " | ".join(parts)
    launch = calls.launch_sized(
        runtime,
        f"Bitcast {old} bits to {new}",
        [Array("x", "uchar"), Array("y", "uchar", written=True)],
        {"items": out.nbytes},
        f"  y[i] = {text};",
        index=layouts.index_dtype(input.nbytes, out.nbytes),
    )
    shape = (input.nbytes,)
    write = calls.make_producer(runtime, out, launch)
    return lambda x: write(x.reinterpret(dt.uint8, shape))
