"""References for quantization: quotients in the widest float, products in exact integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide, wrap
from tensorplug_conformance.floats import finfo, kind_of
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug.plugin import DType
    from tensorplug_conformance.case import Array, Reference


def blocks(numbers: Array, shape: tuple[int, ...]) -> Array:
    """Return the number that belongs to each element of ``shape``, block by block."""
    result = np.reshape(numbers, (1,) * (len(shape) - numbers.ndim) + numbers.shape)
    for axis, n in enumerate(shape):
        size = result.shape[axis]
        result = np.repeat(result, n // size if size else 0, axis=axis)
    return result


def _limits(dtype: Any, zero_point: Array | None) -> tuple[int, int]:
    named = dtype or (None if zero_point is None else zero_point.dtype) or dt.int8
    about = dt.of(named)
    return int(about.min), int(about.max)


def _nearest(
    x: Array, scale: Array, zero_point: Array | None, dtype: Any
) -> tuple[Array, Array, Array]:
    """Return quantized numbers, whether a rounded quotient may give a neighbour, and offsets.

    The device rounds the quotient to float32 or float64 first, which decides what is a half.
    """
    low, high = _limits(dtype, zero_point)
    offsets = np.zeros(x.shape, np.int64)
    if zero_point is not None:
        offsets = blocks(zero_point, x.shape).astype(np.int64)
    work = np.dtype(np.float64) if x.dtype == np.longdouble else dt.of(x.dtype).compute.numpy
    quotient = wide(x) / wide(blocks(scale, x.shape))
    inexact = quotient.astype(work) != quotient
    slack = np.where(inexact, np.abs(quotient) * np.longdouble(2.5 * finfo(work).eps), 0)
    below, middle, above = (
        np.clip(np.rint(quotient + by) + offsets, low, high) for by in (-slack, 0, slack)
    )
    lost = np.isnan(quotient)
    result = np.where(lost, 0, middle).astype(np.int64)
    return result, np.where(lost, 0, above - below), offsets


def quantize(x: Array, scale: Array, zero_point: Array | None, *, dtype: Any = None) -> Bounded:
    """The nearest integers, the even ones at halves, limited to the dtype's range."""
    nearest, slack, _ = _nearest(x, scale, zero_point, dtype)
    return Bounded(nearest, slack)


def fake_quantize(
    x: Array, scale: Array, zero_point: Array | None, *, dtype: Any = None
) -> Bounded:
    """The floats that quantized numbers stand for."""
    nearest, slack, offsets = _nearest(x, scale, zero_point, dtype)
    factor = wide(blocks(scale, x.shape))
    # A neighbour may be rounded the other way, to half an ulp in the output's dtype.
    return Bounded((nearest - offsets) * factor, slack * np.abs(factor) * 1.125)


def dequantize(
    x: Array,
    scale: Array,
    zero_point: Array | None,
    offset: Array | None = None,
    *,
    dtype: Any = None,
) -> Reference:
    """Integers less their zero points, times their scales; int32 may be rounded before.

    Where an offset is added, the product may be rounded before.
    """
    exact = wide(x)
    if zero_point is not None:
        exact = exact - wide(blocks(zero_point, x.shape))
    value = np.asarray(exact).astype(np.longdouble) * wide(blocks(scale, x.shape))
    if x.dtype.itemsize < 4 and dtype is None and offset is None:
        return value
    rounded = np.abs(value) * _eps(scale)
    if offset is not None:
        value = value + wide(blocks(offset, x.shape))
    return Bounded(value, np.where(np.isfinite(rounded), rounded, 0))


def matmul(
    a: Array,
    b: Array,
    a_scale: Array | None,
    b_scale: Array | None,
    a_zero_point: Array | None,
    b_zero_point: Array | None,
    b_offset: Array | None = None,
    *,
    dtype: Any = None,
    transpose_b: bool = False,
    b_packed: Any = None,
) -> Reference:
    """Exact sums of products, scaled block by block; errors of scaling and adding up count."""
    if b_packed is not None:
        b = _unpacked(b, dt.of(b_packed))
    weights_only = a_scale is None and kind_of(a.dtype) == "f"
    left = wide(a) if weights_only else _centred(a, a_scale, a_zero_point)
    right, of_b = _centred(b, b_scale, b_zero_point), _scales(b_scale, b.shape)
    if transpose_b:
        right, of_b = right.swapaxes(-1, -2), of_b if of_b.ndim < 2 else of_b.swapaxes(-1, -2)
    floats = [x for x in (a_scale, b_scale, a if weights_only else None) if x is not None]
    if not floats:
        return wrap(left.astype(object) @ right.astype(object), np.dtype(np.int32))
    first = left.astype(np.longdouble) * _scales(a_scale, a.shape)
    second = right.astype(np.longdouble) * of_b
    magnitude = np.abs(second)
    if b_offset is not None:
        added = wide(blocks(b_offset, b.shape))
        added = added.swapaxes(-1, -2) if transpose_b else added
        second, magnitude = second + added, magnitude + np.abs(added)
    value = first @ second
    inner = -1 if transpose_b else -2
    count = max(
        1 if a_scale is None or not a_scale.ndim else a_scale.shape[-1],
        1 if b_scale is None or b_scale.ndim < -inner else b_scale.shape[inner],
    )
    if weights_only or b_offset is not None:  # each product of floats is rounded
        count, first, second = a.shape[-1], np.abs(first), magnitude
    size = np.zeros(value.shape, np.longdouble)
    for part in np.split(np.arange(a.shape[-1]), count) if count else ():
        size = size + np.abs(first[..., part] @ second[..., part, :])
    narrow = max(float(finfo(each.dtype if dtype is None else dtype).eps) for each in floats)
    eps = min(_eps(each) for each in floats)
    rounded = narrow / 2 if narrow > eps else 0
    return Bounded(value, size * (levels(count) + 4) * eps + np.abs(value) * rounded)


def _unpacked(x: Array, dtype: DType) -> Array:
    """Return numbers of few bits, of which each byte holds some, the first in the lowest bits."""
    places = np.arange(0, 8, dtype.bits, dtype=np.uint8)
    codes = (x[..., None] >> places).astype(np.int64) % (1 << dtype.bits)
    if dtype.min < 0:
        codes = (codes ^ (1 << dtype.bits - 1)) - (1 << dtype.bits - 1)
    return codes.reshape(*x.shape[:-1], -1).astype(dtype.numpy)


def _eps(scale: Array) -> np.longdouble:
    """Return the eps of the dtype in which a device multiplies by scales."""
    if scale.dtype == np.longdouble:
        return np.longdouble(0)
    return np.longdouble(dt.of(scale.dtype).compute.eps)


def _centred(x: Array, scale: Array | None, zero_point: Array | None) -> Array:
    """Return a factor less its zero points, in int64; floats are quantized first."""
    if kind_of(x.dtype) == "f":
        assert scale is not None  # the spec requires it
        of = np.int8 if zero_point is None else zero_point.dtype
        x = _nearest(x, scale, zero_point, of)[0]
    exact = x.astype(np.int64)
    return exact if zero_point is None else exact - blocks(zero_point, x.shape).astype(np.int64)


def _scales(scale: Array | None, shape: tuple[int, ...]) -> Any:
    return np.longdouble(1) if scale is None else wide(blocks(scale, shape))
