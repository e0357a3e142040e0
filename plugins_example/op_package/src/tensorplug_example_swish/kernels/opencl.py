"""Swish for tensorplug-opencl, which makes a program of a C expression over the inputs' names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug import dtypes as dt
from tensorplug.tables import KernelTable
from tensorplug_example_swish.op import SWISH
from tensorplug_opencl.kernels.pointwise import Formula, of_formula

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.spec import TensorType
    from tensorplug_opencl.backend import OpenCLBackend

kernels = KernelTable()


@kernels.prepare(SWISH)
def swish(
    x: TensorType, *, beta: float, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Build the program once per kind of call; beta is a constant in it.

    ``logistic`` is the backend's own function. half is computed in float, so only double
    takes constants of double precision, which not every device has.
    """
    constant = repr(beta) if x.dtype is dt.float64 else f"{beta!r}f"
    formula = Formula(f"(x == -INFINITY ? 0 : x) * logistic({constant} * x)")
    return of_formula(backend.runtime, f"Swish {x.dtype}", formula, {"x": x}, out)
