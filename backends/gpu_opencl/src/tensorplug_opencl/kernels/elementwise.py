"""Elementwise kernels that an expression of the spec does not serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import DType, KernelTable, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import ctypes, formats, pointwise
from tensorplug_opencl.codegen.pointwise import Formula, Input
from tensorplug_opencl.kernels.expressions import prepare_expression, prepare_rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()


@kernels.prepare(specs.CAST)
def cast(
    x: TensorType, *, dtype: DType, backend: OpenedDevice, out: TensorType
) -> Callable[..., Any]:
    """Convert between any two dtypes; those for storage are bytes, whose bits are computed."""
    if x.dtype is dtype:
        return lambda buffer: buffer
    held, made = (TensorType(_held(type_.dtype), type_.shape) for type_ in (x, out))
    number = expressions.parameter(0, held.dtype)
    if x.dtype in dt.STORAGE:
        number = formats.decode(number, x.dtype)
    store = formats.encode if dtype in dt.STORAGE else expressions.cast
    title = f"Cast {x.dtype} to {dtype} from"
    convert = prepare_expression(backend.runtime, title, store(number, dtype), [held], made)
    shape = out.shape
    return lambda buffer: convert(buffer).reinterpret(dtype, shape)


def _held(dtype: DType) -> DType:
    return formats.HELD if dtype in dt.STORAGE else dtype


@kernels.prepare(specs.POW)
def power(
    a: TensorType, b: TensorType, *, backend: OpenedDevice, out: TensorType
) -> Callable[..., Any]:
    """Multiply integers by squaring; floats have an expression."""
    runtime, types = backend.runtime, [a, b]
    if a.dtype.kind == "float":
        return prepare_rule(runtime, specs.POW, types, out)
    title, formula = f"Pow {a.dtype}", Formula("power(a, b)")
    return pointwise.prepare_formula(runtime, title, formula, {"a": a, "b": b}, out)


@kernels.prepare(specs.SELECT)
def select(
    condition: TensorType,
    t: TensorType,
    e: TensorType,
    *,
    backend: OpenedDevice,
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
