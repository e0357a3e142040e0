"""Gradients of quantization: straight through the rounding, and 0 where numbers were clipped.

With q = x / scale and its rounding error r = round(q) - q held fixed, a quantized number stands
for (q + r) * scale = x + r * scale. So its slope is 1 in x and r in the scale. Where it was
clipped it stands for (limit - zero_point) * scale, whose slopes are 0 and limit - zero_point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.ops import quantization as ops
from tensorplug.ops import quantized_products
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import logical_and
from tensorplug.ops.elementwise.rounding import round as round_
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.scale_blocks import centred, spread, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
_ROUNDED = "rounds to integers; fake_quantize passes gradients"
rules.stop(ops.QUANTIZE, because=_ROUNDED)
rules.stop(ops.DEQUANTIZE, "x", "zero_point", because="integers")
rules.stop(ops.FAKE_QUANTIZE, "zero_point", because="integers")
rules.stop(
    quantized_products.QUANTIZED_MAT_MUL, "a_zero_point", "b_zero_point", because="integers"
)


def _of_integers(dy: Tensor, x: Tensor, scale: Tensor, zero_point: Tensor | None) -> Tensor:
    """Return the gradient of the scale of integers, in which the result is linear."""
    wide = dt.promote((dy.dtype, scale.dtype)).compute
    return astype(total(astype(dy, wide) * centred(x, zero_point, wide), scale.shape), scale.dtype)


def _straight_through(
    dy: Tensor, x: Tensor, scale: Tensor, zero_point: Tensor | None, dtype: DType
) -> tuple[Tensor, Tensor]:
    """Return the gradients of x and scale, both floats, in their dtypes."""
    wide = dt.promote((x.dtype, scale.dtype)).compute
    exact = astype(x, wide) / spread(astype(scale, wide), x.shape)
    numbers = ops.numbers(x, scale, zero_point, dtype)
    shifted = round_(exact) if dtype in dt.WHOLE else exact
    if zero_point is not None:
        shifted = shifted + astype(spread(zero_point, x.shape), wide)
    kept = logical_and(shifted >= dtype.min, shifted <= dtype.max)
    slope = centred(numbers, zero_point, wide) - where(kept, exact, 0.0)
    to_scale = total(astype(dy, wide) * slope, scale.shape)
    return astype(where(kept, dy, 0.0), x.dtype), astype(to_scale, scale.dtype)


def _of_offset(dy: Tensor, offset: Tensor) -> Tensor:
    """Return the gradient of what is added to each number of a block."""
    wide = dt.promote((dy.dtype, offset.dtype)).compute
    return astype(total(astype(dy, wide), offset.shape), offset.dtype)


rules.formulas(ops.DEQUANTIZE, scale=_of_integers, offset=_of_offset)


@rules.vjp(ops.FAKE_QUANTIZE, "x", "scale")
def fake_quantize(
    wanted: frozenset[str],
    dy: Tensor,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    dtype: DType,
) -> Mapping[str, Tensor]:
    to_x, to_scale = _straight_through(dy, x, scale, zero_point, dtype)
    gradients = {"x": to_x, "scale": to_scale}
    return {name: gradients[name] for name in wanted}


@rules.vjp(quantized_products.QUANTIZED_MAT_MUL, "a", "b", "a_scale", "b_scale", "b_offset")
def quantized_mat_mul(
    wanted: frozenset[str],
    dy: Tensor,
    a: Tensor,
    b: Tensor,
    a_scale: Tensor | None,
    b_scale: Tensor | None,
    a_zero_point: Tensor | None,
    b_zero_point: Tensor | None,
    b_offset: Tensor | None,
    *,
    transpose_b: bool,
    b_packed: DType | None,
) -> Mapping[str, Tensor]:
    scales = [scale.dtype for scale in (a_scale, b_scale) if scale is not None]
    wide = dt.promote((dy.dtype, *scales)).compute
    if b_packed is not None:
        b = quantized_products.unpacked(b, b_packed)
    cotangent = astype(dy, wide)
    gradients: dict[str, Tensor] = {}
    if wanted & {"a", "a_scale"}:
        other = ops.meant(b, b_scale, b_zero_point, wide, b_offset)
        to_a = matmul(cotangent, other, transpose_b=not transpose_b)
        gradients |= _of_factor("a", to_a, a, a_scale, a_zero_point)
    if wanted & {"b", "b_scale", "b_offset"}:
        other = ops.meant(a, a_scale, a_zero_point, wide)
        left, right = (cotangent, other) if transpose_b else (other, cotangent)
        to_b = matmul(left, right, transpose_a=True)
        gradients |= _of_factor("b", to_b, b, b_scale, b_zero_point)
        if b_offset is not None:
            gradients["b_offset"] = _of_offset(total(to_b, b.shape), b_offset)
    return {name: gradients[name] for name in wanted}


def _of_factor(
    name: str, to_x: Tensor, x: Tensor, scale: Tensor | None, zero_point: Tensor | None
) -> dict[str, Tensor]:
    """Return the gradients of a factor, if it holds floats, and of its scale."""
    dx = total(to_x, x.shape)
    if scale is None:
        return {name: astype(dx, x.dtype)} if x.dtype in dt.FLOATING else {}
    if x.dtype in ops.FACTORS:
        return {f"{name}_scale": _of_integers(dx, x, scale, zero_point)}
    of = dt.int8 if zero_point is None else zero_point.dtype
    to_floats, to_scale = _straight_through(dx, x, scale, zero_point, of)
    return {name: to_floats, f"{name}_scale": to_scale}
