"""Products of quantized matrices by those of float32, which add up small integers exactly.

A product of two factors has at most 16 bits, and float32 holds integers of 24 bits: sums of as
many terms as surely fit are exact in any order. NumPy's own products of int32 matrices take a
hundred times as long. The second matrix, which is the larger one in most networks, becomes float32
in parts that stay in a cache. Kernels of one element each are left to groups.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import KernelRefusedError, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.families import matrices
from tensorplug_cpu.jit.families.codes import product_by_codes
from tensorplug_cpu.jit.forms import formed
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.kernels.matrix_products import FEW

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Backend, DType
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_EXACT: Final = 1 << dt.float32.significand  # integers up to this are exact in float32
_PART: Final = 1 << 20  # elements of the second matrix that are converted at a time


_few = formed(specs.QUANTIZED_MAT_MUL)


@kernels.prepare(specs.QUANTIZED_MAT_MUL, because="faster")
def quantized_mat_mul(
    a: TensorType,
    b: TensorType,
    a_scale: TensorType | None,
    b_scale: TensorType | None,
    a_zero_point: TensorType | None,
    b_zero_point: TensorType | None,
    b_offset: TensorType | None,
    *,
    attributes: dict[str, Any],
    backend: Backend,
    out: TensorType,
) -> Call:
    """Multiply float32 copies of the integers, part by part; few rows, or floats, by loops."""
    transpose_b, b_packed = attributes["transpose_b"], attributes["b_packed"]
    if (prod(a.shape[:-1]) if b.rank == 2 else a.shape[-2]) <= FEW:
        operands = a, b, a_scale, b_scale, a_zero_point, b_zero_point, b_offset
        with suppress(KernelRefusedError):  # few elements, no LLVM, blocks of several rows
            return without_warnings(
                _few(*operands, attributes=attributes, backend=backend, out=out)
            )
    if a_scale is None and a.dtype in dt.FLOATING:
        weights = b_scale, b_zero_point, b_offset
        by_codes = product_by_codes(
            *(a, b, weights, out), transpose_b=transpose_b, b_packed=b_packed
        )
        return without_warnings(
            lambda a, b, _a_scale, scale, _a_zero_point, zero_point, offset: by_codes(
                a, b, scale, zero_point, offset
            )
        )
    if not {a.dtype, b.dtype} <= dt.WHOLE:
        raise KernelRefusedError("only products of integers are exact")
    if b_offset is not None:
        raise KernelRefusedError("the decomposition adds offsets")
    if transpose_b or b_packed is not None:
        raise KernelRefusedError("the decomposition unpacks and transposes")
    reach = _reach(a.dtype, a_zero_point) * _reach(b.dtype, b_zero_point)
    centre, multiply = _centring(a, a_zero_point), _product(a, b, b_zero_point, _EXACT // reach)
    factors = [
        None if scale is None else _Factors(scale, x.shape, inner)
        for scale, x, inner in ((a_scale, a, -1), (b_scale, b, -2))
    ]
    counts = [factor.count for factor in factors if factor is not None]
    size = a.shape[-1] // max(counts, default=1) if 0 not in counts else 0
    scales = [scale.dtype for scale in (a_scale, b_scale) if scale is not None]
    work = dt.promote([*scales, out.dtype]).compute.numpy
    narrow = out.dtype.numpy

    def run(a: Array, b: Array, *rest: Any) -> Array:
        if not size or not out.size:  # sums of nothing, or nothing
            return np.zeros(out.shape, narrow)
        left = np.empty(a.shape, np.float32)
        centre(left, a, rest[2])
        arranged = [
            (factor, factor.arranged(operand))
            for factor, operand in zip(factors, rest, strict=False)
            if factor is not None
        ]
        total: Any = None
        for block, start in enumerate(range(0, a.shape[-1], size)):
            sums = multiply(left, b, rest[3], start, start + size).astype(work, copy=False)
            for factor, operand in arranged:
                sums *= factor.of(operand, block)
            total = sums if total is None else np.add(total, sums, out=total)
        return np.asarray(total.astype(narrow, copy=False))

    return without_warnings(run)


def _reach(dtype: DType, zero_point: TensorType | None) -> int:
    """Return the largest magnitude of an integer less its zero point."""
    return int(max(-dtype.min, dtype.max) if zero_point is None else dtype.max - dtype.min)


def _centring(x: TensorType, zero_point: TensorType | None) -> Callable[[Array, Array, Any], None]:
    """Return a function that writes float32 of a factor less its zero points into an array."""
    if zero_point is None:
        return lambda result, x, _offset: np.copyto(result, x, casting="unsafe")
    spread = _spreading(zero_point.shape, x.shape)

    def centre(result: Array, x: Array, offset: Array) -> None:
        np.copyto(result, x, casting="unsafe")
        np.subtract(result, spread(offset).astype(np.float32), out=result)

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
        index = block if self.count > 1 else 0
        one = slice(index, index + 1)
        return arranged[..., one] if self._inner == -1 else arranged[..., one, :]


def _product(
    a: TensorType, b: TensorType, zero_point: TensorType | None, most: int
) -> Callable[[Array, Array, Any, int, int], Array]:
    """Return a function that multiplies float32 by integers along a part of the inner axis.

    The result is exact: float32 where at most ``most`` terms are added, else int32.
    """
    *batch, inner, columns = b.shape
    step = min(most, max(1, _PART // max(1, prod(batch) * columns)))
    spread = None if zero_point is None else _spreading(zero_point.shape, b.shape)

    @cache
    def multiplied(terms: int) -> Callable[[Array, Array], Array]:
        if b.rank > 2:
            return np.matmul
        native = matrices.product(
            (*a.shape[:-1], terms),
            (terms, columns),
            np.dtype(np.float32),
            transpose_a=False,
            transpose_b=False,
        )
        return native or np.matmul

    def multiply(left: Array, b: Array, offset: Any, start: int, stop: int) -> Array:
        few = stop - start <= most
        offsets = None if spread is None else spread(offset).astype(np.float32)
        room = np.empty((*batch, min(step, stop - start), columns), np.float32)
        total: Any = None
        for first in range(start, stop, step):
            part = slice(first, min(first + step, stop))
            right = room[..., : part.stop - first, :]
            np.copyto(right, b[..., part, :], casting="unsafe")
            if offsets is not None:
                varies = offsets.shape[-2] == inner
                np.subtract(right, offsets[..., part, :] if varies else offsets, out=right)
            sums = multiplied(part.stop - first)(left[..., part], right)
            sums = sums if few else sums.astype(np.int32)
            total = sums if total is None else np.add(total, sums, out=total)
        return np.asarray(total)

    return multiply
