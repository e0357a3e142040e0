"""Operators that change dtypes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from onnx import helper

import tensorplug as tp
from tensorplug.plugin import narrowing
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import as_host, dtype_of, has_dtype, namespace, to_numpy_dtype

if TYPE_CHECKING:
    from tensorplug_onnx.values import Host

_SATURATING: Final = {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"}

# Bits of the fraction, the least exponent of a normal number, the largest number.
_SIX_BITS: Final = {"float6_e2m3fn": (3, 0, 7.5), "float6_e3m2fn": (2, -2, 28.0)}


@cache
def dtype_name(elem_type: int) -> str:
    """Return the name of an element dtype from ONNX's number of it."""
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    return "string" if dtype.kind == "O" else str(dtype)


def cast(x: Any, dtype: str, *, saturate: int = 1, round_mode: str = "up") -> Any:
    """Return a tensor or host array with its elements converted as ONNX's Cast says.

    Args:
        x: a tensor or a host array.
        dtype: a name, as ``dtype_of`` returns it.
        saturate: for 8-bit floats: what is too large becomes the largest finite number.
        round_mode: for ``float8_e8m0fnu``.

    Returns:
        A host array for a host array, for text, and if the device lacks the dtype.

    """
    given = dtype_of(x)
    if given == dtype:
        return x
    if given == "string":
        return _parsed(as_host(x), dtype)
    if dtype == "string":
        return _printed(as_host(x))
    if not has_dtype(dtype):
        x = as_host(x)
    if dtype == "float8_e8m0fnu":
        return _powers(cast(x, "float32"), saturate=bool(saturate), round_mode=round_mode)
    if not hasattr(tp, dtype):
        return _rounded(x, to_numpy_dtype(dtype))
    clipped = bool(saturate) and dtype in _SATURATING
    if isinstance(x, np.ndarray):
        return _converted(x, getattr(tp, dtype), clipped=clipped)
    return tp.astype(x, getattr(tp, dtype), saturate=clipped)


def _converted(x: Host, dtype: tp.DType, *, clipped: bool) -> Host:
    if clipped:
        x = np.clip(x if x.dtype.kind in "fiu" else x.astype(np.float32), dtype.min, dtype.max)
    with np.errstate(invalid="ignore", over="ignore"):
        return narrowing.convert(x, dtype)


def _rounded(x: Host, dtype: np.dtype[Any]) -> Host:
    """Return numbers in a float of 6 bits, rounded once to even, at most its largest one.

    These formats have neither infinity nor NaN. (OCP Microscaling Formats, 5.3.2)
    """
    digits, least, largest = _SIX_BITS[dtype.name]
    wide = x.astype(np.float64)
    exponents = np.maximum(np.frexp(wide)[1] - 1, least)
    units = np.ldexp(1.0, exponents - digits)
    found: Host = np.clip(np.rint(wide / units) * units, -largest, largest).astype(dtype)
    return found


def _parsed(x: Host, dtype: str) -> Any:
    """Return the numbers that texts stand for: ``1e-5``, ``100.5``, ``+INF``, ``True``."""
    if dtype.startswith(("int", "uint")):
        wide = np.uint64 if dtype.startswith("uint") else np.int64
        return cast(np.array([*map(_integer, x.flat)], wide).reshape(x.shape), dtype)
    return cast(np.array([*map(_number, x.flat)], np.float64).reshape(x.shape), dtype)


def _number(text: str) -> float:
    return float(_WORDS.get(text.lower(), text))


def _integer(text: str) -> int:
    try:
        return int(text)  # a float has less than 64 bits
    except ValueError:
        return int(_number(text))


_WORDS: Final = {"true": "1", "false": "0"}


def _printed(x: Host) -> Host:
    """Return the shortest decimals, without exponents, that stand for no other number.

    Numbers that are not finite are written as the description of Cast does.
    """
    if dtype_of(x).startswith(("bool", "int", "uint")):
        texts = [str(number) for number in x.flat]
    else:
        floats = x if x.dtype.kind == "f" else x.astype(np.float32)
        texts = [_decimal(number) for number in floats.flat]
    return np.array(texts, np.dtypes.StringDType()).reshape(x.shape)


def _decimal(number: np.floating[Any]) -> str:
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "INF" if number > 0 else "-INF"
    return np.format_float_positional(number, trim="0")


def _powers(x: Any, *, saturate: bool, round_mode: str) -> Any:
    """Return float32 numbers as powers of two.

    The code of a power is its exponent plus 127, as in float32 itself, of whose subnormal numbers
    the larger half lies between codes 0 and 1.
    """
    xp = namespace(x)
    half = 0x400000
    least = {"up": 1, "nearest": half, "down": 2 * half}
    if round_mode not in least:
        raise ValueError(f"round_mode is {round_mode!r}, must be 'up', 'nearest' or 'down'")
    bits = xp.bitwise_and(x.view(np.int32) if xp is np else tp.bitcast(x, "int32"), 0x7FFFFFFF)
    code = xp.bitwise_right_shift(bits, 23)
    normal = xp.bitwise_and(bits, 2 * half - 1)
    fraction = xp.where(code == 0, 2 * xp.maximum(bits - half, 0), normal)
    rounded = xp.where(fraction >= least[round_mode], code + 1, code)
    if saturate:
        chosen = xp.where(xp.isnan(x), 255, xp.minimum(rounded, 254))
    else:
        chosen = xp.where(bits < half, 255, xp.minimum(rounded, 255))
    codes = xp.astype(chosen, xp.uint8)
    if xp is np:
        return codes.view(to_numpy_dtype("float8_e8m0fnu"))
    return tp.bitcast(codes, "float8_e8m0fnu")


@rule("Cast", raw=True)
def cast_to(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    return cast(x, dtype_name(to), saturate=saturate, round_mode=round_mode)


@rule("CastLike", raw=True)
def cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up") -> Any:
    return cast(x, dtype_of(like), saturate=saturate, round_mode=round_mode)


@rule("BitCast", raw=True)
def bit_cast(x: Any, *, to: int) -> Any:
    given, dtype = getattr(tp, dtype_of(x)), getattr(tp, dtype_name(to))
    if dtype.bits != given.bits or tp.string in (dtype, given):
        raise ValueError(f"{dtype} has another width than {given}")
    if given == tp.bool:
        x = cast(x, "uint8")
    kind = tp.uint8 if dtype == tp.bool else dtype
    if not has_dtype(kind.name):
        x = as_host(x)
    bits = x.view(kind.numpy) if isinstance(x, np.ndarray) else tp.bitcast(x, kind)
    return cast(bits, dtype.name)
