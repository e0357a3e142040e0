"""Tensors made from attributes only, or from the type of another tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import KernelRefusedError, KernelTable, Scalar, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, layouts, templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()


@kernels.prepare(specs.FILL)
def fill(*, value: Scalar, backend: OpenedDevice, out: TensorType) -> Callable[..., DeviceBuffer]:
    """Repeat the bytes of one element."""
    return calls.make_constant(backend.runtime, out, value)


@kernels.prepare(specs.RANGE)
def range_(
    *, start: Any, stop: Any, step: Any, backend: OpenedDevice, out: TensorType
) -> Callable[..., DeviceBuffer]:
    """Compute ``start + i * step``, in 64-bit integers if all are ints, else in floats.

    Integers are computed modulo 2**64, which is right for every result that fits the dtype.
    """
    runtime = backend.runtime
    if not out.size:
        return calls.make_empty(runtime, out)
    whole = all(isinstance(number, int) for number in (start, stop, step))
    real = dt.float64 if dt.float64 in backend.dtypes else dt.float32
    modular = whole and out.dtype in dt.INTEGER
    wide = dt.uint64 if modular else dt.int64 if whole else real
    ctype = ctypes.stored(wide)
    if modular:
        start, step = start % (1 << 64), step % (1 << 64)
    try:
        constants = [np.array(number, dtype=wide.numpy) for number in (start, step)]
    except OverflowError:
        raise KernelRefusedError(f"start {start} or step {step} needs more than 64 bits") from None
    index = layouts.index_dtype(out.size)
    stored = ctypes.stored(out.dtype)
    body = (
        "  const index_t i = get_global_id(0);\n"
        f"  if (i < n) y[i] = ({stored})(start + ({ctype})i * step);"
    )
    text = templates.write_program(
        f"Range {out.dtype} by {ctype}",
        [templates.Array("y", stored, written=True)],
        ["const index_t n", f"const {ctype} start", f"const {ctype} step"],
        body,
        index=index,
    )
    launch = runtime.launch(text, 1, [index.type(out.size), *constants], out.size)
    return calls.make_producer(runtime, out, launch)


@kernels.prepare(specs.EYE)
def eye(*, k: int, backend: OpenedDevice, out: TensorType) -> Callable[..., DeviceBuffer]:
    """Compare rows with columns."""
    runtime = backend.runtime
    if not out.size:
        return calls.make_empty(runtime, out)
    ctype = ctypes.moved(out.dtype)
    index = layouts.index_dtype(out.size)
    text = templates.write_program(
        f"Eye {ctype}",
        [templates.Array("y", ctype, written=True)],
        [
            *templates.declare_indices("items", "columns"),
            "const long diagonal",
            f"const {ctype} one",
        ],
        """  const index_t i = get_global_id(0);
  if (i >= items) return;
  y[i] = (long)(i % columns) - (long)(i / columns) == diagonal ? one : 0;""",
        index=index,
    )
    rows, columns = out.shape
    constants = [
        index.type(out.size),
        index.type(columns),
        np.int64(max(-rows, min(k, columns))),  # beyond, there is no such diagonal
        calls.make_element(1, out.dtype),
    ]
    return calls.make_producer(runtime, out, runtime.launch(text, 1, constants, out.size))


@kernels.prepare(specs.LIN_SPACE)
def linspace(
    *,
    start: Scalar,
    stop: Scalar,
    num: int,
    endpoint: bool,
    backend: OpenedDevice,
    out: TensorType,
) -> Callable[..., DeviceBuffer]:
    """Count in double (or float) from the nearer end, so that both ends are exact."""
    runtime = backend.runtime
    if not out.size:
        return calls.make_empty(runtime, out)
    if out.dtype.kind != "float" or isinstance(start, complex) or isinstance(stop, complex):
        raise KernelRefusedError("numbers are counted in real dtypes only")
    wide = dt.float64 if dt.float64 in backend.dtypes else dt.float32
    ctype, stored = ctypes.stored(wide), ctypes.stored(out.dtype)
    steps = max(num - 1 if endpoint else num, 1)
    step = (
        float(stop) / steps - float(start) / steps
    )  # divided first, so that it does not overflow
    index = layouts.index_dtype(out.size)
    text = templates.write_program(
        f"LinSpace {out.dtype} by {ctype}",
        [templates.Array("y", stored, written=True)],
        [
            *templates.declare_indices("items", "steps", "half_way"),
            *(f"const {ctype} {name}" for name in ("start", "stop", "step")),
        ],
        f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  const {ctype} value = i < half_way ? ({ctype})i * step + start
    : -({ctype})(steps - i) * step + stop;
  y[i] = ({stored})value;""",
        index=index,
    )
    half_way = num // 2 if num > 1 else 1
    numbers = [wide.numpy.type(number) for number in (start, stop, step)]
    constants = [*map(index.type, (num, steps, half_way)), *numbers]
    return calls.make_producer(runtime, out, runtime.launch(text, 1, constants, out.size))
