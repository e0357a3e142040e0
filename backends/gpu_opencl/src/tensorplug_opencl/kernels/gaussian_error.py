"""The Gaussian error linear unit and its gradient."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import (
    GELU_CUBIC,
    GELU_REACH,
    KernelTable,
    TensorType,
    error_function,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.kernels import pointwise
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import DType
    from tensorplug_opencl.backend import OpenCLBackend

kernels = KernelTable()


def _write_ratio(pair: tuple[tuple[float, ...], tuple[float, ...]]) -> str:
    """Return the quotient of two polynomials in z, by Horner's rule."""
    parts = []
    for *others, result in ([f"(A){number!r}" for number in part] for part in pair):
        for coefficient in reversed(others):
            result = f"({coefficient} + z * {result})"  # noqa: PLW2901  # from inside outwards
        parts.append(result)
    return " / ".join(parts)


# The normal distribution function, by working type: at -|x|, where it is accurate.
_EXACT: Final = {
    "float": f"""
INLINE A share(A x) {{
  const A z = a_fabs(x) < (A){GELU_REACH} ? a_fabs(x) : (A){GELU_REACH};
  const A tail = a_exp(z * z * (A)-0.5) * ({_write_ratio(error_function.NORMAL_SINGLE)});
  return x < 0 ? tail : 1 - tail;
}}""",
    "double": f"""
INLINE A share(A x) {{
  const A size = a_fabs(x) * (A){math.sqrt(0.5)!r};
  const A z = 1 / (size * size);
  const A ratio = size < {error_function.ENDS[2]!r}
    ? {_write_ratio(error_function.MIDDLE)}
    : {_write_ratio(error_function.FAR)};
  const A far = a_exp(ratio - size * size - (A)0.5625) / size;
  const A tail = (A)0.5 * (size < {error_function.ENDS[1]!r} ? 1 - a_erf(size) : far);
  return x < 0 ? tail : 1 - tail;
}}""",
}
# The slope: with the density, or with the sigmoid that approximates the function.
_SHARE: Final = {
    False: f"""
INLINE A slope_of(A x) {{
  return share(x) + x * (a_exp(x * x * (A)-0.5) * (A){1 / math.sqrt(2 * math.pi)!r});
}}""",
    True: f"""
INLINE A score(A x) {{
  return x * (1 + (A){GELU_CUBIC} * (x * x)) * (A){2 * math.sqrt(2 / math.pi)!r};
}}
INLINE A share(A x) {{ return logistic(score(x)); }}
INLINE A slope_of(A x) {{
  const A inside = (1 + (A){3 * GELU_CUBIC!r} * (x * x)) * (A){2 * math.sqrt(2 / math.pi)!r};
  return share(x) * (1 + x * inside * logistic(-score(x)));
}}""",
}
_LOW: Final = f"""
INLINE A low(A x) {{ return x < -(A){GELU_REACH} ? -(A){GELU_REACH} : x; }}
INLINE A unit(A x) {{ return x * share(x); }}"""
_SLOPE: Final = f"""
INLINE A cut(A x) {{ return a_fabs(x) > (A){GELU_REACH} ? a_copysign((A){GELU_REACH}, x) : x; }}
INLINE A slope(A x) {{ return slope_of(x); }}"""


def _declare(dtype: DType, *, approximate: bool) -> str:
    exact = _EXACT["double" if dtype is dt.float64 else "float"]
    return ("" if approximate else exact) + _SHARE[approximate]


@kernels.prepare(specs.GELU)
def gelu(
    x: TensorType, *, approximate: bool, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Multiply by the distribution function, with x cut off below, since -inf * 0 is NaN."""
    title = f"Gelu {x.dtype}{' approximate' if approximate else ''}"
    formula, functions = Formula("unit(low(x))"), _declare(x.dtype, approximate=approximate) + _LOW
    return pointwise.prepare_formula(
        backend.runtime, title, formula, {"x": x}, out, declarations=functions
    )


@kernels.prepare(specs.GELU_GRAD)
def gelu_grad(
    dy: TensorType, x: TensorType, *, approximate: bool, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Multiply by the slope."""
    title = f"GeluGrad {x.dtype}{' approximate' if approximate else ''}"
    formula, functions = (
        Formula("dy * slope(cut(x))"),
        _declare(x.dtype, approximate=approximate) + _SLOPE,
    )
    return pointwise.prepare_formula(
        backend.runtime, title, formula, {"dy": dy, "x": x}, out, declarations=functions
    )
