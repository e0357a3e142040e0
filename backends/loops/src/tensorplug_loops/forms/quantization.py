"""Products of quantized matrices: integers added up in 32 bits, or floats times few bits."""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import Final

from tensorplug.plugin import (
    DType,
    Expression,
    KernelRefusedError,
    TensorType,
    expressions,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops, broadcast
from tensorplug_loops.forms.matrix_products import product
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

_FACTORS: Final = frozenset({dt.int8, dt.uint8})
_PACKED: Final = frozenset({None, dt.int4, dt.uint4, dt.int2, dt.uint2})
_FEW: Final = 8  # rows; of more, it is worth it to unpack and scale the other matrix before


@forms.form(specs.QUANTIZED_MAT_MUL)
def quantized_mat_mul(
    a: Operand,
    b: Operand,
    a_scale: Operand | None,
    b_scale: Operand | None,
    a_zero_point: Operand | None,
    b_zero_point: Operand | None,
    b_offset: Operand | None = None,
    *,
    transpose_b: bool,
    b_packed: DType | None,
    out: TensorType,
) -> Form:
    """Multiply matrices of integers; few rows of integers or floats, by any numbers of few bits.

    The decomposition does the rest: it unpacks and scales.
    """
    rest = (a_scale, b_scale, a_zero_point, b_zero_point, b_offset)
    if {a.dtype, b.dtype} <= _FACTORS and rest == (None,) * len(rest) and b_packed is None:
        return product(a, b, out, lambda x: expressions.cast(x, dt.int32), transpose_b=transpose_b)
    rows = prod(a.shape[:-1]) if b.rank == 2 else a.shape[-2]
    if rows > _FEW or b.dtype not in _FACTORS or b_packed not in _PACKED:
        raise KernelRefusedError("of more than a few rows, it multiplies int8 or uint8 alone")
    if b_packed is not None and not transpose_b:
        raise KernelRefusedError("columns that share bytes are unpacked before")
    whole = a.dtype in _FACTORS
    if whole and b_offset is not None:
        raise KernelRefusedError("the decomposition adds offsets")
    if not whole and (a.dtype not in dt.FLOATING or a_scale is not None):
        raise KernelRefusedError("a is quantized before")
    few = _Few(a, b, rest, out, transpose_b=transpose_b, packed=b_packed)
    return few.integers() if whole else few.floats()


class _Few:
    """A product of few rows: loops over [*batch, row, column, block, inner element or byte]."""

    def __init__(
        self,
        a: Operand,
        b: Operand,
        rest: tuple[Operand | None, ...],
        out: TensorType,
        *,
        transpose_b: bool,
        packed: DType | None,
    ) -> None:
        self._a, self._b, self._out = a, b, out
        self._rest, self._turned, self._packed = rest, transpose_b, packed
        self._each = dt.uint8.bits // packed.bits if packed else 1
        inner = -1 if transpose_b else -2
        given = [*((x, -1) for x in rest[0:4:2]), *((x, inner) for x in (rest[1], *rest[3:]))]
        counts = {x.shape[at] for x, at in given if x is not None and x.rank >= -at} - {1}
        self._count = max(counts, default=1)
        if len(counts) > 1 or not a.shape[-1] or a.shape[-1] % (self._count * self._each):
            raise KernelRefusedError("scales and zero points have different blocks, or none")
        self._size = a.shape[-1] // self._count // self._each
        self._loops = Loops((*out.shape, self._count, self._size))
        *self._batch, self._row, self._column, self._block, self._inner = self._loops.axes

    def integers(self) -> Form:
        """Return the form of integers, whose exact sums are scaled afterwards."""
        a_scale, b_scale, *_ = self._rest
        if self._count > 1:
            raise KernelRefusedError("the sums of several blocks are scaled each")
        left, right = self._lefts(dt.int32), self._rights(dt.int32)
        scales = [
            self._of(x, right=bool(right_))
            for right_, x in enumerate((a_scale, b_scale))
            if x is not None
        ]
        total = self._sum(left, right)
        work = dt.promote([*(each.dtype for each in scales), self._out.dtype]).compute
        if scales:
            total = reduce(
                lambda x, by: x * expressions.cast(by, work),
                scales,
                expressions.cast(total, work),
            )
        return self._loops.write(self._out, expressions.cast(total, self._out.dtype))

    def floats(self) -> Form:
        """Return the form of floats times integers, of which those in a block are scaled first."""
        b_scale, b_offset = self._rest[1], self._rest[4]
        of = [] if b_scale is None else [b_scale.dtype]
        work = dt.promote([self._a.dtype, self._out.dtype, *of]).compute
        left, right = self._lefts(work), self._rights(work)
        by, added = (
            None if x is None else expressions.cast(self._of(x, right=True), work)
            for x in (b_scale, b_offset)
        )
        if by is not None and added is not None:  # a spec's offset has the blocks of a scale
            right = [expressions.apply("fma", each, by, added) for each in right]
        elif by is not None and self._count > 1:
            right = [each * by for each in right]
        total = self._sum(left, right)
        if by is not None and added is None and self._count == 1:
            total = total * by
        return self._loops.write(self._out, expressions.cast(total, self._out.dtype))

    def _sum(self, left: list[Expression], right: list[Expression]) -> Expression:
        products = [x * y for x, y in zip(left, right, strict=True)]
        rank = self._out.rank
        return self._loops.reduce("sum", reduce(lambda x, y: x + y, products), [rank, rank + 1])

    def _lefts(self, work: DType) -> list[Expression]:
        """Return the elements of a row that belong to a byte."""
        lead = broadcast(self._a.shape[:-2], self._batch, self._out.shape[:-2])
        first = (self._block * self._size + self._inner) * self._each
        values = [
            self._loops.read(self._a, *lead, self._row, first + at) for at in range(self._each)
        ]
        return self._centred(values, self._rest[2], work, right=False)

    def _rights(self, work: DType) -> list[Expression]:
        """Return the numbers of a byte, or the one there is."""
        lead = broadcast(self._b.shape[:-2], self._batch, self._out.shape[:-2])
        place = self._block * self._size + self._inner
        order = (self._column, place) if self._turned else (place, self._column)
        values = [self._loops.read(self._b, *lead, *order)]
        if self._packed is not None:
            values = _unpacked(values[0], self._packed)
        return self._centred(values, self._rest[3], work, right=True)

    def _centred(
        self, values: list[Expression], zero: Operand | None, work: DType, *, right: bool
    ) -> list[Expression]:
        if zero is not None:
            by = self._of(_as_bytes(zero), right=right)
            by = _unpacked(by, zero.dtype)[0] if zero.dtype in dt.STORAGE else by
            by = expressions.cast(by, dt.int32)
            values = [expressions.cast(each, dt.int32) - by for each in values]
        return [expressions.cast(each, work) for each in values]

    def _of(self, x: Operand, *, right: bool) -> Expression:
        """Return the scale or zero point that belongs to an element."""
        rank = (self._b if right else self._a).rank
        shape = (1,) * (rank - x.rank) + x.shape
        lead = broadcast(shape[:-2], self._batch, self._out.shape[:-2])
        turned = right and not self._turned
        outer, inner = shape[-2:][::-1] if turned else shape[-2:]
        if outer not in (1, self._out.shape[-1 if right else -2]):
            raise KernelRefusedError("blocks of several rows or columns")
        if any(n not in (1, all_) for n, all_ in zip(shape[:-2], self._lead(right), strict=True)):
            raise KernelRefusedError("blocks of several matrices")
        own = self._column if right else self._row
        at = [own if outer > 1 else 0, self._block if inner > 1 else 0]
        return self._loops.read(x.reshaped(shape), *lead, *(at[::-1] if turned else at))

    def _lead(self, right: bool) -> tuple[int, ...]:  # noqa: FBT001  # which of two
        """Return the leading axes of a factor."""
        return (self._b if right else self._a).shape[:-2]


def _as_bytes(x: Operand) -> Operand:
    """Return numbers of few bits, which have a byte each, as these bytes."""
    return Operand(TensorType(dt.uint8, x.shape), x.number) if x.dtype in dt.STORAGE else x


def _unpacked(held: Expression, dtype: DType) -> list[Expression]:
    """Return the numbers of few bits that are in a byte."""
    bits = dtype.bits
    *places, last = range(0, dt.uint8.bits, bits)
    if dtype.min == 0:
        byte = expressions.cast(held, dt.int32)
        return [*((byte >> at) & ((1 << bits) - 1) for at in places), byte >> last]
    byte = expressions.cast(expressions.bitcast(held, dt.int8), dt.int32)
    top = dt.int32.bits - bits
    return [*((byte << top - at) >> top for at in places), byte >> last]
