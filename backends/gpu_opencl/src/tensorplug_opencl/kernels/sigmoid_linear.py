"""The sigmoid-weighted linear unit and its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import SILU_REACH, KernelTable, TensorType, specs
from tensorplug_opencl.kernels import pointwise
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.backend import OpenCLBackend

kernels = KernelTable()

# Multiplies twice by the root of e**-|x|: the power may be subnormal although the result is not.
# Below the bound the unit is 0; the cut avoids infinity times 0.
_UNIT: Final = f"""
INLINE A unit(A x) {{
  const A root = a_exp(a_fabs(x) * (A)-0.5);
  const A side = x < 0 ? root : 1;
  return (x < -(A){SILU_REACH} ? -(A){SILU_REACH} : x) * side * side / (root * root + 1);
}}"""
# s(x) * (1 + x * s(-x)), s being the sigmoid; below 0 it, too, has the root as a factor twice.
_SLOPE: Final = f"""
INLINE A slope(A x) {{
  const A cut = a_fabs(x) > (A){SILU_REACH} ? a_copysign((A){SILU_REACH}, x) : x;
  const A root = a_exp(a_fabs(cut) * (A)-0.5);
  const A side = cut < 0 ? root : 1;
  return side * (1 + cut * logistic(-cut)) * side / (root * root + 1);
}}"""


@kernels.prepare(specs.SILU)
def silu(x: TensorType, *, backend: OpenCLBackend, out: TensorType) -> Callable[..., Any]:
    """Compute the larger side of the sigmoid from the power itself."""
    formula, title = Formula("unit(x)"), f"Silu {x.dtype}"
    return pointwise.prepare_formula(
        backend.runtime, title, formula, {"x": x}, out, declarations=_UNIT
    )


@kernels.prepare(specs.SILU_GRAD)
def silu_grad(
    dy: TensorType, x: TensorType, *, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Multiply by the slope."""
    formula, title = Formula("dy * slope(x)"), f"SiluGrad {x.dtype}"
    return pointwise.prepare_formula(
        backend.runtime, title, formula, {"dy": dy, "x": x}, out, declarations=_SLOPE
    )
