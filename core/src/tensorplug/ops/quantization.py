"""Quantization: real numbers in few bits, mostly as integers, with scales and zero points.

A quantized number q stands for ``(q - zero_point) * scale``. The shape of a scale says how far it
reaches. Counted from the last axis, each of its sizes divides that of x, and each of its numbers
belongs to a block of equal size: [] and [1, 1] are one scale for all, [1, n] one for each column
of [m, n], [m, n / 32] one for 32 numbers of a row. Zero points follow the same rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_constant, as_tensor, chained, dispatch
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.ops.elementwise.arithmetic import add, divide
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.clipping import clip_by_value
from tensorplug.ops.elementwise.rounding import round
from tensorplug.ops.movement import reshape
from tensorplug.ops.scale_blocks import centred, spread

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, DTypeLike

__all__ = ["dequantize", "fake_quantize", "quantize"]


_NARROW: Final = dt.STORAGE - {dt.float8_e8m0fnu}  # which has neither signs nor a zero
QUANTIZED: Final = frozenset({dt.int8, dt.uint8, dt.int16, dt.uint16}) | _NARROW
FACTORS: Final = frozenset({dt.int8, dt.uint8}) | _NARROW  # of products


def _check_blocks(name: str, operand: TensorType | None, of: str, shape: Shape) -> None:
    if operand is None:
        return
    sizes = zip(reversed(operand.shape), reversed(shape), strict=False)
    if operand.rank > len(shape) or any(s != n and (not s or n % s) for s, n in sizes):
        raise ShapeError(
            f"each size of {name}, from the last axis on, must divide that of {of}: "
            f"{list(operand.shape)} does not fit {list(shape)}"
        )


def _check_quantized(
    dtype: DType, allowed: frozenset[DType], zero_point: TensorType | None
) -> None:
    if dtype not in allowed:
        names = ", ".join(sorted(map(str, allowed)))
        raise DTypeError(f"dtype must be one of {names}, got {dtype}")
    if zero_point is not None and zero_point.dtype is not dtype:
        raise DTypeError(f"zero_point must be {dtype}, got {zero_point}")


def _infer_quantize(
    x: TensorType, scale: TensorType, zero_point: TensorType | None, *, dtype: DType
) -> TensorType:
    _check_quantized(dtype, QUANTIZED, zero_point)
    for name, operand in (("scale", scale), ("zero_point", zero_point)):
        _check_blocks(name, operand, "x", x.shape)
    return TensorType(dtype, x.shape)


def _infer_fake_quantize(
    x: TensorType, scale: TensorType, zero_point: TensorType | None, *, dtype: DType
) -> TensorType:
    return TensorType(x.dtype, _infer_quantize(x, scale, zero_point, dtype=dtype).shape)


def check_offset(name: str, offset: TensorType | None, of: str, scale: TensorType | None) -> None:
    """Check that an offset belongs to the blocks of a scale."""
    if offset is not None and (scale is None or offset.shape != scale.shape):
        given = "None" if scale is None else f"{list(scale.shape)}"
        raise ShapeError(
            f"{name} must have the shape of {of}: {list(offset.shape)} is not {given}"
        )


def _infer_dequantize(
    x: TensorType,
    scale: TensorType,
    zero_point: TensorType | None,
    offset: TensorType | None,
    *,
    dtype: DType,
) -> TensorType:
    check_offset("offset", offset, "scale", scale)
    if dtype not in dt.FLOATING:
        raise DTypeError(f"dtype must be floating, got {dtype}")
    if zero_point is not None:
        _check_quantized(x.dtype, QUANTIZED, zero_point)
    for name, operand in (("scale", scale), ("zero_point", zero_point)):
        _check_blocks(name, operand, "x", x.shape)
    return TensorType(dtype, x.shape)


def _quantized_dtype(known: InputTypes) -> DType:
    given: TensorType | None = known["zero_point"]
    return dt.int8 if given is None else given.dtype


def _scale_dtype(known: InputTypes) -> DType:
    given = (known["scale"], known["offset"])
    return dt.promote([each.dtype for each in given if each is not None])


_TO_INTEGERS: Final[dict[str, Any]] = {
    "attributes": {"dtype": attributes.optional(attributes.dtype(stored=True), _quantized_dtype)},
    "accepts": {"x": dt.REAL, "scale": dt.REAL, "zero_point": QUANTIZED},
    "promote": ("x", "scale"),
    "inexact": True,
}
_INPUTS: Final = ("x", "scale", "zero_point?")
QUANTIZE = KernelSpec("Quantize", _INPUTS, _infer_quantize, **_TO_INTEGERS)
FAKE_QUANTIZE = KernelSpec("FakeQuantize", _INPUTS, _infer_fake_quantize, **_TO_INTEGERS)
DEQUANTIZE = KernelSpec(
    "Dequantize",
    (*_INPUTS, "offset?"),
    _infer_dequantize,
    attributes={"dtype": attributes.optional(attributes.dtype(), _scale_dtype)},
    accepts={
        "x": QUANTIZED | {dt.int32},
        "scale": dt.FLOATING,
        "zero_point": QUANTIZED,
        "offset": dt.FLOATING,
    },
    promote=("scale", "offset"),
)

# Functions -------------------------------------------------------------------------------


def _along(axis: int | None, given: Any, rank: int) -> Any:
    """Return a vector of scales or zero points so that it lies along ``axis``."""
    if axis is None or given is None or given.ndim != 1:
        return given
    return reshape(given, (-1, *(1,) * (rank - 1 - axis)))


def _operands(
    spec: KernelSpec, x: Any, scale: Any, zero_point: Any, dtype: DType | None, axis: int | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the operands as tensors, with vectors along ``axis``."""
    caller = spec.name
    tensor = as_tensor(x, what=f"{caller}: input 'x'")
    constant = as_constant(spec, 1, dt.as_number(scale), tensor)
    factor = as_tensor(constant, what=f"{caller}: input 'scale'")
    offset = as_zero_point(zero_point, dtype or dt.int8, f"{caller}: input 'zero_point'")
    rank = tensor.ndim
    at = None if axis is None else shapes.normalize_axis(axis, rank, f"{caller}: axis")
    return tensor, _along(at, factor, rank), _along(at, offset, rank)


