"""Operators that compute with quantized numbers, and those that lead to them and back."""

from __future__ import annotations

from typing import Any

import tensorplug as tp
from tensorplug_onnx.operators.casting import cast, dtype_name
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import as_tensor, dtype_of, has_dtype


def _spread(scale: Any, x: Any, axis: int, block_size: int) -> Any:
    """Return scales or zero points in a shape whose sizes divide those of x.

    ONNX has one number, one for each place on the axis, or one for each block of the axis, whose
    last block may be shorter than the others.
    """
    if scale is None or scale.ndim == 0:
        return scale
    if scale.ndim == 1 and not block_size:
        if scale.shape[0] == 1:
            return tp.reshape(scale, ())
        _check_axis(axis, x)
        _check(scale.shape[0], x.shape[axis], axis)
        return tp.reshape(scale, (-1, *[1] * (x.ndim - 1 - axis % x.ndim)))
    if not block_size:
        raise ValueError(f"the scale is of rank {scale.ndim}, and there is no 'block_size'")
    if scale.ndim != x.ndim:
        raise ValueError(f"the scale of blocks is of rank {scale.ndim}, x of {x.ndim}")
    _check_axis(axis, x)
    size = x.shape[axis]
    _check(scale.shape[axis], -(-size // block_size), axis)
    if size % block_size == 0:
        return scale
    places = tp.arange(size) // block_size
    return tp.take(scale, places, axis=axis)


def _check_axis(axis: int, x: Any) -> None:
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis {axis} is out of range for rank {x.ndim}")


def _check(found: int, wanted: int, axis: int) -> None:
    if found != wanted:
        raise ValueError(f"{found} scales along axis {axis}, where {wanted} are needed")


@rule("QuantizeLinear")
def quantize(
    x: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Any:
    dtype = dtype_name(output_dtype) if output_dtype else "uint8"
    if zero_point is not None:
        dtype = dtype_of(zero_point)
        zero_point = _on_device(zero_point)
    divided_in = getattr(tp, dtype_name(precision)) if precision else _computed_in(x, scale)
    scale = tp.astype(_spread(scale, x, axis, block_size), divided_in)
    zero_point = _spread(zero_point, x, axis, block_size)
    x = tp.astype(x, divided_in)
    held = _held(dtype)
    if dtype.startswith("float") and (not saturate or held != dtype):
        return cast(x / scale, dtype, saturate=saturate)
    found = tp.quantize(x, scale, zero_point, dtype=getattr(tp, held))
    if held == dtype:
        return found
    limits: tp.DType = getattr(tp, dtype)
    return cast(tp.clip(found, limits.min, limits.max), dtype)


def _held(dtype: str) -> str:
    """Return a dtype of the device for the numbers of one that it may lack."""
    if has_dtype(dtype):
        return dtype
    return dtype.rstrip("24") + "8" if "int" in dtype else "float32"


def _on_device(x: Any) -> Any:
    """Return a tensor of the same numbers; None for None."""
    return None if x is None else as_tensor(cast(x, _held(dtype_of(x))))


def _computed_in(x: Any, scale: Any) -> Any:
    """Return the dtype of the quotient: that of x, unless only the scale's has fractions."""
    if tp.isdtype(x.dtype, "real floating"):
        return x.dtype
    return scale.dtype


@rule("DequantizeLinear")
def dequantize(
    x: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Any:
    given = dtype_of(x)
    if given == "int32":
        zero_point = None  # must be 0, says ONNX
    dtype = dtype_name(output_dtype) if output_dtype else dtype_of(scale)
    x, scale, zero_point = map(_on_device, (x, scale, zero_point))
    scale = _spread(scale, x, axis, block_size)
    zero_point = _spread(zero_point, x, axis, block_size)
    if given.startswith("float") and not has_dtype(given):
        return cast((x if zero_point is None else x - zero_point) * scale, dtype)
    return cast(tp.dequantize(x, scale, zero_point, dtype=getattr(tp, _held(dtype))), dtype)


@rule("MatMulInteger")
def matmul_integer(a: Any, b: Any, a_zero_point: Any = None, b_zero_point: Any = None) -> Any:
    return product(a, b, a_zero_point=_of_rows(a_zero_point), b_zero_point=b_zero_point)


@rule("QLinearMatMul")
def quantized_matmul(
    a: Any,
    a_scale: Any,
    a_zero_point: Any,
    b: Any,
    b_scale: Any,
    b_zero_point: Any,
    scale: Any,
    zero_point: Any,
) -> Any:
    real = product(
        a,
        b,
        a_scale=tp.astype(_of_rows(a_scale), tp.float32),
        b_scale=tp.astype(b_scale, tp.float32),
        a_zero_point=_of_rows(a_zero_point),
        b_zero_point=b_zero_point,
    )
    return tp.quantize(real, tp.astype(_of_rows(scale), tp.float32), _of_rows(zero_point))


def _of_rows(numbers: Any) -> Any:
    """Return numbers for the rows of a matrix as a column; one number as it is."""
    if numbers is None or numbers.ndim != 1:
        return numbers
    return tp.reshape(numbers, () if numbers.shape[0] == 1 else (-1, 1))


def product(a: Any, b: Any, **quantization: Any) -> Any:
    """Return the product of matrices or vectors."""
    matrices = a[None, :] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
    found = tp.quantized_matmul(*matrices, **quantization)
    dropped = (a.ndim == 1) * (-2,) + (b.ndim == 1) * (-1,)
    return tp.squeeze(found, axis=dropped) if dropped else found
