"""Python floats as inputs of a program.

A traced function gets a ``TracedFloat`` for each float among its arguments. Arithmetic with it is
recorded and computed again in double precision at each call. An op that takes it gets a tensor of
rank 0, whose dtype follows the other inputs as that of any Python float does. Whatever needs the
number itself (a comparison, ``math.sqrt``, ``np.sqrt``, an attribute of an op) *reads* the floats
on which it depends: their values then belong to the signature of the program.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch import host_values
from tensorplug.errors import CompileError
from tensorplug.observers import callsite

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tensorplug.contract.dtypes import DType


_NUMBERS: Final = (bool, int, float)  # not NumPy scalars, whose arithmetic gives NumPy scalars


class FloatInput:
    """An input of a program: the float ``number`` as a tensor of rank 0 of a dtype."""

    __slots__ = ("dtype", "number")

    def __init__(self, number: TracedFloat, dtype: DType) -> None:
        self.number: TracedFloat = number
        self.dtype: DType = dtype

    @property
    def type(self) -> TensorType:
        """The type of the tensor."""
        return TensorType(self.dtype, ())

    def array(self, value: float) -> np.ndarray[Any, Any]:
        """Return the tensor's data for a value of the number."""
        return host_values.scalar(int(value) if self.dtype in dt.INTEGER else value, self.dtype)


