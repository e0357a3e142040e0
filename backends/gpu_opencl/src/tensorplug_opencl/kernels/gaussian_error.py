"""The Gaussian error linear unit and its gradient."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import GELU_CUBIC, GELU_REACH, KernelTable, TensorType, specs
from tensorplug_opencl.kernels import pointwise
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.backend import OpenCLBackend

kernels = KernelTable()

# Twice the normal distribution function less 1, and what it adds to the slope: with the error
# function, and with the hyperbolic tangent that approximates it.
_SIDE: Final = {
    False: f"""
INLINE A side(A x) {{ return a_erf(x * (A){math.sqrt(0.5)!r}); }}
INLINE A change(A x, A side) {{
  return a_exp(x * x * (A)-0.5) * (A){1 / math.sqrt(2 * math.pi)!r};
}}""",
    True: f"""
INLINE A side(A x) {{
  return a_tanh(x * (1 + (A){GELU_CUBIC} * (x * x)) * (A){math.sqrt(2 / math.pi)!r});
}}
INLINE A change(A x, A side) {{
  const A inside = (1 + (A){3 * GELU_CUBIC!r} * (x * x)) * (A){math.sqrt(2 / math.pi)!r};
  return (A)0.5 * (1 - side * side) * inside;
}}""",
}
_LOW: Final = f"""
INLINE A low(A x) {{ return x < -(A){GELU_REACH} ? -(A){GELU_REACH} : x; }}
INLINE A unit(A x) {{ return x * ((A)0.5 * (1 + side(x))); }}"""
_SLOPE: Final = f"""
INLINE A cut(A x) {{ return a_fabs(x) > (A){GELU_REACH} ? a_copysign((A){GELU_REACH}, x) : x; }}
INLINE A slope(A x) {{
  const A about = side(x);
  return (A)0.5 * (1 + about) + x * change(x, about);
}}"""


@kernels.prepare(specs.GELU)
def gelu(
    x: TensorType, *, approximate: bool, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Multiply by the distribution function, with x cut off below, since -inf * 0 is NaN."""
    title = f"Gelu {x.dtype}{' approximate' if approximate else ''}"
    formula, functions = Formula("unit(low(x))"), _SIDE[approximate] + _LOW
    return pointwise.prepare_formula(
        backend.runtime, title, formula, {"x": x}, out, declarations=functions
    )


@kernels.prepare(specs.GELU_GRAD)
def gelu_grad(
    dy: TensorType, x: TensorType, *, approximate: bool, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Multiply by the slope."""
    title = f"GeluGrad {x.dtype}{' approximate' if approximate else ''}"
    formula, functions = Formula("dy * slope(cut(x))"), _SIDE[approximate] + _SLOPE
    return pointwise.prepare_formula(
        backend.runtime, title, formula, {"dy": dy, "x": x}, out, declarations=functions
    )
