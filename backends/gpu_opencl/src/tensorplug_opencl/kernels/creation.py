"""Tensors made from attributes only, or from the type of another tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import KernelRefusedError, Scalar, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, layouts
from tensorplug_opencl.codegen.templates import Array

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Write
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch

kernels = calls.Kernels()


@kernels.write(specs.FILL)
def fill(*, value: Scalar, backend: OpenedDevice, out: TensorType) -> Write:
    """Repeat the bytes of one element."""
    return calls.fill_with(backend.runtime, out.dtype, value)


@kernels.write(specs.RANGE)
def range_(*, start: Any, stop: Any, step: Any, backend: OpenedDevice, out: TensorType) -> Launch:
    """Compute ``start + i * step``, in 64-bit integers if all are ints, else in floats.

    Integers are computed modulo 2**64, which is right for every result that fits the dtype.
    """
    whole = all(isinstance(number, int) for number in (start, stop, step))
    real = dt.float64 if dt.float64 in backend.dtypes else dt.float32
    modular = whole and out.dtype in dt.INTEGER
    wide = dt.uint64 if modular else dt.int64 if whole else real
    ctype = ctypes.stored(wide)
    if modular:
        start, step = start % (1 << 64), step % (1 << 64)
    try:
        first, by = (np.array(number, dtype=wide.numpy) for number in (start, step))
    except OverflowError:
        raise KernelRefusedError(f"start {start} or step {step} needs more than 64 bits") from None
    stored = ctypes.stored(out.dtype)
    return calls.launch_sized(
        backend.runtime,
        f"Range {out.dtype} by {ctype}",
        [Array("y", stored, written=True)],
        {"items": out.size},
        f"  y[i] = ({stored})(start + ({ctype})i * step);",
        index=layouts.index_dtype(out.size),
        constants=[(ctype, "start", first), (ctype, "step", by)],
    )


@kernels.write(specs.EYE)
def eye(*, k: int, backend: OpenedDevice, out: TensorType) -> Launch:
    """Compare rows with columns."""
    (rows, columns), ctype = out.shape, ctypes.moved(out.dtype)
    diagonal = np.int64(max(-rows, min(k, columns)))  # beyond, there is no such diagonal
    return calls.launch_sized(
        backend.runtime,
        f"Eye {ctype}",
        [Array("y", ctype, written=True)],
        {"items": out.size, "columns": columns},
        "  y[i] = (long)(i % columns) - (long)(i / columns) == diagonal ? one : 0;",
        index=layouts.index_dtype(out.size),
        constants=[
            ("long", "diagonal", diagonal),
            (ctype, "one", calls.make_element(1, out.dtype)),
        ],
    )


@kernels.write(specs.LIN_SPACE)
def linspace(
    *,
    start: Scalar,
    stop: Scalar,
    num: int,
    endpoint: bool,
    backend: OpenedDevice,
    out: TensorType,
) -> Launch:
    """Count in double (or float) from the nearer end, so that both ends are exact."""
    if out.dtype.kind != "float" or isinstance(start, complex) or isinstance(stop, complex):
        raise KernelRefusedError("numbers are counted in real dtypes only")
    wide = dt.float64 if dt.float64 in backend.dtypes else dt.float32
    ctype, stored = ctypes.stored(wide), ctypes.stored(out.dtype)
    steps = max(num - 1 if endpoint else num, 1)
    step = float(stop) / steps - float(start) / steps  # divided first: it does not overflow
    numbers = {"start": start, "stop": stop, "step": step}
    return calls.launch_sized(
        backend.runtime,
        f"LinSpace {out.dtype} by {ctype}",
        [Array("y", stored, written=True)],
        {"items": num, "steps": steps, "half_way": num // 2 if num > 1 else 1},
        f"""  const {ctype} value = i < half_way ? ({ctype})i * step + start
    : -({ctype})(steps - i) * step + stop;
  y[i] = ({stored})value;""",
        index=layouts.index_dtype(out.size),
        constants=[(ctype, name, wide.numpy.type(number)) for name, number in numbers.items()],
    )
