"""Rounding, signs, bounds and neighbours: the specs' expressions, and formulas in C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import KernelSpec, KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.kernels import formula_tables, pointwise
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.backend import OpenCLBackend

kernels = KernelTable()

EXPRESSIONS: Final = (
    specs.CEIL,
    specs.ROUND,
    specs.TRUNC,
    specs.COPY_SIGN,
)
formula_tables.register_expressions(kernels, EXPRESSIONS)

FORMULAS: Final[dict[KernelSpec, Formula]] = {
    specs.SIGN: Formula("x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x"),
    specs.SIGN_BIT: Formula("a_bits(x) < 0", signed="x < 0", unsigned="0"),
}
formula_tables.register(kernels, FORMULAS)


@kernels.prepare(specs.CLIP_BY_VALUE)
def clip_by_value(
    x: TensorType,
    *,
    clip_value_min: dt.Scalar,
    clip_value_max: dt.Scalar,
    backend: OpenCLBackend,
    out: TensorType,
) -> Callable[..., Any]:
    """Compare with both bounds; NaN, which is neither below nor above, stays."""
    bounds = {"low": clip_value_min, "high": clip_value_max}
    constants = [pointwise.make_constant(name, value, x.dtype) for name, value in bounds.items()]
    formula = Formula("x < low ? low : x > high ? high : x")
    title = f"ClipByValue {x.dtype}"
    return pointwise.prepare_formula(backend.runtime, title, formula, {"x": x}, out, constants)


# The neighbour's bits are one more or one less, as it is farther from 0 or not. The difference of
# the two is NaN if one of them is.
_NEIGHBOUR: Final = """
INLINE A neighbour(A a, A b) {
  const A beside_0 = a_copysign(a_number(1), b);
  const A beside = a_number(a_bits(a) + ((b > a) == (a > 0) ? 1 : -1));
  return a == b ? b : a != a || b != b ? a + b : a == 0 ? beside_0 : beside;
}"""


@kernels.prepare(specs.NEXT_AFTER, dtypes=(dt.float32, dt.float64))
def nextafter(
    a: TensorType, b: TensorType, *, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Step to the next bit pattern; float16, widened here, has other neighbours."""
    types = {"a": a, "b": b}
    formula = Formula("neighbour(a, b)")
    title = f"NextAfter {a.dtype}"
    return pointwise.prepare_formula(
        backend.runtime, title, formula, types, out, declarations=_NEIGHBOUR
    )