class Floats:
    """The floats among the arguments of one traced function, and the arithmetic with them.

    ``given``: their values in the call that is traced; ``read``: the positions of those that the
    function read, with the line that did it; ``inputs``: the inputs of the program.
    """

    def __init__(self, numbers: Sequence[float], *, static: bool = False) -> None:
        self.given = numbers
        self.static = static  # all of them
        self.read: dict[int, str] = dict.fromkeys(range(len(numbers)), "") if static else {}
        self.inputs: list[FloatInput] = []
        self.finished = False
        self._known: dict[Any, TracedFloat] = {}
        self._inputs: dict[tuple[int, DType], FloatInput] = {}
        # What `evaluate` computes, after the given floats: a function and its operands, each a
        # number, or the position of one that is computed before.
        self.operations: list[tuple[Callable[..., Any], Sequence[tuple[bool, Any]]]] = []
        self.arguments: list[Any] = [
            value if static else TracedFloat(self, at, value, frozenset([at]))
            for at, value in enumerate(numbers)
        ]

    def input(self, number: TracedFloat, dtype: DType) -> FloatInput | None:
        """Return ``number`` as an input of the program; None if its value is fixed anyway."""
        if number._roots <= self.read.keys():
            return None
        key = (number.at, dtype)
        known = self._inputs.get(key)
        if known is None:
            known = self._inputs[key] = FloatInput(number, dtype)
            self.inputs.append(known)
        return known

    def check_unfinished(self) -> None:
        """Refuse the use of a float that outlives its trace.

        Raises:
            CompileError: the trace has ended.

        """
        if self.finished:
            raise CompileError(
                "compile: a float that depends on the arguments of a compiled function is used "
                "after tracing; return it from the function instead"
            )

    def combine(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Return ``function(*operands)``; at least one operand is a traced float.

        A result that is not a float, such as the root of a negative number, is read.
        """
        self.check_unfinished()
        result = function(*(_value(operand) for operand in operands))
        traced = [operand for operand in operands if type(operand) is TracedFloat]
        if result.__class__ is not float or any(operand.floats is not self for operand in traced):
            for operand in traced:
                operand._read()
            return result
        steps = tuple(
            (True, operand.at) if type(operand) is TracedFloat else (False, operand)
            for operand in operands
        )
        key = (function, steps, *(operand.__class__ for operand in operands))
        known = self._known.get(key)
        # -0.0 equals 0.0: only numbers other than 0 are told apart by their key.
        if known is None or not all(is_traced or operand for is_traced, operand in steps):
            at = len(self.given) + len(self.operations)
            roots = frozenset[int]().union(*(operand._roots for operand in traced))
            self.operations.append((function, steps))
            known = self._known[key] = TracedFloat(self, at, result, roots)
        return known

    def evaluate(self, numbers: Sequence[float]) -> list[float]:
        """Return the values of all floats of the trace for the arguments of another call.

        Raises:
            CompileError: a result is not a float, though it was one during tracing.
            Also what the arithmetic raises, such as ``ZeroDivisionError``.

        """
        values = list(numbers)
        for function, operands in self.operations:
            result = function(*(values[item] if traced else item for traced, item in operands))
            if result.__class__ is not float:
                raise CompileError(
                    f"compile: {function.__name__} of a float argument was a float during "
                    f"tracing, but is now {result!r}; pass static_floats=True, or a tensor"
                )
            values.append(result)
        return values

    def arrays(self, values: Sequence[float]) -> list[np.ndarray[Any, Any]]:
        """Return the inputs of the program, from the result of ``evaluate``."""
        return [known.array(values[known.number.at]) for known in self.inputs]


class HasFloats(Protocol):
    """A result of tracing, valid for other calls in which the floats that were read are equal.

    ``used``: whether it was found since it was stored, or last spared.
    """

    used: bool

    @property
    def floats(self) -> Floats:
        """Which floats were read, and what is computed of the others."""


T = TypeVar("T", bound=HasFloats)


def find(known: dict[Hashable, T], key: Hashable, floats: Sequence[float]) -> T | None:
    """Return what ``remember`` stored for this key and the values of ``floats``."""
    latest = known.get(key)
    if latest is None or not latest.floats.read:
        return latest
    return known.get(_with_values(key, latest.floats, floats))


def remember(
    known: dict[Hashable, T], key: Hashable, floats: Sequence[float], new: T, limit: int
) -> None:
    """Store ``new`` for this key and the values of those ``floats`` that were read.

    The entry under the key alone is the latest result. It says which floats to compare: all that
    any of the results read, since each condition may lead to others. The oldest are dropped first,
    but those that were used since are asked once more.
    """
    latest = known.pop(key, None)
    if latest is not None:
        new.floats.read = latest.floats.read | new.floats.read
    entries = [(key, new)]
    if new.floats.read:
        entries.insert(0, (_with_values(key, new.floats, floats), new))
    for slot, value in entries:
        known.pop(slot, None)
        while len(known) >= limit:
            _drop_one(known)
        known[slot] = value


def _drop_one(known: dict[Hashable, T]) -> None:
    """Drop the oldest entry that has not been used since it was stored, or last spared."""
    for key in list(known):
        value = known.pop(key)
        if not value.used:
            return
        value.used = False
        known[key] = value  # behind the others
    del known[next(iter(known))]


def _with_values(key: Hashable, floats: Floats, values: Sequence[float]) -> Hashable:
    """Return a key for the values of the read floats: NaN equals NaN, but 0.0 not -0.0."""
    return (key, *[(at, repr(values[at])) for at in floats.read])


def _value(operand: Any) -> Any:
    return operand._value if type(operand) is TracedFloat else operand


def _binary(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the methods for ``self . other`` and ``other . self``."""

    def forward(self: TracedFloat, other: Any) -> Any:
        if other.__class__ in _NUMBERS:
            return self.floats.combine(function, self, other)
        return NotImplemented if hasattr(other, "_placement") else function(self._read(), other)

    def reflected(self: TracedFloat, other: Any) -> Any:
        if other.__class__ in _NUMBERS:
            return self.floats.combine(function, other, self)
        return NotImplemented if hasattr(other, "_placement") else function(other, self._read())

    return forward, reflected


def _reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that applies ``function`` to the number itself."""

    def method(self: TracedFloat, *others: Any) -> Any:
        if others and hasattr(others[0], "_placement"):  # a tensor, which compares itself
            return NotImplemented
        return function(self._read(), *(_read(other) for other in others))

    return method


def _read(value: Any) -> Any:
    return value._read() if type(value) is TracedFloat else value


class TracedFloat:
    """A float that depends on the arguments of a traced function; an instance of ``float``.

    It is not a subclass: C functions such as ``math.sqrt`` would use its value unnoticed.
    """

    __slots__ = ("_roots", "_value", "at", "floats")

    def __init__(self, floats: Floats, at: int, value: float, roots: frozenset[int]) -> None:
        self.floats: Floats = floats
        self.at: int = at
        self._value = value
        self._roots = roots

    @property  # type: ignore[misc]  # what isinstance asks
    def __class__(self) -> type:
        return float

    def _read(self) -> float:
        """Return the value; from now on it belongs to the signature."""
        floats = self.floats
        floats.check_unfinished()
        new = self._roots - floats.read.keys()
        if new:
            site = callsite.find()
            where = "" if site is None else site.short
            floats.read.update(dict.fromkeys(new, where))
        return self._value

    def __repr__(self) -> str:
        return f"<traced float, {self._value!r} in this call>"

    def __format__(self, spec: str) -> str:
        return format(self._read(), spec) if spec else repr(self)

    @property
    def real(self) -> TracedFloat:
        """The number itself."""
        return self

    @property
    def imag(self) -> float:
        """0."""
        return 0.0

    def __getattr__(self, name: str) -> Any:
        """Return another member of a float, such as ``hex``."""
        if hasattr(float, name):
            return getattr(self._read(), name)
        raise AttributeError(f"'float' object has no attribute {name!r}", name=name, obj=self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:  # noqa: FBT001  # NumPy's protocol
        return np.array(self._read(), dtype=dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if any(hasattr(operand, "_placement") for operand in inputs):
            return NotImplemented  # tensors know traced floats
        return getattr(ufunc, method)(*_read_all(inputs), **options)

    def __array_function__(
        self, function: Callable[..., Any], _types: Any, inputs: Any, options: Any
    ) -> Any:
        return function(*_read_all(inputs), **_read_all(options))

    def __deepcopy__(self, _memo: dict[int, Any]) -> TracedFloat:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (self._read(),)

    def __neg__(self) -> Any:
        return self.floats.combine(operator.neg, self)

    def __pos__(self) -> TracedFloat:
        return self

    conjugate = __copy__ = __pos__

    def __abs__(self) -> Any:
        return self.floats.combine(operator.abs, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    __add__, __radd__ = _binary(operator.add)
    __sub__, __rsub__ = _binary(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul)
    __truediv__, __rtruediv__ = _binary(operator.truediv)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv)
    __mod__, __rmod__ = _binary(operator.mod)
    __pow__, __rpow__ = _binary(operator.pow)

    __float__ = _reading(float)
    __int__ = _reading(int)
    __complex__ = _reading(complex)
    __bool__ = _reading(bool)
    __trunc__ = _reading(math.trunc)
    __floor__ = _reading(math.floor)
    __ceil__ = _reading(math.ceil)
    __round__ = _reading(round)
    __hash__ = _reading(hash)
    __lt__ = _reading(operator.lt)
    __le__ = _reading(operator.le)
    __gt__ = _reading(operator.gt)
    __ge__ = _reading(operator.ge)
    __eq__ = _reading(operator.eq)
    __ne__ = _reading(operator.ne)


def _read_all(value: Any) -> Any:
    """Return arguments of a function of NumPy with numbers for traced floats, which are read."""
    if type(value) in (list, tuple):
        return type(value)(_read_all(member) for member in value)
    if type(value) is dict:
        return {key: _read_all(member) for key, member in value.items()}
    return _read(value)


def fixed(value: Any) -> Any:
    """Return an attribute of an op with numbers for traced floats, which are read."""
    if type(value) is TracedFloat:
        return value._read()
    if type(value) in (list, tuple) and any(type(member) in _NESTED for member in value):
        return type(value)(fixed(member) for member in value)
    return value


_NESTED: Final = (TracedFloat, list, tuple)
