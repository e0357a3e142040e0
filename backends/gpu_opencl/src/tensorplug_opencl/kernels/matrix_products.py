"""Matrix products, plain and with a bias and an activation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import KernelRefusedError, KernelTable, Shape, TensorType, shapes, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, layouts
from tensorplug_opencl.products import gemm, vector_products
from tensorplug_opencl.products.epilogues import choose_epilogue
from tensorplug_opencl.products.gemm import NO_EPILOGUE, Epilogue, Product
from tensorplug_opencl.products.matrices import Matrix

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Runtime

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
    if not out.size or not a.size:
        return calls.make_constant(backend.runtime, out)
    product = make_product(a, b, out, transpose_a=transpose_a, transpose_b=transpose_b)
    return calls.make_producer(backend.runtime, out, _make_multiplier(backend.runtime, product))


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
    product = make_product(
        a,
        b,
        out,
        transpose_a=attributes["transpose_a"],
        transpose_b=attributes["transpose_b"],
        epilogue=epilogue,
    )
    return calls.make_producer(runtime, out, fused.reorder(_make_multiplier(runtime, product)))


def prepare_wide(backend: OpenedDevice, a: TensorType, b: TensorType, out: TensorType) -> Call:
    """Return the product of small integers of one dtype, in the dtype in which it is added up."""
    if not out.size or not a.size:
        return calls.make_constant(backend.runtime, out)
    narrow = TensorType(a.dtype, out.shape)
    product = make_product(a, b, narrow, transpose_a=False, transpose_b=False)._replace(raw=True)
    return calls.make_producer(backend.runtime, out, _make_multiplier(backend.runtime, product))


def _make_multiplier(runtime: Runtime, product: Product) -> Callable[..., None]:
    return vector_products.make_multiplier(runtime, product) or gemm.make_multiplier(
        runtime, product
    )


def make_product(
    a: TensorType,
    b: TensorType,
    out: TensorType,
    *,
    transpose_a: bool,
    transpose_b: bool,
    epilogue: Epilogue = NO_EPILOGUE,
) -> Product:
    """Return the product of dense arrays; many matrices times one are one tall matrix."""
    batch = out.shape[:-2]
    joined = bool(batch) and shapes.size(b.shape[:-2]) == 1 and not transpose_a
    product = Product(
        out.dtype,
        batch,
        out.shape[-2],
        a.shape[-2 if transpose_a else -1],
        out.shape[-1],
        _make_matrix(a.shape, batch, turned=transpose_a),
        _make_matrix(b.shape, batch, turned=transpose_b),
        _make_matrix(out.shape, batch, turned=False),
        max(a.size, b.size, out.size),
        epilogue,
    )
    if joined and shapes.size(a.shape[:-2]) == shapes.size(batch) and epilogue is NO_EPILOGUE:
        none = tuple(0 for _ in batch)
        return product._replace(
            batch=tuple(1 for _ in batch),
            rows=shapes.size(batch) * product.rows,
            a=product.a._replace(batch=none),
            c=product.c._replace(batch=none),
        )
    return product


def _make_matrix(shape: Shape, batch: Shape, *, turned: bool) -> Matrix:
    row, column = layouts.row_major(shape)[-2:]
    batches = layouts.broadcast_strides(shape, (*batch, *shape[-2:]))[:-2]
    return Matrix(column, row, batches) if turned else Matrix(row, column, batches)
