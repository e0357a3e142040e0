"""Normalization with known moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.kernels import pointwise
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.backend import OpenCLBackend

kernels = KernelTable()


@kernels.prepare(specs.FUSED_BATCH_NORM)
def batch_norm(
    x: TensorType,
    scale: TensorType | None,
    offset: TensorType | None,
    mean: TensorType,
    variance: TensorType,
    *,
    variance_epsilon: dt.Scalar,
    backend: OpenCLBackend,
    out: TensorType,
) -> Callable[..., Any]:
    """Subtract the mean, multiply by scale over deviation, add the offset: in one pass."""
    named = {"x": x, "scale": scale, "offset": offset, "mean": mean, "variance": variance}
    present = {name: type_ for name, type_ in named.items() if type_ is not None}
    factor = f"{'1' if scale is None else 'scale'} / a_sqrt(variance + epsilon)"
    expression = f"(x - mean) * ({factor}){'' if offset is None else ' + offset'}"
    launch = pointwise.prepare_formula(
        backend.runtime,
        f"FusedBatchNorm {x.dtype}",
        Formula(expression),
        present,
        out,
        [pointwise.make_constant("epsilon", variance_epsilon, x.dtype)],
    )
    return lambda *buffers: launch(*[buffer for buffer in buffers if buffer is not None])