def as_zero_point(value: Any, dtype: DType, what: str) -> Tensor | None:
    """Return a zero point as a tensor. Python's integers become ``dtype``; arrays keep theirs."""
    if value is None or hasattr(value, "dtype"):
        return None if value is None else as_tensor(value, what=what)
    return as_tensor(value, dtype, what=what)


def quantize(
    x: ArrayLike,
    scale: ArrayLike,
    /,
    zero_point: ArrayLike | None = None,
    axis: int | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return ``round(x / scale) + zero_point`` in few bits, limited to the range of ``dtype``.

    Halves are rounded to the even neighbour. Infinities become the limits. NaN becomes 0 in
    integers. Floats of 8 and 4 bits are not rounded to integers, but to their own digits.

    Args:
        x: real numbers.
        scale: positive numbers: one, or one for each block of x. Counted from the last axis,
            each size divides that of x: for an x of shape [6, 8], a scale of shape [6, 1]
            belongs to rows, and [6, 2] to blocks of 4.
        zero_point: the integers that stand for 0, of the result's dtype, in a shape that follows
            the same rule; None for 0.
        axis: the axis of x along which a scale and a zero point of rank 1 lie; None for the last.
        dtype: int8, uint8, int16, uint16, int4, uint4, int2, uint2, float4_e2m1fn, or a float8
            other than float8_e8m0fnu; by default that of ``zero_point``, else int8.

    The result is not differentiable; ``fake_quantize`` is.

    Raises:
        ShapeError: a size of scale or zero_point does not divide that of x.
        DTypeError: ``dtype`` is none of these, or is not that of ``zero_point``.
        OutOfRangeError: ``axis`` is out of range.

    Source: ONNX's QuantizeLinear.

    Examples:
        >>> tp.quantize([0.25, 0.75, -99.0], 0.5)  # halves go to the even neighbour
        Tensor([   0,    2, -128], dtype=int8, device='cpu')
        >>> tp.quantize([[1.0, 2.0], [1.0, 2.0]], [1.0, 0.1], axis=0)  # a scale for each row
        Tensor([[ 1,  2],
                [10, 20]], dtype=int8, device='cpu')
        >>> tp.quantize([0.0, 2.55], 0.01, zero_point=128, dtype="uint8")
        Tensor([128, 255], dtype=uint8, device='cpu')

    """
    result_dtype = None if dtype is None else dt.of(dtype, "quantize")
    operands = _operands(QUANTIZE, x, scale, zero_point, result_dtype, axis)
    return dispatch(QUANTIZE, *operands, dtype=result_dtype)


@chained
def dequantize(
    x: ArrayLike,
    scale: ArrayLike,
    /,
    zero_point: ArrayLike | None = None,
    axis: int | None = None,
    *,
    offset: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return ``(x - zero_point) * scale + offset``: the numbers that quantized ones stand for.

    Args:
        x: of a dtype that ``quantize`` gives, or int32 without zero points.
        scale: floats: one, or one for each block of x, as for ``quantize``.
        zero_point: numbers of the dtype of x, likewise; None for 0.
        axis: the axis of x along which a scale, a zero point and an offset of rank 1 lie; None for
            the last.
        offset: floats of the shape of ``scale``, such as the minima of GGUF's Q4_1; None for 0.
        dtype: of the result; by default that of ``scale``, promoted with that of ``offset``. It is
            computed in float32 at least.

    Scale and offset are differentiable.

    Raises:
        ShapeError: a size of scale or zero_point does not divide that of x, or the shape of
            offset is not that of scale.
        DTypeError: an argument has another dtype.
        OutOfRangeError: ``axis`` is out of range.

    Source: ONNX's DequantizeLinear.

    Examples:
        >>> q = tp.asarray([0, 2], dtype="int8")
        >>> tp.dequantize(q, 0.5)
        Tensor([0., 1.], dtype=float32, device='cpu')
        >>> tp.dequantize(q, 0.5, zero_point=2)
        Tensor([-1.,  0.], dtype=float32, device='cpu')
        >>> tp.dequantize(q, 0.5, offset=10.0)
        Tensor([10., 11.], dtype=float32, device='cpu')

    """
    tensor = as_tensor(x, what="Dequantize: input 'x'")
    operands = _operands(DEQUANTIZE, tensor, scale, zero_point, tensor.dtype, axis)
    added = as_constant(DEQUANTIZE, 3, dt.as_number(offset), tensor)
    if added is not None:
        added = as_tensor(added, what="Dequantize: input 'offset'")
        at = None if axis is None else shapes.normalize_axis(axis, tensor.ndim, "Dequantize: axis")
        added = _along(at, added, tensor.ndim)
    to = None if dtype is None else dt.of(dtype)
    return dispatch(DEQUANTIZE, *operands, added, dtype=to)


@chained
def fake_quantize(
    x: ArrayLike,
    scale: ArrayLike,
    /,
    zero_point: ArrayLike | None = None,
    axis: int | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return ``dequantize(quantize(x, ...), ...)``, for quantization-aware training.

    The result consists of the floats that the quantized x stands for. The gradient goes straight
    through the rounding: the gradient of x is the incoming one, or 0 where x was clipped. The
    derivative with respect to the scale, with the slope of rounding taken as 1, is
    ``round(x / scale) - x / scale``, or the limit minus the zero point where x was clipped.

    Args:
        x: real numbers; integers become floats.
        scale: positive numbers: one, or one for each block of x, as for ``quantize``.
        zero_point: the integers that stand for 0, likewise; None for 0.
        axis: the axis of x along which a scale and a zero point of rank 1 lie; None for the last.
        dtype: of the quantized numbers; by default that of ``zero_point``, else int8.

    Raises:
        ShapeError: a size of scale or zero_point does not divide that of x.
        DTypeError: an argument has another dtype.
        OutOfRangeError: ``axis`` is out of range.

    Sources: Jacob et al. 2018 (arXiv 1712.05877); for the gradient of the scale, Esser et al.
    2020 (arXiv 1902.08153).

    Examples:
        >>> tp.fake_quantize([0.3, 99.0], 0.5)
        Tensor([ 0.5, 63.5], dtype=float32, device='cpu')
        >>> tp.grad(lambda x: tp.sum(tp.fake_quantize(x, 0.5)))(tp.asarray([0.3, 99.0]))
        Tensor([1., 0.], dtype=float32, device='cpu')

    """
    result_dtype = None if dtype is None else dt.of(dtype, "fake_quantize")
    operands = _operands(FAKE_QUANTIZE, x, scale, zero_point, result_dtype, axis)
    return dispatch(FAKE_QUANTIZE, *operands, dtype=result_dtype)


def limited(x: Tensor, scale: Tensor, zero_point: Tensor | None, dtype: DType) -> Tensor:
    """Return the numbers of ``dtype`` that quantized ones are, as floats."""
    quotient = divide(x, spread(scale, x.shape))
    if dtype in dt.WHOLE:
        quotient = round(quotient)
    if zero_point is not None:
        quotient = add(quotient, astype(spread(zero_point, x.shape), x.dtype))
    return clip_by_value(quotient, dtype.min, dtype.max)


def numbers(x: Tensor, scale: Tensor, zero_point: Tensor | None, dtype: DType) -> Tensor:
    """Return ``quantize(x, ...)``, in int32 where nothing else needs the few bits.

    A backend may lack dtypes of few bits. With a zero point it has one.
    """
    if zero_point is not None or dtype not in dt.WHOLE:
        return quantize(x, scale, zero_point, dtype=dtype)
    whole = astype(limited(x, scale, None, dtype), dt.int32)
    # Bounds of 16 bits may be infinite in x's dtype.
    return whole if dtype.bits <= dt.int8.bits else clip_by_value(whole, dtype.min, dtype.max)


def meant(
    x: Tensor,
    scale: Tensor | None,
    zero_point: Tensor | None,
    dtype: DType,
    offset: Tensor | None = None,
) -> Tensor:
    """Return the numbers that a factor of a product stands for, in ``dtype``."""
    if scale is None:
        return centred(x, zero_point, dtype)
    if x.dtype not in FACTORS:
        return astype(fake_quantize(x, astype(scale, dtype), zero_point), dtype)
    added = None if offset is None else astype(offset, dtype)
    return astype(dequantize(x, astype(scale, dtype), zero_point, offset=added), dtype)
