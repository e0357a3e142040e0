"""Products of quantized matrices: the spec and the public function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_constant, as_tensor, chained, dispatch
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops.elementwise.bitcasting import bitcast
from tensorplug.ops.movement import reshape
from tensorplug.ops.quantization import FACTORS, _check_blocks, as_zero_point, check_offset

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, DTypeLike


__all__ = ["quantized_matmul"]


# Products --------------------------------------------------------------------------------


def _check_factor(
    name: str, factor: TensorType, scale: TensorType | None, zero_point: TensorType | None
) -> None:
    if factor.rank < 2:
        raise ShapeError(f"{name} must have at least rank 2, got {factor}")
    if factor.dtype in dt.FLOATING and scale is None and (name == "b" or zero_point is not None):
        raise ArgumentError(f"{name} is {factor}: to be quantized, it needs {name}_scale")
    if zero_point is not None and factor.dtype not in (*dt.FLOATING, zero_point.dtype):
        raise DTypeError(f"{name}_zero_point must be {factor.dtype}, got {zero_point}")
    for suffix, operand in (("scale", scale), ("zero_point", zero_point)):
        _check_blocks(f"{name}_{suffix}", operand, name, factor.shape)


def unpacked_type(b: TensorType, b_packed: DType | None) -> TensorType:
    """Return the type of the numbers that ``b`` holds."""
    if b_packed is None:
        return b
    if b_packed not in FACTORS or b_packed.bits >= dt.uint8.bits:
        raise DTypeError(f"b_packed must be a dtype of less than a byte, got {b_packed}")
    if b.dtype is not dt.uint8:
        raise DTypeError(f"b must be uint8 to hold packed {b_packed}, got {b}")
    if not b.rank:
        return TensorType(b_packed, ())
    return TensorType(b_packed, (*b.shape[:-1], b.shape[-1] * (dt.uint8.bits // b_packed.bits)))


def inner_blocks(
    a_scale: Shape | None, b_scale: Shape | None, *, transpose_b: bool = False
) -> int:
    """Return the number of blocks along the inner axis that have scales of their own.

    Raises:
        ShapeError: the two scales divide the axis into different numbers of blocks.

    """
    of_a = a_scale[-1] if a_scale else 1
    axis = -1 if transpose_b else -2
    of_b = b_scale[axis] if b_scale is not None and len(b_scale) >= -axis else 1
    if of_a != of_b and 1 not in (of_a, of_b):
        raise ShapeError(
            f"the scales divide the inner axis into {of_a} blocks of a, but {of_b} blocks of b"
        )
    return max(of_a, of_b) if of_a and of_b else 0


def _infer_product(
    a: TensorType,
    b: TensorType,
    a_scale: TensorType | None,
    b_scale: TensorType | None,
    a_zero_point: TensorType | None,
    b_zero_point: TensorType | None,
    b_offset: TensorType | None,
    *,
    dtype: DType,
    transpose_b: bool,
    b_packed: DType | None,
) -> TensorType:
    b = unpacked_type(b, b_packed)
    _check_factor("a", a, a_scale, a_zero_point)
    _check_factor("b", b, b_scale, b_zero_point)
    check_offset("b_offset", b_offset, "b_scale", b_scale)
    if b_offset is not None and b.dtype in dt.FLOATING:
        raise ArgumentError(f"b is {b}: numbers that are quantized here take no b_offset")
    inner, columns = (b.shape[-1], b.shape[-2]) if transpose_b else b.shape[-2:]
    if a.shape[-1] != inner:
        raise ShapeError(f"the inner sizes {a.shape[-1]} and {inner} differ")
    of_a, of_b = (None if scale is None else scale.shape for scale in (a_scale, b_scale))
    inner_blocks(of_a, of_b, transpose_b=transpose_b)
    exact = a_scale is None and b_scale is None and {a.dtype, b.dtype} <= dt.WHOLE
    if dtype not in ({dt.int32} if exact else dt.FLOATING):
        allowed = "int32, since there are no scales" if exact else "floating"
        raise DTypeError(f"dtype must be {allowed}, got {dtype}")
    batch = shapes.broadcast(a.shape[:-2], b.shape[:-2])
    return TensorType(dtype, (*batch, a.shape[-2], columns))


_FLOATS: Final = ("a_scale", "b_scale", "b_offset")


def _product_dtype(known: InputTypes) -> DType:
    floats = [known[name].dtype for name in _FLOATS if known[name] is not None]
    if known["a"].dtype in dt.FLOATING and known["a_scale"] is None:
        floats.append(known["a"].dtype)
    if floats:
        return dt.promote(floats)
    return dt.int32 if {known["a"].dtype, known["b"].dtype} <= dt.WHOLE else dt.float32


QUANTIZED_MAT_MUL = KernelSpec(
    "QuantizedMatMul",
    ("a", "b", "a_scale?", "b_scale?", "a_zero_point?", "b_zero_point?", "b_offset?"),
    _infer_product,
    attributes={
        "dtype": attributes.optional(attributes.dtype(), _product_dtype),
        "transpose_b": attributes.flag(default=False),
        "b_packed": attributes.optional(attributes.dtype(stored=True)),
    },
    accepts={
        "a": FACTORS | dt.FLOATING,
        "b": FACTORS | dt.FLOATING,
        "a_scale": dt.FLOATING,
        "b_scale": dt.FLOATING,
        "a_zero_point": FACTORS,
        "b_zero_point": FACTORS,
        "b_offset": dt.FLOATING,
    },
    promote=_FLOATS,
)


@chained
def quantized_matmul(
    a: ArrayLike,
    b: ArrayLike,
    /,
    a_scale: ArrayLike | None = None,
    b_scale: ArrayLike | None = None,
    *,
    a_zero_point: ArrayLike | None = None,
    b_zero_point: ArrayLike | None = None,
    b_offset: ArrayLike | None = None,
    transpose_b: bool = False,
    b_packed: DTypeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the product of quantized matrices, ``(a - a_zero_point) @ (b - b_zero_point)``.

    Products of integers are summed exactly in int32, products of float8 and float4 in float32.
    The sums are then multiplied by the scales. The sums of several blocks are added up in float32
    (in float64 if a scale is float64). With ``b_offset``, the sum of a's numbers in a block, times
    the block's offset, is added.

    If ``a`` holds floats and has no scale, only the weights are quantized: the result is
    ``a @ dequantize(b, b_scale, b_zero_point, offset=b_offset)``, computed in float32 (in float64
    if ``a`` or the scale is float64), and no dequantized copy of ``b`` is made where the backend
    has a kernel for it.

    Args:
        a: [..., m, k] of int8, uint8, or a dtype for storage other than float8_e8m0fnu. Floats
            of 16 or more bits are quantized first, with ``a_scale`` and ``a_zero_point``; without
            a scale, they are multiplied as they are.
        b: [..., k, n], of the same dtypes; floats need ``b_scale``. The leading axes broadcast.
        a_scale: one number; one for each row, [m, 1]; or for each block of a, as for
            ``quantize``. None for 1.
        b_scale: likewise: [1, n] or [n] for columns, [k / 32, n] for blocks of 32. With
            ``transpose_b``, its axes are those of b, too: [n, 1] and [n, k / 32].
        a_zero_point: numbers of the dtype of a (for floats, of the dtype to quantize to, by
            default int8); None for 0.
        b_zero_point: likewise.
        b_offset: floats of the shape of ``b_scale``, which are added to the scaled numbers of b,
            such as the minima of GGUF's Q4_1; None for 0.
        transpose_b: whether ``b`` is [..., n, k], as most files store weights.
        b_packed: int4, uint4, int2, uint2 or float4_e2m1fn if ``b`` is uint8 whose bytes hold 2 or
            4 numbers of that dtype along the last axis, the first one in the lowest bits: what
            ``bitcast`` makes of them. Then [..., k, n / 2], for instance, stands for [..., k, n].
        dtype: of the result; by default that of the scales, promoted with that of ``a`` if only
            the weights are quantized.

    Returns:
        [..., m, n]: for integers without scales int32, in which sums that do not fit wrap; else
        floats.

    Scales and offsets are differentiable, and so are floats in a and b: where they are quantized,
    gradients pass straight through their rounding, and are 0 where they were clipped.

    Raises:
        ShapeError: rank below 2, different inner sizes, a size of a scale or zero point that
            does not divide that of its matrix, or a b_offset without the shape of b_scale.
        DTypeError: an argument has another dtype.
        ArgumentError: floats in b without a scale or with an offset, or in a with a zero point
            alone.

    Source: ONNX's MatMulInteger and QLinearMatMul.

    Examples:
        >>> a = tp.asarray([[100, -50]], dtype="int8")
        >>> tp.quantized_matmul(a, a.T)
        Tensor([[12500]], dtype=int32, device='cpu')
        >>> tp.quantized_matmul(a, a.T, 0.5, 0.25)
        Tensor([[1562.5]], dtype=float32, device='cpu')
        >>> x = tp.asarray([[1.0, 0.5]])
        >>> w = tp.asarray([[0x12], [0xF0]], dtype="uint8")  # int4: [[2, 1], [0, -1]]
        >>> tp.quantized_matmul(x, w, None, [[10.0], [1.0]], transpose_b=True, b_packed="int4")
        Tensor([[25. , -0.5]], dtype=float32, device='cpu')

    """
    result_dtype = None if dtype is None else dt.of(dtype, "quantized_matmul")
    packed = None if b_packed is None else dt.of(b_packed, "quantized_matmul")
    factors, zero_points = [], []
    for name, factor, zero_point in (("a", a, a_zero_point), ("b", b, b_zero_point)):
        tensor = as_tensor(factor, what=f"QuantizedMatMul: input {name!r}")
        of = tensor.dtype if tensor.dtype in FACTORS else dt.int8
        of = packed if name == "b" and packed is not None else of
        what = f"QuantizedMatMul: input '{name}_zero_point'"
        factors.append(tensor)
        zero_points.append(as_zero_point(zero_point, of, what))
    *scales, offset = (
        as_constant(QUANTIZED_MAT_MUL, place, number, factors[min(place - 2, 1)])
        for place, number in ((2, a_scale), (3, b_scale), (6, b_offset))
    )
    return dispatch(
        QUANTIZED_MAT_MUL,
        *factors,
        *scales,
        *zero_points,
        offset,
        dtype=result_dtype,
        transpose_b=transpose_b,
        b_packed=packed,
    )


def unpacked(b: Tensor, dtype: DType) -> Tensor:
    """Return the numbers that bytes hold along the last axis."""
    return reshape(bitcast(b, dtype), unpacked_type(b.type, dtype).shape)
