"""What kernels know of a backend: its device, opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import DType, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.machine.features import dtypes_of, flushed_by
from tensorplug_opencl.machine.limits import NONE as NO_LIMITS
from tensorplug_opencl.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import pyopencl as cl

    from tensorplug_opencl.machine.limits import Limits
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.programs.program import Build


class OpenedDevice:
    """A device whose memory, queue and programs are in ``runtime``, and the dtypes it has."""

    kernel_guide = "the module tensorplug_opencl.extensions, and docs/guides/write_an_op.md"

    def __init__(
        self,
        device: cl.Device,
        limits: Limits = NO_LIMITS,
        finish: Callable[[], Limits] | None = None,
        build: Build | None = None,
    ) -> None:
        self.runtime = Runtime(device, limits, finish, build)
        self.dtypes: frozenset[DType] = dtypes_of(device, limits)
        self.flushes_subnormals: frozenset[DType] = flushed_by(device) & self.dtypes

    def from_host(self, array: np.ndarray[Any, Any]) -> DeviceBuffer:
        """Return a buffer with a copy of ``array``.

        Raises:
            BackendMemoryError: when the device has no room for it.

        """
        buffer = self.runtime.empty(TensorType(dt.of(array.dtype), array.shape))
        self.runtime.write(array, buffer)
        return buffer
