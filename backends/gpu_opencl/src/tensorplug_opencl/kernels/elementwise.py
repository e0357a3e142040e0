"""Elementwise arithmetic: a C expression per kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug import dtypes as dt
from tensorplug.ops.elementwise import (
    ABS,
    ADD,
    ATAN,
    CAST,
    COS,
    ERF,
    EXP,
    FLOOR,
    FLOOR_DIV,
    LOG,
    MAXIMUM,
    MINIMUM,
    MOD,
    MULTIPLY,
    NEG,
    POW,
    REAL_DIV,
    SELECT,
    SIN,
    SQRT,
    SQUARE,
    SQUARED_DIFFERENCE,
    SUB,
    TANH,
)
from tensorplug.tables import KernelTable
from tensorplug_opencl.kernels import ctypes, pointwise
from tensorplug_opencl.kernels.pointwise import Formula, Input

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dtypes import DType
    from tensorplug.spec import KernelSpec, TensorType
    from tensorplug_opencl.backend import OpenCLBackend

kernels = KernelTable()

# In the ring type integers wrap; comparisons and divisions need the type itself.
EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    NEG: Formula("-x", ring=True),
    ABS: Formula("fabs(x)", signed="x < 0 ? 0 - (R)x : (R)x", unsigned="x"),
    FLOOR: Formula("floor(x)", signed="x", unsigned="x"),
    EXP: Formula("exp(x)"),
    LOG: Formula("log(x)"),
    SQRT: Formula("sqrt(x)"),
    SIN: Formula("sin(x)"),
    COS: Formula("cos(x)"),
    ATAN: Formula("atan(x)"),
    ERF: Formula("erf(x)"),
    TANH: Formula("tanh(x)"),
    SQUARE: Formula("x * x", ring=True),
    ADD: Formula("a + b", ring=True),
    SUB: Formula("a - b", ring=True),
    MULTIPLY: Formula("a * b", ring=True),
    REAL_DIV: Formula("a / b"),
    FLOOR_DIV: Formula("floor_div(a, b)"),
    MOD: Formula("floor_mod(a, b)"),
    POW: Formula("power(a, b)"),
    # A NaN in a is seen by a != a; one in b makes the comparison false.
    MAXIMUM: Formula("a >= b || a != a ? a : b"),
    MINIMUM: Formula("a <= b || a != a ? a : b"),
    SQUARED_DIFFERENCE: Formula("(a - b) * (a - b)", ring=True),
}
pointwise.register(kernels, EXPRESSIONS)


@kernels.prepare(CAST)
def cast(
    x: TensorType, *, dtype: DType, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Convert between any two dtypes; see the expression for each pair of kinds."""
    if x.dtype is dtype:
        return lambda buffer: buffer
    formula = Formula(_conversion(x.dtype, dtype))
    title = f"Cast {x.dtype} to {dtype}"
    return pointwise.of_formula(backend.runtime, title, formula, {"x": x}, out)


def _conversion(source: DType, target: DType) -> str:
    if target is dt.bool_:
        return "x != 0"
    if source.kind == "float" and target in dt.INTEGER:
        return "wrapped(x)"
    return "x"


@kernels.prepare(SELECT)
def select(
    condition: TensorType,
    t: TensorType,
    e: TensorType,
    *,
    backend: OpenCLBackend,
    out: TensorType,
) -> Callable[..., Any]:
    """Choose bits, whatever they mean."""
    ctype = ctypes.moved(out.dtype)
    inputs = [
        Input("condition", condition, "uchar", "uchar"),
        Input("t", t, ctype, ctype),
        Input("e", e, ctype, ctype),
    ]
    expression = "condition ? t : e"
    return pointwise.prepare(backend.runtime, f"Select {ctype}", inputs, out, ctype, expression)
