"""Running sums and products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import DType, KernelSpec, KernelTable, TensorType, shapes, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, folds
from tensorplug_opencl.reductions.scans import Scan, make_scanner

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.codegen.folds import Fold
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice

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
        backend: OpenedDevice,
        out: TensorType,
    ) -> Callable[..., DeviceBuffer]:
        if not out.size:
            return calls.make_empty(backend.runtime, out)
        outer, inner = shapes.size(x.shape[:axis]), shapes.size(x.shape[axis + 1 :])
        shape = (outer, x.shape[axis], inner)
        scan = Scan(spec.name, fold(out.dtype), shape, exclusive, reverse)
        return make_scanner(backend.runtime, scan, x.dtype, out)


_register(specs.CUMSUM, folds.sum_fold)
_register(specs.CUMPROD, folds.product_fold, dt.REAL | dt.BOOL)  # complex sums are sums of pairs
