"""What a device is called, which dtypes it has, and which it has in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyopencl as cl

from tensorplug.plugin import DType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.machine.limits import NONE as NO_LIMITS

if TYPE_CHECKING:
    from tensorplug_opencl.machine.limits import Limits


ATOMICS64: Final = "cl_khr_int64_base_atomics"


def describe(device: cl.Device) -> str:
    """Return the names of the hardware and its platform, for display."""
    return f"{device.name.strip()} ({device.platform.name.strip()})"


def dtypes_of(device: cl.Device, limits: Limits = NO_LIMITS) -> frozenset[DType]:
    """Return the dtypes that tensors may have on ``device``.

    double and half arithmetic are optional in OpenCL. Complex numbers are pairs of floats;
    bfloat16 is computed with in float; dtypes for storage are moved and converted only.
    """
    extensions = device.extensions.split()
    double = limits.float64 and bool(device.double_fp_config) and "cl_khr_fp64" in extensions
    optional = {
        dt.float64: double,
        dt.complex128: double,
        dt.float16: limits.float16 and "cl_khr_fp16" in extensions,
    }
    always = dt.BOOL | dt.INTEGER | dt.STORAGE | {dt.bfloat16, dt.float32, dt.complex64}
    return frozenset(always | {dtype for dtype, has in optional.items() if has})


def flushed_by(device: cl.Device) -> frozenset[DType]:
    """Return the dtypes whose subnormal numbers ``device`` may take for 0.

    float64 has them on all devices; bfloat16 is computed with in float.
    """
    keeps = cl.device_fp_config.DENORM
    single = device.single_fp_config & keeps
    half = "cl_khr_fp16" in device.extensions.split() and device.half_fp_config & keeps
    lost = {dt.bfloat16: not single, dt.float32: not single, dt.float16: not half}
    return frozenset(dtype for dtype, flushed in lost.items() if flushed)
