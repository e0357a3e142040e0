"""Products of small integers, read from bytes and added up in 32 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import KernelRefusedError, KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.products import dense

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()

_FACTORS: Final = frozenset({dt.int8, dt.uint8})


@kernels.prepare(specs.QUANTIZED_MAT_MUL)
def quantized_mat_mul(
    a: TensorType,
    b: TensorType,
    a_scale: TensorType | None,
    b_scale: TensorType | None,
    a_zero_point: TensorType | None,
    b_zero_point: TensorType | None,
    *,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Multiply matrices of one dtype; the decomposition scales the result."""
    rest = (a_scale, b_scale, a_zero_point, b_zero_point)
    if a.dtype is not b.dtype or a.dtype not in _FACTORS or rest != (None,) * len(rest):
        raise KernelRefusedError("it multiplies two of int8 or two of uint8, and nothing else")
    multiply = dense.prepare(backend.runtime, a, b, out)
    return lambda a, b, *_rest: multiply(a, b)
