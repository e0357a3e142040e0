"""Makes a call smaller and its values simpler, as long as it shows the same."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance.case import flat, mapped
from tensorplug_conformance.floats import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tensorplug_conformance.case import Array

    Operands = list[Any]
    Shows = Callable[[Operands, dict[str, Any]], bool]


_SECONDS: Final = 30.0
_ONE_BY_ONE: Final = 64  # elements of an input up to which each is simplified alone


def shrunk(
    operands: Sequence[Any], attributes: Mapping[str, Any], shows: Shows
) -> tuple[Operands, dict[str, Any]]:
    """Return the smallest inputs found for which ``shows`` is true, and their attributes.

    ``shows`` takes inputs and attributes and says whether the call shows what it is to show; it
    must be false for what is no call. Sizes become smaller first, equal ones together, with the
    numbers in attributes that are these sizes; then values become simpler. The search ends when
    nothing more can be left out, or after a while.
    """
    search = _Search(list(operands), dict(attributes), shows)
    while search.resize() and not search.over:
        pass
    while search.simplify() and not search.over:
        pass
    return search.operands, search.attributes


class _Search:
    """The best inputs so far."""

    def __init__(self, operands: Operands, attributes: dict[str, Any], shows: Shows) -> None:
        self.operands = operands
        self.attributes = attributes
        self._shows = shows
        self._end = time.monotonic() + _SECONDS

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self._end

    def _take(self, operands: Operands, attributes: dict[str, Any]) -> bool:
        """Take other inputs if they show it too; return whether they do."""
        if self.over or not self._shows(operands, attributes):
            return False
        self.operands, self.attributes = operands, attributes
        return True

    def resize(self) -> bool:
        """Make each size as small as possible; return whether any became smaller."""
        shrunk = False
        sizes = {n for array in flat(self.operands) for n in array.shape if n > 1}
        for size in sorted(sizes, reverse=True):
            shrunk |= self._smallest(size)
        return shrunk

    def _smallest(self, size: int) -> bool:
        """Make ``size`` as small as it can be; return whether it became smaller."""
        best = size
        for small in range(1, min(4, size)):
            if self._cut(best, small):
                return True
        while best > 4 and self._cut(best, best // 2):
            best //= 2
        low = max(3, best // 2)  # shows nothing
        while best - low > 1:
            middle = (low + best) // 2
            if self._cut(best, middle):
                best = middle
            else:
                low = middle
        return best < size

    def _cut(self, old: int, new: int) -> bool:
        """Keep ``new`` of the elements along each axis of size ``old``: the first or last ones."""
        for attributes in self._renumbered(old, new):
            for last in (False, True):
                part = partial(_part, old=old, new=new, last=last)
                cut = [mapped(part, operand) for operand in self.operands]
                if self._take(cut, attributes):
                    return True
        return False

    def _renumbered(self, old: int, new: int) -> Iterator[dict[str, Any]]:
        yield self.attributes
        changed = {name: _replaced(value, old, new) for name, value in self.attributes.items()}
        if changed != self.attributes:
            yield changed

    def simplify(self) -> bool:
        """Replace values by simpler ones; return whether any was replaced."""
        simplified = False
        for at, operand in enumerate(self.operands):
            for index, array in enumerate(flat([operand])):
                place = (at, index if isinstance(operand, list) else None)
                simplified |= self._simpler(place, array)
        return simplified

    def _simpler(self, place: tuple[int, int | None], array: Array) -> bool:
        for other in _plainer(array):
            if _score(other) < _score(array) and self._put(place, other):
                return True
        if array.size > _ONE_BY_ONE:
            return False
        simplified = False
        for at in range(array.size):
            for value in _plainer_values(array.flat[at], array):
                changed = array.copy()
                changed.flat[at] = value
                if _score(changed) < _score(array) and self._put(place, changed):
                    array, simplified = changed, True
                    break
        return simplified

    def _put(self, place: tuple[int, int | None], array: Array) -> bool:
        at, index = place
        operands = list(self.operands)
        if index is None:
            operands[at] = array
        else:
            operands[at] = [*operands[at][:index], array, *operands[at][index + 1 :]]
        return self._take(operands, self.attributes)


def _part(array: Array, *, old: int, new: int, last: bool) -> Array:
    kept = slice(old - new, None) if last else slice(new)
    return array[tuple(kept if n == old else slice(None) for n in array.shape)].copy()


def _replaced(value: Any, old: int, new: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_replaced(one, old, new) for one in value)
    return new if type(value) is int and value == old else value


def _plainer(array: Array) -> Iterator[Array]:
    """Yield arrays of the same type whose elements are all simple, or all the same."""
    if kind_of(array.dtype) not in "biufc" or not array.size:
        return
    for value in (0, 1):
        yield np.full_like(array, value)
    for value in dict.fromkeys(np.ravel(array)[:3].tolist()):
        yield np.full_like(array, value)
    if kind_of(array.dtype) == "f":
        with np.errstate(all="ignore"):
            yield np.rint(array.astype(np.float64)).astype(array.dtype)


def _plainer_values(value: Any, array: Array) -> Iterator[Any]:
    if kind_of(array.dtype) not in "biufc":
        return
    yield 0
    yield 1
    if kind_of(array.dtype) == "f" and np.isfinite(value):
        for digits in (0, 1, 2, 4):
            yield round(float(value), digits)


def _score(array: Array) -> tuple[int, int]:
    """Return how hard an array is to read: characters that are not zeros, different values."""
    texts = [str(value) for value in np.ravel(array).tolist()]
    return sum(len(text) for text in texts if text not in ("0", "0.0", "False")), len(set(texts))
