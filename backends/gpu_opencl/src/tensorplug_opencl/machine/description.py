"""The description of a device from which schedules of loops are chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug_loops.dialects import opencl_c
from tensorplug_loops.machine import Machine

if TYPE_CHECKING:
    import pyopencl as cl

    from tensorplug_opencl.machine.limits import Limits


def describe_loops(device: cl.Device, limits: Limits, *, is_cpu: bool, atomics64: bool) -> Machine:
    """Return what a schedule needs to know of a device."""
    extensions = device.extensions.split()
    atomics = {"int32", "uint32", "float32"}
    if atomics64:
        atomics |= {"int64", "uint64", "float64"}
    has_half = limits.float16 and "cl_khr_fp16" in extensions
    vector_bytes = limits.vector_bytes if is_cpu else 0
    return Machine(
        vector_bytes=vector_bytes,
        lanes=opencl_c.MOST_LANES,
        segment=1024,
        registers=32 if vector_bytes == 64 else 16,  # those of AVX-512
        cores=device.max_compute_units,
        neighbours=not is_cpu,
        wide=limits.float64 and "cl_khr_fp64" in extensions,
        narrow=frozenset({"float16"} if has_half else ()),
        atomics=frozenset(atomics),
    )
