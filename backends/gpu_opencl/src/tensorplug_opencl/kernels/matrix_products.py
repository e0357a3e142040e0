"""Matrix products, plain and with a bias and an activation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import KernelRefusedError, KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls
from tensorplug_opencl.products import dense
from tensorplug_opencl.products.epilogues import choose_epilogue
from tensorplug_opencl.products.matrices import Matrix

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()

REAL = dt.NUMERIC - dt.COMPLEX


@kernels.prepare(specs.BATCH_MAT_MUL, dtypes=REAL)
def batch_mat_mul(
    a: TensorType,
    b: TensorType,
    *,
    transpose_a: bool,
    transpose_b: bool,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Multiply the last two axes; strides express transposing and broadcasting."""
    return dense.prepare(
        backend.runtime, a, b, out, transpose_a=transpose_a, transpose_b=transpose_b
    )


@kernels.prepare(specs.FUSED_MAT_MUL, dtypes=REAL)
def fused_mat_mul(
    a: TensorType,
    b: TensorType,
    bias: TensorType | None,
    prelu_activation_weights: TensorType | None,
    *,
    attributes: dict[str, Any],
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Multiply, and apply the epilogue to each element before storing it."""
    runtime = backend.runtime
    if not out.size:
        return calls.make_empty(runtime, out)
    if not a.size:
        raise KernelRefusedError("there is nothing to multiply")
    fused = choose_epilogue(out.dtype, out.rank, bias, prelu_activation_weights, attributes)
    epilogue = fused.bind(out.shape, lambda steps: Matrix(steps[-2], steps[-1], steps[:-2]))
    product = dense.make_product(
        a,
        b,
        out,
        transpose_a=attributes["transpose_a"],
        transpose_b=attributes["transpose_b"],
        epilogue=epilogue,
    )
    multiply = dense.make_multiplier(runtime, product)
    return calls.make_producer(runtime, out, fused.reorder(multiply))
