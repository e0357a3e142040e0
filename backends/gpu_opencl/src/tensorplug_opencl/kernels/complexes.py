"""Complex numbers elementwise: a C expression per kernel, over pairs of real numbers.

These kernels serve complex numbers; the families' kernels serve all other dtypes (see
``catalogue``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import (
    DType,
    Expression,
    Group,
    GroupInput,
    GroupOutput,
    KernelRefusedError,
    KernelSpec,
    KernelTable,
    TensorType,
    expressions,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.templates import sized
from tensorplug_opencl.codegen import calls, complex_functions, ctypes, pointwise
from tensorplug_opencl.codegen.pointwise import Input
from tensorplug_opencl.groups import loops

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()  # only for complex numbers, and to make or split them
complex_kernels = KernelTable()  # families have these kernels for other dtypes

EXPRESSIONS: Final[dict[KernelSpec, str]] = {
    specs.MULTIPLY: "times(a, b)",
    specs.REAL_DIV: "over(a, b)",
    specs.DIV_NO_NAN: "b.x == 0 && b.y == 0 ? (A)(0, 0) : over(a, b)",
    specs.SQUARE: "times(x, x)",
    specs.SQUARED_DIFFERENCE: "times(a - b, a - b)",
    specs.EXP: "c_exp(x)",
    specs.LOG: "c_log(x)",
    specs.SQRT: "c_sqrt(x)",
    specs.SIN: "c_sin(x)",
    specs.COS: "c_cos(x)",
    specs.ATAN: "c_atan(x)",
    specs.TANH: "c_tanh(x)",
    specs.POW: "c_pow(a, b)",
    specs.EXPM1: "c_expm1(x)",
    specs.LOG1P: "c_log1p(x)",
    specs.LOG2: "c_log(x) / log((E)2)",
    specs.LOG10: "c_log(x) / log((E)10)",
    specs.RECIPROCAL: "over((A)(1, 0), x)",
    specs.RSQRT: "over((A)(1, 0), c_sqrt(x))",
    specs.SIGN: "c_sign(x)",
    specs.TAN: "c_tan(x)",
    specs.SINH: "c_sinh(x)",
    specs.COSH: "c_cosh(x)",
    specs.ASIN: "c_asin(x)",
    specs.ACOS: "c_acos(x)",
    specs.ASINH: "c_asinh(x)",
    specs.ACOSH: "c_acosh(x)",
    specs.ATANH: "c_atanh(x)",
    specs.EQUAL: "a.x == b.x && a.y == b.y",
    specs.NOT_EQUAL: "a.x != b.x || a.y != b.y",
    specs.IS_FINITE: "isfinite(x.x) && isfinite(x.y)",
    specs.IS_INF: "isinf(x.x) || isinf(x.y)",
    specs.IS_NAN: "isnan(x.x) || isnan(x.y)",
    specs.SIGMOID: "over((A)(1, 0), (A)(1, 0) + c_exp(-x))",
}


def compute(
    backend: OpenedDevice,
    spec: KernelSpec,
    expression: str,
    types: dict[str, TensorType],
    out: TensorType,
) -> Call:
    """Return a callable of complex inputs that computes an expression over their names."""
    dtype = next(iter(types.values())).dtype
    ctype = complex_functions.pair_type(dtype)
    inputs = [Input(name, type_, ctype, ctype) for name, type_ in types.items()]
    result = (
        complex_functions.pair_type(out.dtype)
        if out.dtype in dt.COMPLEX
        else ctypes.stored(out.dtype)
    )
    functions, title = complex_functions.define(expression, dtype), f"{spec.name} {dtype}"
    return pointwise.prepare(backend.runtime, title, inputs, out, result, expression, functions)


def _register(spec: KernelSpec, expression: str) -> None:
    def unary(x: TensorType, *, backend: OpenedDevice, out: TensorType) -> Call:
        return compute(backend, spec, expression, {"x": x}, out)

    def binary(a: TensorType, b: TensorType, *, backend: OpenedDevice, out: TensorType) -> Call:
        return compute(backend, spec, expression, {"a": a, "b": b}, out)

    complex_kernels.prepare(spec)(unary if len(spec.input_names) == 1 else binary)


for _spec, _expression in EXPRESSIONS.items():
    _register(_spec, _expression)


@complex_kernels.prepare(specs.MULTIPLY_ADD)
def multiply_add(
    x: TensorType, y: TensorType, z: TensorType, *, backend: OpenedDevice, out: TensorType
) -> Call:
    """Multiply, then add."""
    types = {"x": x, "y": y, "z": z}
    return compute(backend, specs.MULTIPLY_ADD, "times(x, y) + z", types, out)


@complex_kernels.prepare(specs.CAST)
def cast(x: TensorType, *, dtype: DType, backend: OpenedDevice, out: TensorType) -> Call:
    """Take the real part, or add a zero imaginary part; a number other than 0 is true."""
    if x.dtype is dtype:
        return lambda buffer: buffer
    if x.dtype not in dt.COMPLEX:
        return _widen(x, backend, out)
    if dtype in dt.COMPLEX:
        expression = f"convert_{complex_functions.pair_type(dtype)}(x)"
        return compute(backend, specs.CAST, expression, {"x": x}, out)
    if dtype is dt.bool_:
        return compute(backend, specs.CAST, "x.x != 0 || x.y != 0", {"x": x}, out)
    part = TensorType(dt.real_part(x.dtype), x.shape)
    first = compute(backend, specs.REAL, "x.x", {"x": x}, part)
    rest = _convert(backend, part, out)
    return lambda buffer: rest(first(buffer))


def _convert(backend: OpenedDevice, x: TensorType, out: TensorType) -> Call:
    """Return a callable that converts between real numbers."""
    if x == out:
        return lambda buffer: buffer
    spans = (True,) * out.rank
    value = Expression("cast", out.dtype, (expressions.parameter(0, x.dtype),))
    inputs, outputs = (GroupInput(x, spans),), (GroupOutput(value, out, spans),)
    run = loops.compile_group(
        sized(Group("Cast", out.shape, inputs, (), outputs)), backend.runtime
    )
    if run is None:
        raise KernelRefusedError(f"the device does not convert {x.dtype} to {out.dtype}")
    return lambda buffer: run(buffer)[0]


def _widen(x: TensorType, backend: OpenedDevice, out: TensorType) -> Call:
    if x.dtype not in ctypes.STORED:
        part = TensorType(dt.real_part(out.dtype), x.shape)
        first = _convert(backend, x, part)
        rest = _widen(part, backend, out)
        return lambda buffer: rest(first(buffer))
    ctype, real = complex_functions.pair_type(out.dtype), ctypes.stored(dt.real_part(out.dtype))
    inputs = [Input("x", x, ctypes.stored(x.dtype), ctypes.computed(x.dtype))]
    title = f"Cast {x.dtype} to {out.dtype}"
    expression = f"({ctype})(({real})x, 0)"
    return pointwise.prepare(backend.runtime, title, inputs, out, ctype, expression)


@kernels.prepare(specs.COMPLEX)
def complex_(
    real: TensorType, imag: TensorType, *, backend: OpenedDevice, out: TensorType
) -> Call:
    """Put both parts side by side."""
    ctype, part = complex_functions.pair_type(out.dtype), ctypes.stored(dt.real_part(out.dtype))
    inputs = [
        Input(name, type_, ctypes.stored(type_.dtype), part)
        for name, type_ in (("re", real), ("im", imag))
    ]
    title = f"Complex {real.dtype}"
    expression = f"({ctype})(re, im)"
    return pointwise.prepare(backend.runtime, title, inputs, out, ctype, expression)


@kernels.prepare(specs.REAL)
def real(input: TensorType, *, backend: OpenedDevice, out: TensorType) -> Call:
    """Take the first of each pair; real numbers stay."""
    if input.dtype not in dt.COMPLEX:
        return lambda buffer: buffer
    return compute(backend, specs.REAL, "x.x", {"x": input}, out)


@kernels.prepare(specs.IMAG)
def imag(input: TensorType, *, backend: OpenedDevice, out: TensorType) -> Call:
    """Take the second of each pair; for real numbers, 0."""
    if input.dtype not in dt.COMPLEX:
        return calls.make_zeros(backend.runtime, out)
    return compute(backend, specs.IMAG, "x.y", {"x": input}, out)


@kernels.prepare(specs.CONJ)
def conj(x: TensorType, *, backend: OpenedDevice, out: TensorType) -> Call:
    """Negate the second of each pair; real numbers stay."""
    if x.dtype not in dt.COMPLEX:
        return lambda buffer: buffer
    return compute(backend, specs.CONJ, "(A)(x.x, -x.y)", {"x": x}, out)


@kernels.prepare(specs.COMPLEX_ABS)
def complex_abs(x: TensorType, *, backend: OpenedDevice, out: TensorType) -> Call:
    """Return the modulus, without overflow on the way."""
    return compute(backend, specs.COMPLEX_ABS, "modulus(x)", {"x": x}, out)
