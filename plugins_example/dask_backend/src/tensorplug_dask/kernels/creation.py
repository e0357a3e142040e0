"""Tensors made from attributes, and of arrays of Dask's."""

from __future__ import annotations

from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from tensorplug.plugin import DType, KernelTable, Scalar, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_dask.blocks import chunks_of, elementwise, full
from tensorplug_dask.native import native

kernels = KernelTable()


def _full(*, value: Scalar, out: TensorType, limit: int) -> da.Array:
    return full(np.array(value, out.dtype.numpy), out, limit)


@native(kernels, specs.FILL, chunked=_full)
def fill(*, value: Scalar, out: TensorType) -> Any:
    return np.full(out.shape, value, out.dtype.numpy)


def _numbers(positions: Any, *, start: float, step: float, dtype: DType) -> Any:
    """Each number comes from its own position, so that no rounding error adds up."""
    if isinstance(start, int) and isinstance(step, int):  # modulo 2**64, in which all are exact
        whole = positions.astype(np.uint64) * np.uint64(step % 2**64) + np.uint64(start % 2**64)
        signed = whole if dtype in dt.UNSIGNED else whole.view(np.int64)
        return signed.astype(dtype.numpy)
    return (positions * step + start).astype(dtype.numpy)


def _counted(*, start: float, step: float, dtype: DType, out: TensorType, limit: int) -> da.Array:
    chunks = chunks_of(out.shape, np.dtype(np.int64), limit)
    positions = da.arange(out.size, dtype=np.int64, chunks=chunks)
    numbers = partial(_numbers, start=start, step=step, dtype=dtype)
    return elementwise(numbers, [positions], out, limit)


@native(kernels, specs.RANGE, chunked=_counted)
def range_(*, start: float, step: float, dtype: DType, out: TensorType) -> Any:
    return _numbers(np.arange(out.size), start=start, step=step, dtype=dtype)
