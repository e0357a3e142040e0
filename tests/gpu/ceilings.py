"""The rates of a device with the simplest kernels: streams of memory, sums in registers.

Ops of a library cannot be faster, whatever a data sheet says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyopencl as cl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


MIB: Final = 1 << 20
BYTES: Final = 256 * MIB  # of a stream, if the device has room for it
GROUP: Final = 256
CALLS: Final = 7
ENOUGH: Final = 0.01  # seconds that a call should take

STREAMS: Final = """
kernel void write(global const float4 *x, global float4 *y) {
  y[get_global_id(0)] = (float4)(1.0f);
}
kernel void copy(global const float4 *x, global float4 *y) {
  const size_t i = get_global_id(0);
  y[i] = x[i];
}
kernel void read(global const float4 *x, global float4 *y) {
  const size_t i = get_global_id(0), n = get_global_size(0);
  float4 sum = (float4)(0.0f);
  for (int k = 0; k < 16; k++) sum += x[i + k * n];
  if (sum.x == 0.5f) y[i] = sum;  /* never, and no compiler knows */
}
"""
# By kernel, how many times the bytes of the buffer it moves, and how many float4 an item has.
MOVED: Final = {"copy": (2, 1), "write": (1, 1), "read": (1, 16)}

CHAINS: Final = 8  # of sums that do not depend on one another
STEPS: Final = 16  # written out in a loop
PRODUCTS: Final = """
%(pragma)s
kernel void products(global %(type)s *y, const int rounds) {
  const %(scalar)s at = (%(scalar)s)(get_global_id(0) & 7);
  const %(type)s a = (%(type)s)((%(scalar)s)0.999f), b = (%(type)s)(at);
  %(type)s %(begin)s;
  for (int i = 0; i < rounds; i++) { %(body)s }
  y[get_global_id(0)] = %(sum)s;
}
"""
SCALARS: Final = {
    "float32": ("float", "", ""),
    "float64": ("double", "cl_khr_fp64", ""),
    "float16": ("half", "cl_khr_fp16", "#pragma OPENCL EXTENSION cl_khr_fp16 : enable"),
}
GPU_WIDTHS: Final = (1, 2, 4)  # of vectors: halves go in pairs
OTHER_WIDTHS: Final = (1, 8, 16)


class Ceiling(NamedTuple):
    """One rate: the kernel, its dtype, billions per second, and the unit."""

    what: str
    dtype: str
    rate: float
    unit: str


def ceilings(device: cl.Device) -> Iterator[Ceiling]:
    """Yield the rates of ``device``: streams first, then arithmetic by dtype and vector."""
    context = cl.Context([device])
    queue = cl.CommandQueue(
        context, device, properties=cl.command_queue_properties.PROFILING_ENABLE
    )
    yield from _streams(context, queue, device)
    extensions = device.extensions.split()
    for dtype, (scalar, needed, pragma) in SCALARS.items():
        if not needed or needed in extensions:
            for width in GPU_WIDTHS if device.type & cl.device_type.GPU else OTHER_WIDTHS:
                rate = _products(context, queue, device, scalar, width, pragma)
                vector = f"vectors of {width}" if width > 1 else "scalars"
                yield Ceiling(f"multiply and add, {vector}", dtype, rate, "GFLOP/s")


def _streams(context: cl.Context, queue: cl.CommandQueue, device: cl.Device) -> Iterator[Ceiling]:
    room = min(BYTES, device.max_mem_alloc_size // 2, device.global_mem_size // 8)
    count = 1 << (room // 16).bit_length() - 1
    x, y = (cl.Buffer(context, cl.mem_flags.READ_WRITE, count * 16) for _ in range(2))
    cl.enqueue_fill_buffer(queue, x, np.float32(1), 0, count * 16)
    cl.enqueue_fill_buffer(queue, y, np.float32(1), 0, count * 16)
    program = cl.Program(context, STREAMS).build()
    for name, (times, size) in MOVED.items():
        kernel = cl.Kernel(program, name)
        kernel.set_args(x, y)
        items = (count // size,)

        def call(kernel: cl.Kernel = kernel, items: tuple[int] = items) -> cl.Event:
            return cl.enqueue_nd_range_kernel(queue, kernel, items, (_group(kernel, device),))

        moved = count * 16 * times
        rate = moved / _least(call) / 1e9
        yield Ceiling(f"{name}, {count * 16 // MIB} MiB", "float32", rate, "GB/s")


def _group(kernel: cl.Kernel, device: cl.Device) -> int:
    most = kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device)
    return min(GROUP, 1 << int(most).bit_length() - 1)


def _products(
    context: cl.Context,
    queue: cl.CommandQueue,
    device: cl.Device,
    scalar: str,
    width: int,
    pragma: str,
) -> float:
    """Return GFLOP/s of fused multiplications and additions in registers."""
    names = [f"x{number}" for number in range(CHAINS)]
    type_ = f"{scalar}{width if width > 1 else ''}"
    text = PRODUCTS % {
        "pragma": pragma,
        "scalar": scalar,
        "type": type_,
        "begin": ", ".join(f"{name} = b + ({scalar}){at}" for at, name in enumerate(names)),
        "body": " ".join(f"{x} = mad({x}, a, b);" for x in names) * STEPS,
        "sum": " + ".join(names),
    }
    kernel = cl.Kernel(cl.Program(context, text).build(), "products")
    group = _group(kernel, device)
    items = max(device.max_compute_units * 2048 // group, 1) * group
    itemsize = {"float": 4, "double": 8, "half": 2}[scalar]
    y = cl.Buffer(context, cl.mem_flags.READ_WRITE, items * width * itemsize)

    def of(rounds: int) -> Callable[[], Any]:
        def call() -> cl.Event:
            kernel.set_args(y, np.int32(rounds))
            return cl.enqueue_nd_range_kernel(queue, kernel, (items,), (group,))

        return call

    rounds = 4
    while (taken := _least(of(rounds), 2)) < ENOUGH and rounds < 1 << 16:
        rounds *= max(2, min(16, int(ENOUGH / max(taken, 1e-6)) + 1))
    return items * width * CHAINS * STEPS * 2 * rounds / _least(of(rounds)) / 1e9


def _least(call: Callable[[], cl.Event], calls: int = CALLS) -> float:
    """Return the seconds of the fastest call, by the device's clock."""
    taken = []
    for _ in range(calls):
        event = call()
        event.wait()
        taken.append((event.profile.end - event.profile.start) * 1e-9)
    return max(min(taken[1:] or taken), 1e-9)
