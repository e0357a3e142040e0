"""The largest elements in order: blocks are ranked, then merged in pairs.

An element's place is the number of those that come before it. In a block it is counted; in two
blocks that are sorted it is found by binary search. So each pass writes an element at most once,
and leaves out those that are not among the largest k of their block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tensorplug.plugin import Expression, Shape, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import (
    Loops,
    both,
    clamped,
    either,
    is_nan,
    quotient,
    rest,
    whole,
)
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

_BLOCK: Final = 64  # elements that are ranked by comparing each with each
_FEW: Final = 16  # likewise, if no more are kept: merges cost little then


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks of ``block`` elements of rows of ``length``, of which the first ``size`` are kept.

    ``values``, ``indices``: [*lead, number of blocks, size].
    """

    values: Operand
    indices: Operand
    length: int
    block: int

    def count(self, number: Expression) -> Expression:
        """Return how many elements of a block there are, 0 of one behind the last."""
        size = self.values.shape[-1]
        return clamped(self.length - number * self.block, size + 1)


def _before(a: Expression, b: Expression) -> Expression:
    """Return whether ``a`` is larger; a NaN is larger than any number."""
    if a.dtype is dt.bool_:
        a, b = expressions.cast(a, dt.uint8), expressions.cast(b, dt.uint8)
    return either(b < a, both(is_nan(a), _not(is_nan(b))))


def _not(condition: Expression) -> Expression:
    return expressions.apply("logical_not", condition)


@forms.form(specs.TOP_K)
def top_k(x: Operand, *, k: int, out: tuple[TensorType, TensorType]) -> list[Form]:
    """Sort in descending order; of equal elements, the first comes first."""
    *lead, length = x.shape
    block, stages, blocks = min(_FEW if k <= _FEW else _BLOCK, length), list[Form](), None
    while True:
        is_last = block >= length
        number = -(-length // block)
        shape = (*lead, k) if is_last else (*lead, number, min(block, k))
        results = [TensorType(type_.dtype, shape) for type_ in out]
        stages.append(
            _count(x, block, results, is_last=is_last)
            if blocks is None
            else _merge(blocks, results, is_last=is_last)
        )
        if is_last:
            return stages
        first = 2 * len(stages) - 1  # x is number 0, and each stage makes two
        values, indices = (Operand(type_, first + at) for at, type_ in enumerate(results))
        blocks = _Blocks(values, indices, length, block)
        block *= 2


def _count(x: Operand, block: int, results: list[TensorType], *, is_last: bool) -> Form:
    """Loop over [*lead, block, element, other], and count those that come before."""
    *lead, length = x.shape
    shape: Shape = (*lead, -(-length // block), block, block)
    loops = Loops(shape)
    *row, number, element, other = loops.axes
    at, compared = number * block + element, number * block + other
    fill = None if length % block == 0 else 0
    value, against = (loops.read(x, *row, each, outside=fill) for each in (at, compared))
    tie = both(_not(_before(value, against)), other < element)
    earlier = both(compared < length, either(_before(against, value), tie))
    place = loops.reduce("sum", expressions.cast(earlier, dt.int32), (len(shape) - 1,))
    place = expressions.where(at < length, place, -1)
    return _written(loops, results, row, number, place, (value, at), is_last=is_last)


def _merge(blocks: _Blocks, results: list[TensorType], *, is_last: bool) -> Form:
    """Loop over [*lead, block, element], and search in the other block of its pair."""
    loops = Loops(blocks.values.shape)
    *row, number, element = loops.axes
    size = blocks.values.shape[-1]
    is_right = rest(number, 2)
    other = number + 1 - 2 * is_right
    value, index = (loops.read(each, *loops.axes) for each in (blocks.values, blocks.indices))
    low, high = whole(0), blocks.count(other)
    near = clamped(other, blocks.values.shape[-2])
    for _ in range(size.bit_length()):
        middle = quotient(low + high, 2)
        here = loops.read(blocks.values, *row, near, clamped(middle, size))
        # Of equal elements, those of the left block come first.
        comes = either(_before(here, value), both(is_right > 0, _not(_before(value, here))))
        beyond = both(comes, low < high)
        low = expressions.where(beyond, middle + 1, low)
        high = expressions.where(beyond, high, middle)
    place = expressions.where(element < blocks.count(number), element + low, -1)
    pair = quotient(number, 2)
    return _written(loops, results, row, pair, place, (value, index), is_last=is_last)


def _written(
    loops: Loops,
    results: list[TensorType],
    row: list[Expression],
    number: Expression,
    place: Expression,
    values: tuple[Expression, Expression],
    *,
    is_last: bool,
) -> Form:
    """Write elements and their indices at their places; what lies beyond is not written."""
    at = [*row, place] if is_last else [*row, number, place]
    for type_, value in zip(results, values, strict=True):
        loops.write_at(type_, at, expressions.cast(value, type_.dtype), "last", 0)
    return loops.form()
