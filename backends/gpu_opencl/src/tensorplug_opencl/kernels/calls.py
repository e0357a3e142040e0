"""The forms that most prepared kernels end in: make the output, have it written, return it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dtypes import DType, Scalar
    from tensorplug.spec import TensorType
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Runtime

    Call = Callable[..., DeviceBuffer]

__all__ = ["constant", "element", "empty", "producer"]


def producer(runtime: Runtime, out: TensorType, write: Callable[..., None]) -> Call:
    """Return a callable of input buffers; ``write`` gets them, then the output's buffer."""
    make = runtime.maker(out)

    def run(*inputs: DeviceBuffer) -> DeviceBuffer:
        result = make()
        write(*inputs, result)
        return result

    return run


def empty(runtime: Runtime, out: TensorType) -> Call:
    """Return a callable that gives ``out``, which has no elements."""
    make = runtime.maker(out)

    def run(*_inputs: DeviceBuffer) -> DeviceBuffer:
        return make()

    return run


def constant(runtime: Runtime, out: TensorType, value: Scalar = 0) -> Call:
    """Return a callable that gives ``out`` filled with ``value``, whatever the inputs hold."""
    one = element(value, out.dtype)
    return producer(runtime, out, lambda *buffers: runtime.fill(buffers[-1], one))


def element(value: Scalar, dtype: DType) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Return ``value`` as the bytes of one element; what does not fit wraps or is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array(value).astype(dtype.numpy)
