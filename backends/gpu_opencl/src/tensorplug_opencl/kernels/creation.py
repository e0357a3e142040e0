"""Tensors made from attributes only, or from the type of another tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Scalar, TensorType, specs
from tensorplug_opencl.codegen import calls

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Write
    from tensorplug_opencl.opened import OpenedDevice

kernels = calls.Kernels()


@kernels.write(specs.FILL)
def fill(*, value: Scalar, backend: OpenedDevice, out: TensorType) -> Write:
    """Repeat the bytes of one element."""
    return calls.fill_with(backend.runtime, out.dtype, value)
