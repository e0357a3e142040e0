"""Products with weights of 2, 4 or 8 bits, packed and scaled by blocks, and their rows."""

from __future__ import annotations

from typing import Any, Final

import tensorplug as tp
from tensorplug_onnx.errors import UnsupportedError
from tensorplug_onnx.operators.microsoft.domain import microsoft_rule

_CODES: Final = {2: tp.uint2, 4: tp.uint4, 8: tp.uint8}


def _unpacked(x: Any, bits: int, count: int) -> Any:
    """Return the first ``count`` numbers in the bytes of each row."""
    if bits < 8:
        x = tp.reshape(tp.bitcast(x, _CODES[bits]), (*x.shape[:-1], -1))
    return x[..., :count]


def _check_bits(bits: int) -> None:
    if bits not in _CODES:
        raise UnsupportedError(f"numbers of {bits} bits: there are those of 2, 4 and 8")


@microsoft_rule("MatMulNBits")
def product_of_few_bits(
    a: Any,
    b: Any,
    scales: Any,
    zero_points: Any = None,
    g_idx: Any = None,
    bias: Any = None,
    *,
    K: int,  # noqa: N803
    N: int,  # noqa: N803
    accuracy_level: int = 0,  # noqa: ARG001  # what onnxruntime may lose; nothing is lost here
    bits: int = 4,
    block_size: int,
    weight_prepacked: int = 0,
) -> Any:
    """The weights stay packed, [N, K], with a scale and a zero point for each block of a row."""
    _check_bits(bits)
    if g_idx is not None or weight_prepacked:
        raise UnsupportedError("weights in groups (g_idx), or packed for a CUDA device")
    blocks = -(-K // block_size)
    scales = tp.reshape(scales, (N, blocks))
    packed = tp.reshape(b, (N, -1))
    middle = 1 << (bits - 1)
    offset = None
    if zero_points is None:
        zeros = tp.full((N, blocks), middle, dtype="uint8")
    elif tp.isdtype(zero_points.dtype, "real floating"):
        zeros, offset = None, -tp.reshape(zero_points, (N, blocks)) * scales
    else:
        zeros = _unpacked(tp.reshape(zero_points, (N, -1)), bits, blocks)
    rest = blocks * block_size - K
    if rest:  # a block is whole in the weights
        a = tp.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, rest)])
    y = tp.quantized_matmul(
        tp.reshape(a, (-1, a.shape[-1])),
        packed,
        None,
        scales,
        b_zero_point=zeros if zeros is None or bits == 8 else tp.astype(zeros, _CODES[bits]),
        b_offset=offset,
        transpose_b=True,
        b_packed=_CODES[bits] if bits < 8 else None,
    )
    y = tp.reshape(y, (*a.shape[:-1], N))
    return tp.astype(y if bias is None else y + bias, a.dtype)


@microsoft_rule("GatherBlockQuantized")
def gather_of_few_bits(
    x: Any,
    indices: Any,
    scales: Any,
    zero_points: Any = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Any:
    """Only what is taken is dequantized. Zero points in bytes are packed as the numbers are."""
    axis = gather_axis % x.ndim
    in_bytes = str(x.dtype) == "uint8"
    taken, factors = (tp.take(one, indices, axis=axis) for one in (x, scales))
    zeros = None if zero_points is None else tp.take(zero_points, indices, axis=axis)
    if in_bytes:
        _check_bits(bits)
        taken = _unpacked(taken, bits, taken.shape[-1] * (8 // bits))
        zeros = (
            tp.full((), 1 << (bits - 1), dtype="uint8")
            if zeros is None
            else _unpacked(zeros, bits, factors.shape[-1])
        )
    at = quantize_axis % x.ndim
    at += indices.ndim - 1 if at > axis else 0
    size = taken.shape[at]
    places = tp.arange(size) // (block_size or size)
    wide = tp.astype(taken, factors.dtype)
    if zeros is not None:
        zeros = tp.astype(zeros, factors.dtype)
        wide = wide - (tp.take(zeros, places, axis=at) if zeros.ndim else zeros)
    return wide * tp.take(factors, places, axis=at)
