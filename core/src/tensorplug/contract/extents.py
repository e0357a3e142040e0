"""Sizes of a trace that may differ in another call, and whole numbers that follow from them.

A trace is used again at other sizes, if nothing has read these (docs/adr/0071). An ``Extent``
stands for a size in attributes, where it is only handed on (docs/adr/0080). It is no ``int``: what
needs the number asks for it, by ``__index__``, and that is noted.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tensorplug.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Term: TypeAlias = "int | tuple[Any, ...]"  # a number, (_SIZE, size), (operation, term, term)


_SIZE: Final = "size"


def _divide(a: int, b: int) -> int:
    if b == 0 or a % b:
        raise ShapeError(f"{a} elements do not fill rows of {b}")
    return a // b


_NUMERIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
}
_OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {**_NUMERIC, "//": _divide}


class Extent:
    """A whole number that follows from sizes of a trace; ``read`` gets those that are read.

    Sums, differences, products and quotients without a rest are extents again. Comparing sizes
    with one another, or sizes and products of them with 0 and 1, reads none of them: a trace is
    used again only where these comparisons come out as they did.
    """

    __slots__ = ("_read", "_value", "term")

    def __init__(self, term: Term, value: int, read: set[int]) -> None:
        self.term = term
        self._value = value
        self._read = read

    @classmethod
    def of(cls, size: int, read: set[int]) -> Any:
        """Return the extent of a size; 0 and 1 are always themselves."""
        return cls((_SIZE, size), size, read) if size > 1 else size

    def __index__(self) -> int:
        self._read.update(_sizes(self.term))
        return self._value

    __int__ = __index__

    def __repr__(self) -> str:
        return repr(int(self))

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def __float__(self) -> float:
        return float(int(self))

    def __hash__(self) -> int:
        return hash(int(self))

    def _joined(self, operation: str, a: Any, b: Any) -> Any:
        numbers = [each for each in (a, b) if isinstance(each, int | Extent)]
        if len(numbers) < 2 or (operation == "//" and (not plain(b) or plain(a) % plain(b))):
            return self._computed(_NUMERIC[operation], a, b)
        value = _OPERATIONS[operation](plain(a), plain(b))
        return Extent((operation, _term(a), _term(b)), value, self._read)

    def _computed(self, operation: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        """Return what the operation gives for numbers, which are noted."""
        if not all(isinstance(each, int | float | complex | Extent) for each in (a, b)):
            return NotImplemented
        return operation(*[int(each) if isinstance(each, Extent) else each for each in (a, b)])

    def __add__(self, other: Any) -> Any:
        return self._joined("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._joined("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._joined("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._joined("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._joined("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._joined("*", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._joined("//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._joined("//", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._computed(operator.mod, self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._computed(operator.mod, other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._computed(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._computed(operator.truediv, other, self)

    def __pow__(self, other: Any) -> Any:
        return self._computed(operator.pow, self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._computed(operator.pow, other, self)

    def __neg__(self) -> int:
        return -int(self)

    def __abs__(self) -> int:
        return abs(int(self))

    def _compared(self, other: Any, operation: Callable[[Any, Any], bool]) -> Any:
        if isinstance(other, Extent):
            sizes = self.term[0] == other.term[0] == _SIZE  # type: ignore[index]  # no int
            same = operation in (operator.eq, operator.ne)
            free = self._read is other._read and same and (sizes or self.term == other.term)
            return (
                operation(self._value, other._value) if free else operation(int(self), int(other))
            )
        if not isinstance(other, int | float):
            return NotImplemented
        # Whether it is 0, 1 or more is what it always was.
        free = isinstance(other, int) and other <= 1 and _is_product(self.term)
        return operation(self._value if free else int(self), other)

    def __eq__(self, other: object) -> Any:
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, operator.ge)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def at(self, sizes: Mapping[int, int]) -> int:
        """Return the number at other sizes.

        Raises:
            ShapeError: a size is not among ``sizes``, or a quotient is not a whole number.

        """
        return _evaluate(self.term, sizes)

    def moved(self, sizes: Mapping[int, int]) -> Extent:
        """Return the same of a trace at other sizes, which notes nothing."""
        return Extent(_move(self.term, sizes), self.at(sizes), set())


def _term(value: Any) -> Term:
    term: Term = value.term if isinstance(value, Extent) else value
    return term


def _sizes(term: Term) -> set[int]:
    if isinstance(term, int):
        return set()
    return {term[1]} if term[0] == _SIZE else _sizes(term[1]) | _sizes(term[2])


def _is_product(term: Term) -> bool:
    """Return whether a number is a size, a number of at least 0, or a product of such."""
    if isinstance(term, int):
        return term >= 0
    return term[0] == _SIZE or (term[0] == "*" and all(map(_is_product, term[1:])))


def _evaluate(term: Term, sizes: Mapping[int, int]) -> int:
    if isinstance(term, int):
        return term
    if term[0] != _SIZE:
        return _OPERATIONS[term[0]](_evaluate(term[1], sizes), _evaluate(term[2], sizes))
    if term[1] not in sizes:
        raise ShapeError(f"nothing says what the size {term[1]} is in another call")
    return sizes[term[1]]


def _move(term: Term, sizes: Mapping[int, int]) -> Term:
    if isinstance(term, int):
        return term
    if term[0] == _SIZE:
        return (_SIZE, sizes[term[1]])
    return (term[0], *[_move(part, sizes) for part in term[1:]])


def has_extents(value: Any) -> bool:
    """Return whether an attribute is an extent, or has one in it."""
    if isinstance(value, tuple | list):
        return any(map(has_extents, value))
    return value.__class__ is Extent


def replaced(value: Any, change: Callable[[Extent], Any]) -> Any:
    """Return an attribute with what ``change`` returns for each extent in it."""
    if value.__class__ is Extent:
        return change(value)
    if value.__class__ is tuple or value.__class__ is list:
        return value.__class__([replaced(member, change) for member in value])
    return value


def plain(value: Any) -> Any:
    """Return an attribute with numbers for extents, which is not noted.

    So the caller must do the same again at other sizes.
    """
    return replaced(value, lambda extent: extent._value)
