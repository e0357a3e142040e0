"""What a function of sizes computes and decides, recorded, to be repeated for other sizes.

A ``Size`` stands for a number while a function runs. Arithmetic gives another one. What is decided
by it is noted: each comparison with its outcome, and each value that is taken for a plain number,
as an index or in a key. For sizes with the same outcomes, what is recorded returns what the
function would, in a hundredth of the time.
"""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tensorplug.plugin import TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType

    Recorded = Callable[..., Any]

T = TypeVar("T")

_KEPT: Final = 512  # code: recordings that differ in objects alone share it

MISSED: Final = object()
"""An outcome is another one for these sizes."""


def record(function: Callable[[Sequence[int]], Any], sizes: Sequence[int]) -> Recorded:
    """Return what takes sizes one by one, and returns the function's result, or ``MISSED``.

    It is recorded for ``sizes``. In a result, sizes stand in tuples, lists and types of tensors.
    """
    tape = _Tape()
    try:
        leaves: Any = [tape.add(f"s{at}", size) for at, size in enumerate(sizes)]
        return tape.write(function(leaves), leaves)
    finally:
        tape.end()


def compute(function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function of numbers gives, of which some may be sizes."""
    tape = next((each.tape for each in arguments if each.__class__ is Size), None)
    return function(*arguments) if tape is None else tape.call(function, *arguments)


def plain(number: Any) -> Any:
    """Return a number that is no size: what is recorded holds for it alone."""
    return number.plain() if number.__class__ is Size else number


class _Tape:
    """The lines of a function: each computes a number, or checks an outcome."""

    def __init__(self) -> None:
        self.ended = False
        self._lines: list[str] = []
        self._known: dict[str, Any] = {}
        self._objects: dict[int, Any] = {}

    def end(self) -> None:
        """Take no more, and leave no cycle: sizes refer to the tape."""
        self.ended = True
        self._known.clear()

    def add(self, name: str, value: Any) -> Size:
        assert not self.ended, "a size outlives its recording"
        return Size(self, name, value)

    def compute(self, text: str, value: Any) -> Size:
        """Return the number that a text computes."""
        known = self._known.get(text)
        if known is None:
            name = f"v{len(self._lines)}"
            known = self._known[text] = self.add(name, value)
            self._lines.append(f"{name} = {text}")
        return known

    def check(self, text: str, outcome: Any) -> Any:
        """Note the outcome of a text."""
        assert not self.ended, "a size outlives its recording"
        if text not in self._known:
            self._known[text] = outcome
            self._lines.append(f"if ({text}) != {self.text(outcome)}: return missed")
        return outcome

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        texts = ", ".join(map(self.text, arguments))
        return self.compute(f"{self._name(function)}({texts})", function(*map(_value, arguments)))

    def text(self, value: Any) -> str:
        """Return an expression for a number or an object."""
        if value.__class__ is Size:
            return value.name
        return f"({value})" if value.__class__ in {int, bool} else self._name(value)

    def _name(self, value: object) -> str:
        self._objects[id(value)] = value
        return f"o{list(self._objects).index(id(value))}"

    def write(self, result: Any, leaves: Sequence[Size]) -> Recorded:
        """Return the function of the lines, and then of the result."""
        names = ", ".join([each.name for each in leaves])
        lines = [f"def recorded({names}):", *self._lines, f"return {self._result(result)}"]
        named = {f"o{at}": value for at, value in enumerate(self._objects.values())}
        exec(_compiled("\n    ".join(lines)), named)  # noqa: S102  # arithmetic, written here
        named["missed"] = MISSED
        made: Recorded = named["recorded"]
        return made

    def _result(self, value: Any) -> str:
        """Return an expression for a result: what holds no sizes is the object itself."""
        if value.__class__ is Size:
            assert value.tape is self, "a size outlives its recording"
            return self.text(value)
        if not _has_sizes(value):
            return self._name(value)
        parts = "".join([f"{self._result(each)}, " for each in _parts(value)])
        if value.__class__ in {tuple, list}:
            return f"[{parts}]" if value.__class__ is list else f"({parts})"
        return f"{self._name(value.__class__)}({parts})"


@lru_cache(_KEPT)
def _compiled(text: str) -> CodeType:
    return compile(text, "<recorded>", "exec")


def _parts(value: Any) -> Sequence[Any]:
    if isinstance(value, tuple | list):
        return value
    return (value.dtype, value.shape) if value.__class__ is TensorType else ()


def _has_sizes(value: Any) -> bool:
    return value.__class__ is Size or any(map(_has_sizes, _parts(value)))


class Size:
    """A number that depends on sizes."""

    __slots__ = ("name", "tape", "value")

    def __init__(self, tape: _Tape, name: str, value: Any) -> None:
        self.tape, self.name, self.value = tape, name, value

    def plain(self) -> Any:
        """Return the value, and note that it is used."""
        return self.tape.check(self.name, self.value)

    def __repr__(self) -> str:  # in keys of expressions, it tells one from others
        return f"<{self.name}>"

    def __bool__(self) -> bool:
        return bool(self.tape.check(f"{self.name} != (0)", self.value != 0))

    def __hash__(self) -> int:
        return hash(self.plain())

    def __int__(self) -> int:
        return int(self.plain())

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.plain())

    def __neg__(self) -> Any:
        return self.tape.call(operator.neg, self)

    def __abs__(self) -> Any:
        return self.tape.call(abs, self)

    def bit_length(self) -> Any:
        """Return the number of bits of a whole number."""
        return self.tape.call(int.bit_length, self)


def _value(number: Any) -> Any:
    return number.value if number.__class__ is Size else number


def _arithmetic(symbol: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compute(a: Any, b: Any) -> Any:
        """Return a number; 0, 1 and the order of factors make no difference to it."""
        one, other = (a, b) if a.__class__ is Size else (b, a)
        if symbol in "+*" and other.__class__ is int and other == (symbol == "*"):
            return one
        if symbol == "*" and other.__class__ is int and not other:
            return other
        text, to = one.tape.text(a), one.tape.text(b)
        if symbol in "+*" and to < text:
            text, to = to, text
        return one.tape.compute(f"{text} {symbol} {to}", function(_value(a), _value(b)))

    return compute


def _comparison(symbol: str, function: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def compare(a: Size, b: Any) -> bool:
        outcome = function(a.value, _value(b))
        known = a is b
        return outcome if known else a.tape.check(f"{a.name} {symbol} {a.tape.text(b)}", outcome)

    return compare


_NUMBERS: Final = (bool, int, float, Size)


def _define(name: str, function: Callable[[Any, Any], Any], *, swapped: bool = False) -> None:
    def method(self: Size, other: object) -> Any:
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        return function(other, self) if swapped else function(self, other)

    setattr(Size, f"__{'r' * swapped}{name}__", method)


for _name, _symbol in {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floordiv": "//",
    "mod": "%",
    "truediv": "/",
    "lshift": "<<",
    "rshift": ">>",
    "and": "&",
}.items():
    _own = _arithmetic(_symbol, getattr(operator, f"__{_name}__"))
    _define(_name, _own)
    _define(_name, _own, swapped=True)
for _name, _symbol in {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}.items():
    _define(_name, _comparison(_symbol, getattr(operator, _name)))
