"""Quantization from rounding, bounds and casts; products of integers in int32."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops import quantization as ops
from tensorplug.ops import quantized_products
from tensorplug.ops.arrangement import moveaxis
from tensorplug.ops.elementwise.bitcasting import bitcast
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import broadcast_to, expand_dims, matrix_transpose, reshape
from tensorplug.ops.ranges import arange
from tensorplug.ops.reduction import sum as sum_
from tensorplug.ops.scale_blocks import centred, padded, spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())
decompositions.of(ops.QUANTIZE)(
    lambda x, scale, zero_point, *, dtype: astype(ops.limited(x, scale, zero_point, dtype), dtype)
)


@decompositions.of(ops.DEQUANTIZE)
def dequantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    offset: Tensor | None,
    *,
    dtype: DType,
) -> Tensor:
    work = dt.promote((scale.dtype, dtype)).compute
    numbers = astype(centred(x, zero_point, _exactly(x)), work)
    result = numbers * spread(astype(scale, work), x.shape)
    if offset is not None:
        result = result + spread(astype(offset, work), x.shape)
    return astype(result, dtype)


@decompositions.of(ops.FAKE_QUANTIZE)
def fake_quantize(x: Tensor, scale: Tensor, zero_point: Tensor | None, *, dtype: DType) -> Tensor:
    return ops.dequantize(ops.numbers(x, scale, zero_point, dtype), scale, zero_point)


@decompositions.of(quantized_products.QUANTIZED_MAT_MUL, alone=True)
def quantized_mat_mul(
    a: Tensor,
    b: Tensor,
    a_scale: Tensor | None,
    b_scale: Tensor | None,
    a_zero_point: Tensor | None,
    b_zero_point: Tensor | None,
    b_offset: Tensor | None,
    *,
    dtype: DType,
    transpose_b: bool,
    b_packed: DType | None,
) -> Tensor:
    alone = a_scale is None and a.dtype in dt.FLOATING
    if b_offset is not None and not alone:
        work = dt.promote([dtype, b_offset.dtype]).compute
        rest = (a_scale, b_scale, a_zero_point, b_zero_point, None)
        attributes = {"dtype": work, "transpose_b": transpose_b, "b_packed": b_packed}
        scaled = dispatch(quantized_products.QUANTIZED_MAT_MUL, a, b, *rest, **attributes)
        shape = quantized_products.unpacked_type(b.type, b_packed).shape
        offsets = broadcast_to(spread(astype(b_offset, work), shape), shape)
        left = ops.meant(a, a_scale, a_zero_point, work)
        return astype(scaled + matmul(left, offsets, transpose_b=transpose_b), dtype)
    if alone:  # the weights
        work = dt.promote([a.dtype, dtype, *([] if b_scale is None else [b_scale.dtype])]).compute
        numbers = b_scale, b_zero_point, b_offset
        meant = None if b_packed is None else _shifted(b, b_packed, numbers, work)
        if meant is None:
            b = b if b_packed is None else quantized_products.unpacked(b, b_packed)
            meant = ops.meant(b, b_scale, b_zero_point, work, b_offset)
        return astype(matmul(astype(a, work), meant, transpose_b=transpose_b), dtype)
    if b_packed is not None:
        b = quantized_products.unpacked(b, b_packed)
    if transpose_b:
        rank = b.ndim
        b = matrix_transpose(b)
        b_scale, b_zero_point = (
            None if x is None else matrix_transpose(reshape(x, padded(x.shape, rank)))
            for x in (b_scale, b_zero_point)
        )
    factors = _quantized(a, a_scale, a_zero_point), _quantized(b, b_scale, b_zero_point)
    if transpose_b or b_packed is not None or factors[0] is not a or factors[1] is not b:
        # A call of its own, since a backend may have a kernel for integers alone.
        rest = (a_scale, b_scale, a_zero_point, b_zero_point, None)
        return dispatch(quantized_products.QUANTIZED_MAT_MUL, *factors, *rest, dtype=dtype)
    return _of_numbers(a, b, a_scale, b_scale, a_zero_point, b_zero_point, dtype)


def _shifted(
    b: Tensor, packed: DType, given: tuple[Tensor | None, ...], work: DType
) -> Tensor | None:
    """Return what packed integers stand for, by shifts; None for others, or blocks of rows.

    All of it is one group, whose last axes are blocks, bytes and the numbers of a byte:
    ``bitcast`` would write a byte for each number before.
    """
    shape = quantized_products.unpacked_type(b.type, packed).shape
    scale, zero_point, offset = given
    shapes = [padded(x.shape, b.ndim) for x in given if x is not None]
    counts = {sizes[-1] for sizes in shapes} - {1}
    blocks = max(counts, default=1)
    whole = len(counts) < 2 and blocks and not b.shape[-1] % blocks
    pairs = [pair for sizes in shapes for pair in zip(sizes[:-1], shape[:-1], strict=True)]
    if packed not in dt.WHOLE or not whole or any(size not in (1, n) for size, n in pairs):
        return None
    size = b.shape[-1] // blocks
    word = dt.int8 if size % dt.int32.itemsize else dt.int32
    held = reshape(b, (*shape[:-1], blocks, size // word.itemsize, word.itemsize))
    held = bitcast(held, word) if word is dt.int8 else expand_dims(bitcast(held, word), -1)
    width, bits = word.bits, packed.bits
    if packed.min == 0:
        places = arange(0, width, bits, dtype=word)
        numbers = (held >> places) & int(packed.max)
    else:  # the highest bit is the sign
        places = arange(width - bits, -1, -bits, dtype=word)
        numbers = (held << places) >> (width - bits)

    def of_blocks(x: Tensor, dtype: DType) -> Tensor:
        return reshape(astype(x, dtype), (*padded(x.shape, b.ndim), 1, 1))

    if zero_point is not None:
        numbers = astype(numbers, dt.int32) - of_blocks(zero_point, dt.int32)
    numbers = astype(numbers, work)
    if scale is not None:
        numbers = numbers * of_blocks(scale, work)
    if offset is not None:
        numbers = numbers + of_blocks(offset, work)
    return reshape(numbers, shape)


def _of_numbers(
    a: Tensor,
    b: Tensor,
    a_scale: Tensor | None,
    b_scale: Tensor | None,
    a_zero_point: Tensor | None,
    b_zero_point: Tensor | None,
    dtype: DType,
) -> Tensor:
    """Return the product of quantized numbers, [..., m, k] and [..., k, n]."""
    scales = [scale for scale in (a_scale, b_scale) if scale is not None]
    multiply: Callable[..., Tensor] = matmul
    exact = _exactly(a, b)
    if exact is dt.float32 or a_zero_point is not None or b_zero_point is not None:
        left, right = centred(a, a_zero_point, exact), centred(b, b_zero_point, exact)
    elif scales or not {a.dtype, b.dtype} <= dt.INTEGER:  # likewise
        left, right = (astype(x, dt.unpacked(x.dtype)) for x in (a, b))
        multiply = quantized_products.quantized_matmul
    else:
        left, right = astype(a, exact), astype(b, exact)
    if not scales:
        return astype(multiply(left, right), dtype)
    count = quantized_products.inner_blocks(
        *(None if s is None else s.shape for s in (a_scale, b_scale))
    )
    if count > 1:  # [..., m, k] becomes [..., blocks, m, k / blocks], and b likewise
        left = moveaxis(reshape(left, (*left.shape[:-1], count, -1)), -2, -3)
        right = reshape(right, (*right.shape[:-2], count, -1, right.shape[-1]))
    work = dt.promote([*(scale.dtype for scale in scales), dtype]).compute
    out = astype(multiply(left, right), work)
    if a_scale is not None and count:
        of_a = astype(_rows(a_scale, a.shape), work)
        out = out * (moveaxis(expand_dims(of_a, -1), -2, -3) if count > 1 else of_a)
    if b_scale is not None and count:
        of_b = astype(_columns(b_scale, b.shape), work)
        out = out * (expand_dims(of_b, -2) if count > 1 else of_b)
    return astype(sum_(out, axis=-3) if count > 1 else out, dtype)


def _quantized(x: Tensor, scale: Tensor | None, zero_point: Tensor | None) -> Tensor:
    """Return a factor as integers. One without a scale has them already, says its spec."""
    if scale is None or x.dtype in ops.FACTORS:
        return x
    return ops.quantize(x, scale, zero_point)


def _exactly(*factors: Tensor) -> DType:
    """Return the dtype in which quantized numbers are added."""
    return dt.int32 if {x.dtype for x in factors} <= dt.WHOLE else dt.float32


def _rows(scale: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the scales of a, [..., m or 1, blocks or 1]."""
    sizes = padded(scale.shape, len(shape))
    return spread(reshape(scale, sizes), (*shape[:-1], sizes[-1]))


def _columns(scale: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the scales of b, [..., blocks or 1, n or 1]."""
    sizes = padded(scale.shape, len(shape))
    return spread(reshape(scale, sizes), (*shape[:-2], sizes[-2], shape[-1]))
