"""Elementwise kernels that an expression of the spec does not serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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


# How many arrays one launch adds up; every device has room for their arguments.
_ADDENDS: Final = 8


@kernels.prepare(specs.ADD_N)
def add_n(xs: list[TensorType], *, backend: OpenedDevice, out: TensorType) -> Callable[..., Any]:
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


def _make_adder(backend: OpenedDevice, out: TensorType, count: int) -> Callable[..., Any]:
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
