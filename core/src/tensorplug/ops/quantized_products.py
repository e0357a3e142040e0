"""Products of quantized matrices: the spec and the public function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_constant, as_tensor, chained, dispatch
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops.quantization import FACTORS, _check_blocks, as_zero_point

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
    if factor.dtype in dt.FLOATING and scale is None:
        raise ArgumentError(f"{name} is {factor}: to be quantized, it needs {name}_scale")
    if zero_point is not None and factor.dtype not in (*dt.FLOATING, zero_point.dtype):
        raise DTypeError(f"{name}_zero_point must be {factor.dtype}, got {zero_point}")
    for suffix, operand in (("scale", scale), ("zero_point", zero_point)):
        _check_blocks(f"{name}_{suffix}", operand, name, factor.shape)


def inner_blocks(a_scale: Shape | None, b_scale: Shape | None) -> int:
    """Return the number of blocks along the inner axis that have scales of their own.

    Raises:
        ShapeError: the two scales divide the axis into different numbers of blocks.

    """
    of_a = a_scale[-1] if a_scale else 1
    of_b = b_scale[-2] if b_scale is not None and len(b_scale) > 1 else 1
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
    *,
    dtype: DType,
) -> TensorType:
    _check_factor("a", a, a_scale, a_zero_point)
    _check_factor("b", b, b_scale, b_zero_point)
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"the inner sizes {a.shape[-1]} and {b.shape[-2]} differ")
    inner_blocks(*(None if scale is None else scale.shape for scale in (a_scale, b_scale)))
    exact = a_scale is None and b_scale is None and {a.dtype, b.dtype} <= dt.WHOLE
    if dtype not in ({dt.int32} if exact else dt.FLOATING):
        allowed = "int32, since there are no scales" if exact else "floating"
        raise DTypeError(f"dtype must be {allowed}, got {dtype}")
    batch = shapes.broadcast(a.shape[:-2], b.shape[:-2])
    return TensorType(dtype, (*batch, a.shape[-2], b.shape[-1]))


def _product_dtype(known: InputTypes) -> DType:
    scales = [known[name] for name in ("a_scale", "b_scale") if known[name] is not None]
    if scales:
        return dt.promote(scale.dtype for scale in scales)
    return dt.int32 if {known["a"].dtype, known["b"].dtype} <= dt.WHOLE else dt.float32


QUANTIZED_MAT_MUL = KernelSpec(
    "QuantizedMatMul",
    ("a", "b", "a_scale?", "b_scale?", "a_zero_point?", "b_zero_point?"),
    _infer_product,
    attributes={"dtype": attributes.optional(attributes.dtype(), _product_dtype)},
    accepts={
        "a": FACTORS | dt.FLOATING,
        "b": FACTORS | dt.FLOATING,
        "a_scale": dt.FLOATING,
        "b_scale": dt.FLOATING,
        "a_zero_point": FACTORS,
        "b_zero_point": FACTORS,
    },
    promote=("a_scale", "b_scale"),
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
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the product of quantized matrices, ``(a - a_zero_point) @ (b - b_zero_point)``.

    Products of integers are summed exactly in int32, products of float8 and float4 in float32.
    The sums are then multiplied by the scales. The sums of several blocks are added up in float32
    (in float64 if a scale is float64).

    Args:
        a: [..., m, k] of int8, uint8, or a dtype for storage other than float8_e8m0fnu. Floats
            of 16 or more bits are quantized first, with ``a_scale`` and ``a_zero_point``.
        b: [..., k, n], likewise. The leading axes broadcast.
        a_scale: one number; one for each row, [m, 1]; or for each block of a, as for
            ``quantize``. None for 1.
        b_scale: likewise: [1, n] or [n] for columns, [k / 32, n] for blocks of 32.
        a_zero_point: numbers of the dtype of a (for floats, of the dtype to quantize to, by
            default int8); None for 0.
        b_zero_point: likewise.
        dtype: of the result; by default that of the scales.

    Returns:
        [..., m, n]: for integers without scales int32, in which sums that do not fit wrap; else
        floats.

    The scales are differentiable, and so are floats in a and b: gradients pass straight through
    their rounding, and are 0 where they were clipped.

    Raises:
        ShapeError: rank below 2, different inner sizes, or a size of a scale or zero point that
            does not divide that of its matrix.
        DTypeError: an argument has another dtype.
        ArgumentError: floats without a scale.

    Source: ONNX's MatMulInteger and QLinearMatMul.

    Examples:
        >>> a = tp.asarray([[100, -50]], dtype="int8")
        >>> tp.quantized_matmul(a, a.T)
        Tensor([[12500]], dtype=int32, device='cpu')
        >>> tp.quantized_matmul(a, a.T, 0.5, 0.25)
        Tensor([[1562.5]], dtype=float32, device='cpu')

    """
    result_dtype = None if dtype is None else dt.of(dtype, "quantized_matmul")
    factors, zero_points = [], []
    for name, factor, zero_point in (("a", a, a_zero_point), ("b", b, b_zero_point)):
        tensor = as_tensor(factor, what=f"QuantizedMatMul: input {name!r}")
        of = tensor.dtype if tensor.dtype in FACTORS else dt.int8
        what = f"QuantizedMatMul: input '{name}_zero_point'"
        factors.append(tensor)
        zero_points.append(as_zero_point(zero_point, of, what))
    scales = [
        as_constant(QUANTIZED_MAT_MUL, 2 + place, scale, factors[place])
        for place, scale in enumerate((a_scale, b_scale))
    ]
    return dispatch(QUANTIZED_MAT_MUL, *factors, *scales, *zero_points, dtype=result_dtype)
