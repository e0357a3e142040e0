"""Matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.ops.linalg import BATCH_MAT_MUL
from tensorplug.tables import KernelTable
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, gemm
from tensorplug_opencl.kernels.gemm import Matrix, Product

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.shapes import Shape
    from tensorplug.spec import TensorType
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer

kernels = KernelTable()


@kernels.prepare(BATCH_MAT_MUL)
def batch_mat_mul(
    a: TensorType,
    b: TensorType,
    *,
    transpose_a: bool,
    transpose_b: bool,
    backend: OpenCLBackend,
    out: TensorType,
) -> Callable[..., DeviceBuffer]:
    """Multiply the last two axes; transposing and broadcasting are a matter of strides."""
    runtime = backend.runtime
    inner = a.shape[-2 if transpose_a else -1]
    if not out.size or not inner:
        return calls.constant(runtime, out)
    batch = out.shape[:-2]
    product = Product(
        out.dtype,
        batch,
        out.shape[-2],
        inner,
        out.shape[-1],
        _matrix(a.shape, batch, turned=transpose_a),
        _matrix(b.shape, batch, turned=transpose_b),
        _matrix(out.shape, batch, turned=False),
        max(a.size, b.size, out.size),
    )
    return calls.producer(runtime, out, gemm.multiplier(runtime, product))


def _matrix(shape: Shape, batch: Shape, *, turned: bool) -> Matrix:
    row, column = layouts.row_major(shape)[-2:]
    over = layouts.broadcast_strides(shape, (*batch, *shape[-2:]))[:-2]
    return Matrix(column, row, over) if turned else Matrix(row, column, over)
