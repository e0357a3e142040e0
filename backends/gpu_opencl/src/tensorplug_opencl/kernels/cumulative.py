"""Running sums and products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.tables import KernelTable
from tensorplug.ops.cumulative import CUMPROD, CUMSUM
from tensorplug_opencl.kernels import calls, folds
from tensorplug_opencl.kernels.scans import Scan, scanner

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.kernels.folds import Fold

kernels = KernelTable()


def _register(
    spec: KernelSpec, fold: Callable[[DType], Fold], dtypes: frozenset[DType] | None = None
) -> None:
    @kernels.prepare(spec, dtypes=dtypes)
    def prepare(
        x: TensorType,
        *,
        axis: int,
        exclusive: bool,
        reverse: bool,
        backend: OpenCLBackend,
        out: TensorType,
    ) -> Callable[..., DeviceBuffer]:
        if not out.size:
            return calls.empty(backend.runtime, out)
        outer, inner = shapes.size(x.shape[:axis]), shapes.size(x.shape[axis + 1 :])
        shape = (outer, x.shape[axis], inner)
        scan = Scan(spec.name, fold(out.dtype), shape, exclusive, reverse)
        return scanner(backend.runtime, scan, x.dtype, out)


_register(CUMSUM, folds.sum_fold)
_register(CUMPROD, folds.product_fold, dt.REAL | dt.BOOL)  # complex sums are sums of pairs
