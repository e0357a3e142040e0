"""Elementwise arithmetic: a C expression per kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import DType, KernelSpec, KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.kernels import ctypes, formula_tables, pointwise
from tensorplug_opencl.kernels.pointwise import Formula, Input, SlowPath

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.backend import OpenCLBackend

kernels = KernelTable()

# In the ring type integers wrap; comparisons and divisions need the type itself.
EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    specs.NEG: Formula("-x", ring=True),
    specs.ABS: Formula("a_fabs(x)", signed="x < 0 ? 0 - (R)x : (R)x", unsigned="x"),
    specs.FLOOR: Formula("a_floor(x)", signed="x", unsigned="x"),
    specs.EXP: Formula("a_exp(x)"),
    specs.LOG: Formula("a_log(x)"),
    specs.SQRT: Formula("a_sqrt(x)"),
    specs.SIN: Formula("a_sin(x)", slow_path=SlowPath("a_is_far(x)", "sin(x)")),
    specs.COS: Formula("a_cos(x)", slow_path=SlowPath("a_is_far(x)", "cos(x)")),
    specs.ATAN: Formula("a_atan(x)"),
    specs.ERF: Formula("a_erf(x)"),
    specs.TANH: Formula("a_tanh(x)"),
    specs.SQUARE: Formula("x * x", ring=True),
    specs.ADD: Formula("a + b", ring=True),
    specs.SUB: Formula("a - b", ring=True),
    specs.MULTIPLY: Formula("a * b", ring=True),
    specs.REAL_DIV: Formula("a / b"),
    specs.DIV_NO_NAN: Formula("b == 0 ? 0 : a / b"),
    specs.FLOOR_DIV: Formula(
        "a_quotient(a, b, a_near_mod(a, b))",
        signed="floor_div(a, b)",
        unsigned="floor_div(a, b)",
        slow_path=SlowPath("a_far_apart(a, b)", "floor_div(a, b)"),
    ),
    specs.MOD: Formula(
        "a_rest(b, a_near_mod(a, b))",
        signed="floor_mod(a, b)",
        unsigned="floor_mod(a, b)",
        slow_path=SlowPath("a_far_apart(a, b)", "floor_mod(a, b)"),
    ),
    specs.POW: Formula("power(a, b)"),
    # A NaN in a is seen by a != a; one in b makes the comparison false.
    specs.MAXIMUM: Formula("a >= b || a != a ? a : b"),
    specs.MINIMUM: Formula("a <= b || a != a ? a : b"),
    specs.SQUARED_DIFFERENCE: Formula("(a - b) * (a - b)", ring=True),
}
formula_tables.register(kernels, EXPRESSIONS)


@kernels.prepare(specs.CAST)
def cast(
    x: TensorType, *, dtype: DType, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Convert between any two dtypes; see the expression for each pair of kinds."""
    if x.dtype is dtype:
        return lambda buffer: buffer
    formula = Formula(_convert(x.dtype, dtype))
    title = f"Cast {x.dtype} to {dtype}"
    return pointwise.prepare_formula(backend.runtime, title, formula, {"x": x}, out)


def _convert(source: DType, target: DType) -> str:
    if target is dt.bool_:
        return "x != 0"
    if source.kind == "float" and target in dt.INTEGER:
        return "wrapped(x)"
    return "x"


@kernels.prepare(specs.SELECT)
def select(
    condition: TensorType,
    t: TensorType,
    e: TensorType,
    *,
    backend: OpenCLBackend,
    out: TensorType,
) -> Callable[..., Any]:
    """Choose elements as bits, for every dtype."""
    ctype = ctypes.moved(out.dtype)
    inputs = [
        Input("condition", condition, "uchar", "uchar"),
        Input("t", t, ctype, ctype),
        Input("e", e, ctype, ctype),
    ]
    expression = "condition ? t : e"
    return pointwise.prepare(backend.runtime, f"Select {ctype}", inputs, out, ctype, expression)


# How many arrays one launch adds up; every device has room for their arguments.
_ADDENDS: Final = 8


@kernels.prepare(specs.ADD_N)
def add_n(xs: list[TensorType], *, backend: OpenCLBackend, out: TensorType) -> Callable[..., Any]:
    """Add up to eight arrays at a time, in pairs, and repeat until one is left."""
    adders = {n: _make_adder(backend, out, n) for n in _find_lengths(len(xs))}

    def run(buffers: list[Any]) -> Any:
        while len(buffers) > 1:
            parts = [buffers[at : at + _ADDENDS] for at in range(0, len(buffers), _ADDENDS)]
            buffers = [adders[len(part)](*part) for part in parts]
        return buffers[0]

    return run


def _find_lengths(count: int) -> set[int]:
    """Return the numbers of arrays that are added at once, for ``count`` in total."""
    lengths: set[int] = set()
    while count > 1:
        full, rest = divmod(count, _ADDENDS)
        lengths |= ({_ADDENDS} if full else set()) | ({rest} if rest else set())
        count = full + bool(rest)
    return lengths


def _make_adder(backend: OpenCLBackend, out: TensorType, count: int) -> Callable[..., Any]:
    if count == 1:
        return lambda buffer: buffer
    names = [f"x{number}" for number in range(count)]
    title = f"AddN {out.dtype} of {count}"
    formula = Formula(_add_in_pairs(names), ring=True)
    return pointwise.prepare_formula(
        backend.runtime, title, formula, dict.fromkeys(names, out), out
    )


def _add_in_pairs(names: list[str]) -> str:
    half = len(names) // 2
    return f"({_add_in_pairs(names[:half])} + {_add_in_pairs(names[half:])})" if half else names[0]
