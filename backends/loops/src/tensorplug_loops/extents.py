"""How large the indices of a kernel become, given the numbers of a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.plugin import dtypes as dt
from tensorplug_loops.statements import Declare, If, Let, Loop, Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Expression
    from tensorplug_loops.statements import Kernel, Statement


class _Extent(NamedTuple):
    low: int
    high: int


_LOWEST: Final = dt.int32.min
_KEPT: Final = 1 << 14
# Kernels whose indices fit, for all numbers of so many bits, and items.
_fitting: Final[dict[tuple[int, tuple[int, ...]], Kernel]] = {}


def fit(kernel: Kernel, numbers: Sequence[int], items: int) -> bool:
    """Return whether all that is computed of indices and of int64 numbers fits in 32 bits.

    What is computed of elements that are read does not count, since its dtype is theirs.

    Args:
        kernel: the kernel.
        numbers: the values of its numbers.
        items: how many work-items, or work-groups, there are.

    """
    signed = (value.bit_length() * (-1 if value < 0 else 1) for value in numbers)
    bits = (*signed, items.bit_length())
    known = id(kernel), bits
    if known in _fitting:
        return True
    if _fits(kernel, [_of_bits(each) for each in bits[:-1]], (1 << bits[-1]) - 1):
        if len(_fitting) >= _KEPT:
            del _fitting[next(iter(_fitting))]
        _fitting[known] = kernel
        return True
    return _fits(kernel, [_Extent(value, value) for value in numbers], items)


def _of_bits(count: int) -> _Extent:
    """Return the extent of all numbers of so many bits; of negative ones, if it is negative."""
    if not count:
        return _Extent(0, 0)
    low, high = 1 << (abs(count) - 1), (1 << abs(count)) - 1
    return _Extent(low, high) if count > 0 else _Extent(-high, -low)


def _fits(kernel: Kernel, numbers: Sequence[_Extent], items: int) -> bool:
    """Return whether all fits for numbers in these extents, and for at most so many items."""
    names = {
        number.name: extent
        for number, extent in zip(kernel.numbers, numbers, strict=True)
        if number.dtype is dt.int64
    }
    try:
        _Extents(names, items, kernel.group_size).walk(kernel.body)
    except OverflowError:
        return False
    return True


class _Extents:
    """The smallest and largest values of names; what is not an index has none."""

    def __init__(self, names: dict[str, _Extent], items: int, members: int) -> None:
        self._names: dict[str, _Extent | None] = {**names}
        self._counts = {"item": items, "member": members}
        for each in names.values():
            _check(each)

    def walk(self, body: Sequence[Statement]) -> None:
        """Bound all values of statements."""
        for each in body:
            if isinstance(each, Let):
                self._names[each.name] = self._of(each.value)
            elif isinstance(each, Loop):
                start, stop = self._of(each.start), self._of(each.stop)
                if start is None or stop is None:
                    raise OverflowError
                last = max(start.low, stop.high + each.step)
                self._names[each.index] = _check(_Extent(start.low, last))
                self.walk(each.body)
            elif isinstance(each, If):
                self._of(each.condition)
                self.walk(each.then)
            elif isinstance(each, Declare):
                self._of(each.value)
                self._names[each.name] = None
            elif isinstance(each, Store):
                self._of(each.offset)
                self._of(each.value)
            elif hasattr(each, "value"):
                self._of(each.value)

    def _of(self, root: Expression) -> _Extent | None:
        known: dict[int, _Extent | None] = {}
        stack = [(root, False)]
        while stack:
            each, entered = stack.pop()
            if id(each) in known:
                continue
            if not entered and each.operands:
                stack.append((each, True))
                stack += [(operand, False) for operand in each.operands]
                continue
            operands = [known[id(operand)] for operand in each.operands]
            found = self._apply(each, operands) if each.dtype is dt.int64 else None
            known[id(each)] = None if found is None else _check(found)
        return known[id(root)]

    def _apply(self, each: Expression, operands: list[_Extent | None]) -> _Extent | None:
        op = each.op
        if op == "constant":
            value = int(each.value)  # type: ignore[arg-type]  # an integer
            return _Extent(value, value) if _LOWEST <= value < -_LOWEST else None
        if op == "variable":
            return self._names.get(str(each.value))
        if op in self._counts:
            return _Extent(0, self._counts[op] - 1)
        kept = [operand for operand in operands[op == "where" :] if operand is not None]
        if len(kept) < len(operands) - (op == "where") or op == "load":
            return None
        return _computed(op, kept)


def _computed(op: str, kept: list[_Extent]) -> _Extent | None:
    a, b = kept[0], kept[-1]
    if op == "add":
        return _Extent(a.low + b.low, a.high + b.high)
    if op == "subtract":
        return _Extent(a.low - b.high, a.high - b.low)
    if op == "negative":
        return _Extent(-a.high, -a.low)
    if op == "multiply":
        products = [x * y for x in a for y in b]
        return _Extent(min(products), max(products))
    if op in {"where", "bitwise_or"}:
        return _Extent(min(a.low, b.low), max(a.high, b.high))
    if op == "bitwise_and":
        return _masked(a, b)
    if op == "rest":
        most = max(abs(b.low), abs(b.high))
        return _Extent(1 - most if a.low < 0 else 0, most - 1)
    if op == "quotient":
        return _divided(a, b)
    raise OverflowError  # no operation of indices


def _masked(a: _Extent, b: _Extent) -> _Extent:
    positive = [each.high for each in (a, b) if each.low >= 0]
    if positive:
        return _Extent(0, min(positive))
    if b.high < 0:  # without the last digits
        return _Extent(a.low + b.low, a.high)
    raise OverflowError


def _divided(a: _Extent, b: _Extent) -> _Extent:
    most = max(abs(a.low), abs(a.high)) // max(1, b.low)
    return _Extent(-most if min(*a, *b) < 0 else 0, most)


def _check(extent: _Extent) -> _Extent:
    if not _LOWEST <= extent.low <= extent.high < -_LOWEST:
        raise OverflowError
    return extent
