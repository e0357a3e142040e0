"""Products whose inner axis is cut into slices: the layout of the parts, and their sum."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tensorplug.plugin import DType, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, layouts
from tensorplug_opencl.groups.sums import make_adder
from tensorplug_opencl.products import product_texts
from tensorplug_opencl.products.matrices import Matrix
from tensorplug_opencl.products.product_texts import NO_EPILOGUE, Product

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.codegen import templates
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime


def choose_dtype(dtype: DType) -> DType:
    """Return the dtype in which parts are stored: the one of the computation."""
    if dtype.kind == "float":
        return dtype.compute
    return dt.uint64 if dtype.itemsize == 8 else dt.uint32


def make_part(product: Product, number: int) -> Product:
    """Return the product of at most ``number`` slices, none of which is empty."""
    shape = (*product.batch, product.rows, product.columns)
    strides = layouts.row_major(shape)
    span = -(-product.inner // number)
    return product._replace(
        c=Matrix(strides[-2], strides[-1], strides[:-2]),
        epilogue=NO_EPILOGUE,
        slices=-(-product.inner // span),
        slice_by=product.batches * product.rows * product.columns,
        raw=True,
    )


def launch_close(runtime: Runtime, product: Product, part: Product) -> Launch:
    """Return the launch on the parts, the epilogue's inputs and C that adds up and finishes."""
    sums = product._replace(inner=part.slices, a=part.c, slice_by=part.slice_by, summing=True)
    items = part.slice_by
    index = product_texts.choose_index(sums, items)
    text = _write_close(sums.outline, index)
    arguments = product_texts.list_constants(sums, index, {})
    return runtime.launch(text, 2 + len(product.epilogue.inputs), arguments, items)


@lru_cache(product_texts.KEPT)
def _write_close(product: Product, index: templates.Index) -> str:
    exact = product.dtype.kind == "float"
    value = "a[row * a_row + column * a_column + k * slice_by]"
    body = f"""  const index_t i = get_global_id(0);
  if (i >= slice_by) return;
  const index_t batch = i / columns / rows, row = i / columns % rows, column = i % columns;
  AT(batch);
  T total = 0{", low = 0" if exact else ""};
  for (index_t k = 0; k < inner; k++)
    {product_texts.write_sum(product, value, "total", "low")}
  {"if (isfinite(low)) total += low;" if exact else ""}
  {product_texts.write_store(product, "total", "row", "column")}"""
    return product_texts.write_program("sum of slices", product, index, (), body, "typedef A T;")


def multiply_in_slices(
    runtime: Runtime, product: Product, number: int, launch: Callable[[Product], Launch]
) -> Callable[..., None]:
    """Return the product as a sum over at most ``number`` slices of the inner axis.

    ``launch`` prepares a product on the buffers of A, B and C; the returned callable takes those
    of A, B, the epilogue's inputs, and C.
    """
    part = make_part(product, number)
    multiply = launch(part)
    make = runtime.prepare_empty(
        TensorType(choose_dtype(product.dtype), (part.slices, part.slice_by))
    )
    close = launch_close(runtime, product, part)

    def run(a: DeviceBuffer, b: DeviceBuffer, *rest: DeviceBuffer) -> None:
        parts = make()
        multiply(a, b, parts)
        close(parts, *rest)

    return run


def add_parts(
    runtime: Runtime, parts: TensorType, out: TensorType, launch: Callable[..., None]
) -> Callable[..., DeviceBuffer]:
    """Return a function of what ``launch`` reads: the sum of the ``parts`` that it writes.

    Their first axis numbers them, and their dtype is ``choose_dtype`` of ``out``'s.
    """
    if parts.shape[0] == 1 and parts.dtype is out.dtype:
        return calls.make_producer(runtime, out, launch)
    make = runtime.prepare_empty(parts)
    add = make_adder(runtime, "Sum of parts", parts, out)

    def run(*inputs: DeviceBuffer) -> DeviceBuffer:
        sums = make()
        launch(*inputs, sums)
        return add(sums)

    return run
