"""The largest elements in order: blocks are ranked, then merged in pairs.

An element's place is the number of those that come before it. In a block it is counted; in two
blocks that are sorted it is found by binary search. So each pass writes an element at most once,
and leaves out those that are not among the largest k of their block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

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

if TYPE_CHECKING:
    from collections.abc import Callable

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
def top_k(
    x: Operand, *, k: int, out: tuple[TensorType, TensorType]
) -> Callable[[int], list[Form]]:
    """Sort in descending order; of equal elements, the first comes first."""
    return partial(_stages, x, k, out)


def _stages(x: Operand, k: int, out: tuple[TensorType, TensorType], arrays: int) -> list[Form]:
    *lead, length = x.shape
    block, stages, blocks = min(_FEW if k <= _FEW else _BLOCK, length), list[Form](), None
    while True:
        is_last = block >= length
        number = -(-length // block)
        shape = (*lead, k) if is_last else (*lead, number, min(block, k))
        results = [TensorType(type_.dtype, shape) for type_ in out]
        first = 2 * len(stages) + 1  # x is number 0, and each stage makes two
        stages += (
            [_count(x, block, results, is_last=is_last)]
            if blocks is None
            else _merge(blocks, results, first, arrays, is_last=is_last)
        )
        if is_last:
            return stages
        first = 2 * len(stages) - 1
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


def _merge(
    blocks: _Blocks, results: list[TensorType], first: int, arrays: int, *, is_last: bool
) -> list[Form]:
    """Search in the other block of each pair; in several forms, if steps read too many arrays.

    ``first``: the number of the first output. Between two forms lie the ends of the search.
    """
    forms: list[Form] = []
    steps, ends = blocks.values.shape[-1].bit_length(), list[Operand]()
    while steps > arrays - 4 - len(ends):  # besides a value, its index, and two outputs
        some = arrays - 3 - len(ends)
        type_ = TensorType(dt.int32, blocks.values.shape)
        forms.append(_search(blocks, ends, some, [type_, type_], is_last=None))
        ends = [Operand(type_, first + 2 * len(forms) - 2 + at) for at in (0, 1)]
        steps -= some
    return [*forms, _search(blocks, ends, steps, results, is_last=is_last)]


def _search(
    blocks: _Blocks,
    ends: list[Operand],
    steps: int,
    results: list[TensorType],
    *,
    is_last: bool | None,
) -> Form:
    """Loop over [*lead, block, element], and take some steps of a binary search.

    ``ends``: of what is left to search; none at first. ``is_last``: None to write them.
    """
    loops = Loops(blocks.values.shape)
    *row, number, element = loops.axes
    size = blocks.values.shape[-1]
    is_right = rest(number, 2)
    other = number + 1 - 2 * is_right
    value = loops.read(blocks.values, *loops.axes)
    low, high = (
        (expressions.cast(loops.read(each, *loops.axes), dt.int64) for each in ends)
        if ends
        else (whole(0), blocks.count(other))
    )
    near = clamped(other, blocks.values.shape[-2])
    for _ in range(steps):
        middle = quotient(low + high, 2)
        here = loops.read(blocks.values, *row, near, clamped(middle, size))
        # Of equal elements, those of the left block come first.
        comes = either(_before(here, value), both(is_right > 0, _not(_before(value, here))))
        beyond = both(comes, low < high)
        low = expressions.where(beyond, middle + 1, low)
        high = expressions.where(beyond, high, middle)
    if is_last is None:
        for type_, end in zip(results, (low, high), strict=True):
            loops.write(type_, expressions.cast(end, dt.int32))
        return loops.form()
    index = loops.read(blocks.indices, *loops.axes)
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
