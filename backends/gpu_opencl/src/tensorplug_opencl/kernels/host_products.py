"""Products by NumPy's BLAS, in memory that the host shares with the device.

Only if the user asks for it (``TENSORPLUG_OPENCL_BLAS=1``). On idle cores, BLAS takes half to all
of our kernels' time for products of medium size, and the same for large ones. But its threads
spin: where other processes want the cores, too, a product can take a hundred times as long.

The calling thread waits for the device and multiplies; what it enqueues later reads the result.
Types and sizes alone decide, so that a call always gives the same bits.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.kernels import slices
from tensorplug_opencl.kernels.matrices import Matrix
from tensorplug_opencl.kernels.products import NO_EPILOGUE
from tensorplug_opencl.shared_memory import LEAST as SHARED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.kernels.products import Product
    from tensorplug_opencl.runtime import Runtime

__all__ = ["LEAST", "make_multiplier"]

DTYPES: Final = (dt.float32, dt.float64)
LEAST: Final = 1 << 18  # multiplications of one matrix that are worth waiting for the device
MOST: Final = (1 << 31) - 1  # a length or a distance in BLAS


def make_multiplier(runtime: Runtime, product: Product) -> Callable[..., None] | None:
    """Return a callable that computes the product; None if the device should.

    It takes the buffers of A, B, the epilogue's inputs, and C.
    """
    if not runtime.uses_blas or not _is_suited(product):
        return None
    if product.epilogue is not NO_EPILOGUE:
        return slices.multiply_in_slices(runtime, product, 1, lambda part: _prepare(runtime, part))
    return _prepare(runtime, product)


def _is_suited(product: Product) -> bool:
    work = product.rows * product.inner * product.columns
    small = product.batches * product.rows * product.columns * product.dtype.itemsize < SHARED
    return (
        product.dtype in DTYPES
        and not small
        and work >= LEAST
        and min(product.rows, product.inner, product.columns) > 1
        and _is_plain(product.a, product.rows, product.inner)
        and _is_plain(product.b, product.inner, product.columns)
        and isinstance(product.c, Matrix)
        and product.c.column == 1
        and product.columns <= product.c.row <= MOST
    )


def _is_plain(operand: Any, rows: int, columns: int) -> bool:
    """Return whether BLAS reads ``operand`` as it lies in memory: by rows or by columns."""
    if not isinstance(operand, Matrix):
        return False
    short, long, across = operand.column, operand.row, columns
    if short != 1:
        short, long, across = operand.row, operand.column, rows
    return short == 1 and across <= long <= MOST


def _prepare(runtime: Runtime, product: Product) -> Callable[..., None]:
    """Return the function of the buffers of A, B and C."""
    a, b, c = (
        _prepare_view(runtime, product, operand, shape)
        for operand, shape in (
            (product.a, (product.rows, product.inner)),
            (product.b, (product.inner, product.columns)),
            (product.c, (product.rows, product.columns)),
        )
    )

    def multiply(left: DeviceBuffer, right: DeviceBuffer, result: DeviceBuffer) -> None:
        runtime.settle()
        began = time.perf_counter_ns()
        with np.errstate(all="ignore"):
            np.matmul(a(left), b(right), out=c(result))
        if runtime.measuring:
            runtime.measurements.record_host(time.perf_counter_ns() - began)

    return multiply


def _prepare_view(
    runtime: Runtime, product: Product, operand: Any, shape: tuple[int, int]
) -> Callable[[DeviceBuffer], np.ndarray[Any, Any]]:
    """Return the function that gives the matrices in a buffer, which the device has written."""
    whole = (*product.batch, *shape)
    itemsize = product.dtype.itemsize
    strides = tuple(itemsize * step for step in (*operand.batch, operand.row, operand.column))
    kind = product.dtype.numpy
    bytes_ = np.uint8

    def view(buffer: DeviceBuffer) -> np.ndarray[Any, Any]:
        if buffer.is_shared:
            memory: Any = buffer.memory
            return np.ndarray(whole, kind, memory.buf, buffer.offset * itemsize, strides)
        return np.ndarray(whole, kind, runtime.read(buffer).view(bytes_), 0, strides)

    return view
