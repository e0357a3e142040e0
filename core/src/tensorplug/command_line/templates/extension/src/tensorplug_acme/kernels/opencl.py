"""The kernel for tensorplug-opencl, which makes a program of a C expression of the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import KernelTable
from tensorplug_opencl.extending import elementwise

from tensorplug_acme.op import ACME

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.spec import TensorType
    from tensorplug_opencl.extending import DeviceBuffer, OpenCLBackend

kernels = KernelTable()


@kernels.prepare(ACME)
def acme(
    x: TensorType, *, beta: float, backend: OpenCLBackend, out: TensorType
) -> Callable[..., DeviceBuffer]:
    """Prepare a kind of call once; beta is an argument, so that all betas share one program.

    ``logistic`` is the backend's own function.
    """
    # REPLACE: the formula in C.
    expression = "(x == -INFINITY ? 0 : x) * logistic(beta * x)"
    name, inputs, attributes = ACME.name, {"x": x}, {"beta": beta}
    return elementwise(backend, name, expression, inputs, out, attributes)
