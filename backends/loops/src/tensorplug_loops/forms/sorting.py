"""The largest elements in order: blocks are ranked, then merged in pairs.

An element's place is the number of those that come before it. In a block it is counted; in two
blocks that are sorted it is found by binary search. So each pass writes every element once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tensorplug.plugin import Expression, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops, both, clamped, either, is_nan, quotient, whole
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

_BLOCK: Final = 64  # elements that are ranked by comparing each with each


class _Rows(NamedTuple):
    """Rows of elements, and the indices that they had in their row; None at first."""

    values: Operand
    indices: Operand | None


def _before(a: Expression, b: Expression) -> Expression:
    """Return whether ``a`` is larger; a NaN is larger than any number."""
    if a.dtype is dt.bool_:
        a, b = expressions.cast(a, dt.uint8), expressions.cast(b, dt.uint8)
    nan = both(is_nan(a), _not(is_nan(b)))
    return either(b < a, nan)


@forms.form(specs.TOP_K)
def top_k(x: Operand, *, k: int, out: tuple[TensorType, TensorType]) -> list[Form]:
    """Sort in descending order; of equal elements, the first comes first."""
    length = x.shape[-1]
    block = min(_BLOCK, length)
    rows, stages = _Rows(x, None), list[Form]()
    while True:
        is_last = block >= length
        kept = (*x.shape[:-1], k if is_last else length)
        results = [TensorType(type_.dtype, kept) for type_ in out]
        stages.append(_merge(rows, block, results) if stages else _count(rows, block, results))
        if is_last:
            return stages
        number = 2 * len(stages) - 1  # x is number 0, and each stage makes two
        rows = _Rows(Operand(results[0], number), Operand(results[1], number + 1))
        block *= 2


def _count(rows: _Rows, block: int, results: list[TensorType]) -> Form:
    """Loop over [..., element, other of its block], and count those that come before."""
    length = rows.values.shape[-1]
    loops = Loops((*rows.values.shape, block))
    *row, at, step = loops.axes
    first = quotient(at, block) * block
    other = first + step if block < length else step
    value = loops.read(rows.values, *row, at)
    compared = loops.read(rows.values, *row, other, outside=0)
    tie = both(_not(_before(value, compared)), other < at)
    earlier = both(other < length, either(_before(compared, value), tie))
    count = loops.reduce("sum", whole(earlier), (len(row) + 1,))
    place = first + count if block < length else count
    return _written(loops, results, [*row, place], value, at)


def _merge(rows: _Rows, block: int, results: list[TensorType]) -> Form:
    """Loop over [..., element], and search in the other half of its block."""
    loops = Loops(rows.values.shape)
    *row, at = loops.axes
    length, half = rows.values.shape[-1], block // 2
    first = quotient(at, block) * block
    is_left = at - first < half
    own = expressions.where(is_left, first, first + half)
    begin = expressions.apply("minimum", expressions.where(is_left, first + half, first), length)
    end = expressions.apply("minimum", begin + half, length)
    value = loops.read(rows.values, *row, at)
    assert rows.indices is not None
    index = loops.read(rows.indices, *row, at)
    low, high = begin, end
    for _ in range(half.bit_length()):
        middle = quotient(low + high, 2)
        here = loops.read(rows.values, *row, clamped(middle, length))
        # Of equal elements, those of the left half come first.
        comes = either(_before(here, value), both(_not(is_left), _not(_before(value, here))))
        beyond = both(comes, low < high)
        low = expressions.where(beyond, middle + 1, low)
        high = expressions.where(beyond, high, middle)
    place = first + (at - own) + (low - begin)
    return _written(loops, results, [*row, place], value, index)


def _not(condition: Expression) -> Expression:
    return expressions.apply("logical_not", condition)


def _written(
    loops: Loops,
    results: list[TensorType],
    place: list[Expression],
    value: Expression,
    index: Expression,
) -> Form:
    """Write elements and their indices at their places; what lies beyond is not written."""
    for type_, written in zip(results, (value, index), strict=True):
        loops.write_at(type_, place, expressions.cast(written, type_.dtype), "last", 0)
    return loops.form()
