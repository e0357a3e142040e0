"""Operators that change dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from onnx import helper

import tensorplug as tp
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import as_host, dtype_of, to_numpy_dtype

if TYPE_CHECKING:
    from tensorplug_onnx.values import Host

_SATURATING: Final = {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"}


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
        A host array for a host array, except where ``dtype`` has less than 16 bits and is no
        dtype of NumPy's.

    """
    given = dtype_of(x)
    if given == dtype:
        return x
    if given == "string":
        return _parsed(as_host(x), dtype)
    if dtype == "string":
        return _printed(as_host(x))
    if dtype == "float8_e8m0fnu":
        return _powers(tp.astype(x, "float32"), saturate=bool(saturate), round_mode=round_mode)
    if isinstance(x, np.ndarray) and {given, dtype} <= _ON_HOST:
        with np.errstate(invalid="ignore", over="ignore"):
            return x.astype(to_numpy_dtype(dtype))
    return tp.astype(x, dtype, saturate=bool(saturate) and dtype in _SATURATING)


_ON_HOST: Final = {
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
}  # fmt: skip


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
    if x.dtype.kind in "biu":
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


def _powers(x: tp.Tensor, *, saturate: bool, round_mode: str) -> tp.Tensor:
    """Return float32 numbers as powers of two.

    The code of a power is its exponent plus 127, as in float32 itself, of whose subnormal numbers
    the larger half lies between codes 0 and 1.
    """
    bits = tp.bitwise_and(tp.bitcast(x, "int32"), 0x7FFFFFFF)
    half = 0x400000
    code = tp.bitwise_right_shift(bits, 23)
    normal = tp.bitwise_and(bits, 0x7FFFFF)
    fraction = tp.where(code == 0, 2 * tp.maximum(bits - half, 0), normal)
    least = {"up": 1, "nearest": half, "down": 2 * half}
    if round_mode not in least:
        raise ValueError(f"round_mode is {round_mode!r}, must be 'up', 'nearest' or 'down'")
    rounded = tp.where(fraction >= least[round_mode], code + 1, code)
    top = 254
    if saturate:
        chosen = tp.where(tp.isnan(x), top + 1, tp.minimum(rounded, top))
    else:
        chosen = tp.where(bits < half, top + 1, tp.minimum(rounded, top + 1))
    return tp.bitcast(tp.astype(chosen, "uint8"), "float8_e8m0fnu")


@rule("Cast", raw=True)
def cast_to(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    return cast(x, dtype_name(to), saturate=saturate, round_mode=round_mode)


@rule("CastLike", raw=True)
def cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up") -> Any:
    return cast(x, dtype_of(like), saturate=saturate, round_mode=round_mode)


@rule("BitCast")
def bit_cast(x: Any, *, to: int) -> Any:
    dtype = getattr(tp, dtype_name(to))
    if dtype.bits != x.dtype.bits or "string" in (dtype.name, x.dtype.name):
        raise ValueError(f"{dtype} has another width than {x.dtype}")
    bits = tp.astype(x, tp.uint8) if x.dtype == tp.bool else x
    return tp.astype(bits, dtype) if dtype == tp.bool else tp.bitcast(bits, dtype)
