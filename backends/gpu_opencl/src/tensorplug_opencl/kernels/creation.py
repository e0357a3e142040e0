"""Tensors from attributes alone, or from the type of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tensorplug import dtypes as dt
from tensorplug.errors import KernelRefusedError
from tensorplug.ops.creation import FILL, ONES_LIKE, RANGE, ZEROS_LIKE
from tensorplug.tables import KernelTable

from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import ctypes, templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dtypes import Scalar
    from tensorplug.spec import TensorType

    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer

kernels = KernelTable()


def _filler(
    backend: OpenCLBackend, out: TensorType, value: Scalar
) -> Callable[..., DeviceBuffer]:
    make, runtime = backend.runtime.maker(out), backend.runtime
    with np.errstate(over="ignore"):  # a float too large for the dtype is infinite there
        element = np.array(value).astype(out.dtype.numpy)

    def run(*_inputs: DeviceBuffer) -> DeviceBuffer:
        result = make()
        runtime.fill(result, element)
        return result

    return run


@kernels.prepare(FILL)
def fill(
    *, value: Scalar, backend: OpenCLBackend, out: TensorType
) -> Callable[..., DeviceBuffer]:
    """Repeat the bytes of one element."""
    return _filler(backend, out, value)


@kernels.prepare(ZEROS_LIKE)
def zeros_like(
    x: TensorType,  # noqa: ARG001  # the input's type is the output's
    *,
    backend: OpenCLBackend,
    out: TensorType,
) -> Callable[..., DeviceBuffer]:
    """Zeros of the type of x."""
    return _filler(backend, out, 0)


@kernels.prepare(ONES_LIKE)
def ones_like(
    x: TensorType,  # noqa: ARG001  # the input's type is the output's
    *,
    backend: OpenCLBackend,
    out: TensorType,
) -> Callable[..., DeviceBuffer]:
    """Ones of the type of x."""
    return _filler(backend, out, 1)


@kernels.prepare(RANGE)
def range_(
    *, start: Any, stop: Any, step: Any, backend: OpenCLBackend, out: TensorType
) -> Callable[..., DeviceBuffer]:
    """``start + i * step``, in 64-bit integers if all are ints, else in double (or float)."""
    runtime = backend.runtime
    make = runtime.maker(out)
    if not out.size:
        return make
    whole = all(isinstance(each, int) for each in (start, stop, step))
    if whole:
        ctype, number = "long", np.dtype(np.int64)
    elif dt.float64 in backend.dtypes:
        ctype, number = "double", np.dtype(np.float64)
    else:
        ctype, number = "float", np.dtype(np.float32)
    try:
        constants = [number.type(start), number.type(step)]
    except OverflowError:
        raise KernelRefusedError(f"start {start} or step {step} needs more than 64 bits") from None
    index = layouts.index_dtype(out.size)
    stored = ctypes.stored(out.dtype)
    body = (
        "  const index_t i = get_global_id(0);\n"
        f"  if (i < n) y[i] = ({stored})(start + ({ctype})i * step);"
    )
    text = templates.program(
        f"Range {out.dtype} by {ctype}",
        [templates.Array("y", stored, written=True)],
        ["const index_t n", f"const {ctype} start", f"const {ctype} step"],
        body,
        index=index,
    )
    launch = runtime.launch(text, 1, [index.type(out.size), *constants], out.size)

    def run() -> DeviceBuffer:
        result = make()
        launch(result)
        return result

    return run
