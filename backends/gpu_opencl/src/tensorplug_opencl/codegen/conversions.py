"""Conversions of numbers and of vectors of numbers, as C text.

C leaves undefined what a float beyond an integer's range becomes, and drivers differ; so floats
are cut into parts of 32 bits, each of which converts exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import ctypes, numbers

if TYPE_CHECKING:
    from tensorplug.plugin import DType
    from tensorplug_opencl.codegen.numbers import Value


_UNSIGNED: Final = {dtype.itemsize: dtype for dtype in dt.INTEGER if dtype.kind == "unsigned"}


def cast(operand: Value, target: DType, width: int) -> str:
    """Return ``width`` numbers of one dtype as numbers of another."""
    name, source = operand.name, operand.dtype
    ctype = ctypes.computed(target)
    if target is dt.bool_:
        return f"{name} != {numbers.splat(ctypes.computed(source), '0', width)}"
    if source is dt.bool_:
        return f"convert_{numbers.wide(ctype, width)}({'' if width == 1 else '-'}{name})"
    if source.kind == "float" and target.kind != "float":
        return _truncate(name, source, target, width)
    if target.kind == "float":
        if target.compute is target:
            return f"convert_{numbers.wide(ctype, width)}({name})"
        return ctypes.widen(target, ctypes.narrow(target, name, width), width)
    return _change_size(name, source, target, width)


def _change_size(name: str, source: DType, target: DType, width: int) -> str:
    """Convert between integers: drop upper bits, or repeat the sign."""
    ctype, size = ctypes.computed(target), target.itemsize
    if width == 1:
        return f"({ctype}){name}"
    if size > source.itemsize:
        like = f"{'u' if source.kind == 'unsigned' else ''}{numbers.SIGNED[size]}"
        return f"as_{numbers.wide(ctype, width)}(convert_{numbers.wide(like, width)}({name}))"
    bits = f"as_{numbers.wide(f'u{numbers.SIGNED[source.itemsize]}', width)}({name})"
    if size < source.itemsize:
        literal = numbers.write_literal((1 << 8 * size) - 1, _UNSIGNED[source.itemsize])
        bits = f"convert_{numbers.wide(f'u{numbers.SIGNED[size]}', width)}({bits} & {literal})"
    return f"as_{numbers.wide(ctype, width)}({bits})"


def _truncate(name: str, source: DType, target: DType, width: int) -> str:
    """Convert floats to integers, which wrap: NaN and infinities to 0.

    The size of a number is cut into parts of 32 bits, without rounding.
    """
    real, size = ctypes.computed(source), target.itemsize
    half = "(0x1p-32f)" if real == "float" else "(0x1p-32)"
    up = half.replace("-32", "+32")
    zero = numbers.splat(real, "0", width)
    whole = f"({name} - {name} == 0 ? trunc(fabs({name})) : {zero})"
    high = f"floor({whole} * {half})"
    low = f"convert_{numbers.wide('uint', width)}({whole} - {high} * {up})"
    if size == 8:  # two parts
        rest = f"({high} - floor({high} * {half}) * {up})"
        long, short = numbers.wide("ulong", width), numbers.wide("uint", width)
        by = numbers.splat("ulong", "32", width)
        bits = f"((convert_{long}(convert_{short}({rest})) << {by}) | convert_{long}({low}))"
        unsigned = dt.uint64
    else:
        bits, unsigned = low, dt.uint32
    zero_bits = numbers.splat(ctypes.computed(unsigned), "0", width)
    negative = f"{name} < 0"
    if width > 1:
        like = numbers.SIGNED[unsigned.itemsize]
        negative = f"convert_{numbers.wide(like, width)}({negative})"
    turned = f"({negative} ? {zero_bits} - {bits} : {bits})"
    return _change_size(turned, unsigned, target, width)


def bitcast(operand: Value, target: DType, width: int) -> str:
    """Return the bits of ``width`` numbers as numbers of another dtype."""
    name = ctypes.narrow(operand.dtype, operand.name, width)
    result = f"as_{numbers.wide(ctypes.kept(target), width)}({name})"
    return ctypes.widen(target, result, width)
