"""Products of dense arrays: batches of matrices, read as they lie in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Shape, TensorType, shapes
from tensorplug_opencl.codegen import calls, layouts
from tensorplug_opencl.products import gemm, vector_products
from tensorplug_opencl.products.matrices import Matrix
from tensorplug_opencl.products.product_texts import NO_EPILOGUE, Epilogue, Product

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.runtime import Runtime


def prepare(
    runtime: Runtime,
    a: TensorType,
    b: TensorType,
    out: TensorType,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Call:
    """Return a callable of A and B that multiplies their last two axes.

    Small integers whose ``out`` is wider are added up in that dtype.
    """
    if not out.size or not a.size:
        return calls.make_constant(runtime, out)
    narrow = TensorType(a.dtype, out.shape)
    product = make_product(a, b, narrow, transpose_a=transpose_a, transpose_b=transpose_b)
    if out.dtype is not a.dtype:
        product = product._replace(raw=True)
    return calls.make_producer(runtime, out, make_multiplier(runtime, product))


def make_multiplier(runtime: Runtime, product: Product) -> Callable[..., None]:
    """Return a callable of A, B, the epilogue's arrays and C."""
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
