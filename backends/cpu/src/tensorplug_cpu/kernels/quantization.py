"""Products of quantized matrices by float32 BLAS, which adds up small integers exactly.

A product of two factors has at most 16 bits, and float32 holds integers of 24 bits: sums of as
many terms as surely fit are exact in any order. NumPy's own products of int32 matrices take a
hundred times as long. Kernels of one element each are left to groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import KernelRefusedError, KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.floating_point import without_warnings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import DType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()

_EXACT: Final = 1 << dt.float32.significand  # integers up to this are exact in float32


@kernels.prepare(specs.QUANTIZED_MAT_MUL)
def quantized_mat_mul(
    a: TensorType,
    b: TensorType,
    a_scale: TensorType | None,
    b_scale: TensorType | None,
    a_zero_point: TensorType | None,
    b_zero_point: TensorType | None,
    *,
    out: TensorType,
) -> Call:
    """Multiply float32 copies of the integers, part by part of the inner axis."""
    if a.dtype in dt.FLOATING or b.dtype in dt.FLOATING:
        raise KernelRefusedError("floats are quantized by a kernel of their own")
    reach = _reach(a.dtype, a_zero_point) * _reach(b.dtype, b_zero_point)
    centre_a, centre_b = _centring(a, a_zero_point), _centring(b, b_zero_point)
    types = [(a_scale, a.shape, -1), (b_scale, b.shape, -2)]
    factors = [None if scale is None else _Factors(scale, *rest) for scale, *rest in types]
    counts = [factor.count for factor in factors if factor is not None]
    size = a.shape[-1] // max(counts, default=1) if 0 not in counts else 0
    work = np.dtype(np.int32)
    if counts:
        scales = [scale.dtype for scale, *_ in types if scale is not None]
        work = dt.promote([*scales, out.dtype]).compute.numpy
    narrow, most = out.dtype.numpy, _EXACT // reach

    def run(a: Array, b: Array, *rest: Any) -> Array:
        left, right = centre_a(a, rest[2]), centre_b(b, rest[3])
        if not size:  # a sum of nothing
            return np.zeros(out.shape, narrow)
        scales = [
            (factor, factor.arranged(given))
            for factor, given in zip(factors, rest, strict=False)
            if factor is not None
        ]
        total: Any = None
        for block, start in enumerate(range(0, left.shape[-1], size)):
            part = slice(start, start + size)
            sums = _product(left[..., part], right[..., part, :], most).astype(work, copy=False)
            for factor, arranged in scales:
                sums *= factor.of(arranged, block)
            total = sums if total is None else np.add(total, sums, out=total)
        return np.asarray(total.astype(narrow, copy=False))

    return without_warnings(run)


def _reach(dtype: DType, zero_point: TensorType | None) -> int:
    """Return the largest magnitude of an integer less its zero point."""
    return int(max(-dtype.min, dtype.max) if zero_point is None else dtype.max - dtype.min)


def _centring(x: TensorType, zero_point: TensorType | None) -> Callable[[Array, Any], Array]:
    """Return a function that makes float32 of a factor less its zero points."""
    if zero_point is None:
        return lambda x, _offset: x.astype(np.float32)
    spread = _spreading(zero_point.shape, x.shape)

    def centre(x: Array, offset: Array) -> Array:
        wide = x.astype(np.float32)
        return np.subtract(wide, spread(offset).astype(np.float32), out=wide)

    return centre


def _spreading(sizes: tuple[int, ...], shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """Return a function that repeats numbers of ``sizes`` until they broadcast to ``shape``."""
    padded = (1,) * (len(shape) - len(sizes)) + sizes
    repeats = [
        (axis, n // size)
        for axis, (size, n) in enumerate(zip(padded, shape, strict=True))
        if size not in (1, n)
    ]

    def spread(numbers: Array) -> Array:
        numbers = numbers.reshape(padded)
        for axis, times in repeats:
            numbers = numbers.repeat(times, axis)
        return numbers

    return spread


class _Factors:
    """The scales of one matrix, which belong to blocks of its axis ``inner``."""

    def __init__(self, scale: TensorType, shape: tuple[int, ...], inner: int) -> None:
        padded = (1,) * (len(shape) - scale.rank) + scale.shape
        self.count = padded[inner]
        outer = list(shape)
        outer[inner] = self.count
        self.arranged = _spreading(scale.shape, tuple(outer))
        self._inner = inner

    def of(self, arranged: Array, block: int) -> Array:
        """Return the scales of one block, which broadcast to the product."""
        place = block if self.count > 1 else 0
        one = slice(place, place + 1)
        return arranged[..., one] if self._inner == -1 else arranged[..., one, :]


def _product(left: Array, right: Array, most: int) -> Array:
    """Return the exact product of integers in float32, as int32 if more than ``most`` terms."""
    terms = left.shape[-1]
    if terms <= most:
        return np.asarray(np.matmul(left, right))
    total: Any = None
    for start in range(0, terms, most):
        part = slice(start, start + most)
        sums = np.matmul(left[..., part], right[..., part, :]).astype(np.int32)
        total = sums if total is None else np.add(total, sums, out=total)
    return np.asarray(total)
