"""The description of a device from which schedules of loops are chosen."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tensorplug_loops.dialects import opencl_c
from tensorplug_loops.machine import Machine
from tensorplug_opencl.machine.limits import NONE

if TYPE_CHECKING:
    import pyopencl as cl

    from tensorplug_opencl.machine.limits import Limits

_LONGEST: Final = 8  # bytes of a number
_GROUP: Final = 256  # work-items, which any GPU takes and fill it


@lru_cache
def describe_loops(device: cl.Device, limits: Limits, *, is_cpu: bool, atomics64: bool) -> Machine:
    """Return what a schedule needs to know of a device."""
    extensions = device.extensions.split()
    # Atomic sums of floats would differ from run to run.
    atomics = {"int32", "uint32", *(("int64", "uint64") if atomics64 else ())}
    has_half = limits.float16 and "cl_khr_fp16" in extensions
    vector_bytes = limits.vector_bytes if is_cpu else 0
    lanes = opencl_c.MOST_LANES
    if vector_bytes < NONE.vector_bytes:  # longer ones are faulty, whatever their numbers
        lanes = vector_bytes // _LONGEST
    return Machine(
        vector_bytes=vector_bytes,
        lanes=lanes,
        segment=1024,
        tile_rows=6,  # with more, drivers keep sums in memory
        registers=32 if vector_bytes == 64 else 16,  # those of AVX-512
        cores=device.max_compute_units,
        group_size=1 if is_cpu else min(device.max_work_group_size, _GROUP),
        shared_bytes=0 if is_cpu else device.local_mem_size,
        neighbours=not is_cpu,
        wide=False,  # GPUs are slow at it, and vectors of CPUs hold half as many
        narrow=frozenset({"float16"} if has_half else ()),
        atomics=frozenset(atomics),
    )
