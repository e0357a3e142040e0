"""The kernel for tensorplug-opencl, which builds a program from a C expression of the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import KernelTable, TensorType
from tensorplug_opencl.extensions import elementwise

from tensorplug_example_swish.op import SWISH

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.extensions import DeviceBuffer, OpenCLBackend

kernels = KernelTable()


@kernels.prepare(SWISH)
def swish(
    x: TensorType, *, beta: float, backend: OpenCLBackend, out: TensorType
) -> Callable[..., DeviceBuffer]:
    """Prepare one kind of call; beta is an argument, so that all betas share one program.

    ``logistic`` is a function of the backend.
    """
    # REPLACE: the formula in C.
    expression = "(x == -INFINITY ? 0 : x) * logistic(beta * x)"
    name, inputs, attributes = SWISH.name, {"x": x}, {"beta": beta}
    return elementwise(backend, name, expression, inputs, out, attributes)
