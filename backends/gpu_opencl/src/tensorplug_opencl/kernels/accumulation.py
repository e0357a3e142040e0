"""Multiplication followed by addition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import KernelTable, TensorType, specs
from tensorplug_opencl.kernels import pointwise
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.backend import OpenCLBackend

kernels = KernelTable()


@kernels.prepare(specs.MULTIPLY_ADD)
def multiply_add(
    x: TensorType, y: TensorType, z: TensorType, *, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Round the product, then the sum, as two kernels would."""
    types = {"x": x, "y": y, "z": z}
    formula = Formula("x * y + z", ring=True)
    title = f"MultiplyAdd {x.dtype}"
    return pointwise.prepare_formula(backend.runtime, title, formula, types, out)
