"""Kinds of kernel attributes. Each turns the caller's value into the form that kernels see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import arguments, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.extents import Extent
from tensorplug.contract.spec import REQUIRED, Attribute
from tensorplug.errors import ArgumentError, DTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.spec import InputTypes

__all__ = [
    "axes",
    "axis",
    "choice",
    "dtype",
    "flag",
    "integer",
    "integers",
    "number",
    "optional",
    "shape",
]


_BITS_OF_FLOATS: Final = 1023  # of the integers that float64 can represent without overflow


def _rank(types: InputTypes, of: str) -> int:
    operand = types[of]
    if isinstance(operand, list):
        if not operand:
            raise ArgumentError(f"input {of!r} is an empty list")
        operand = operand[0]
    return int(operand.rank) if operand else 0


def flag(default: Any = REQUIRED) -> Attribute:
    """Return a boolean attribute. It does not accept 0 and 1."""

    def canonical(value: Any, _types: InputTypes) -> bool:
        if not isinstance(value, bool):
            raise ArgumentError(f"must be True or False, got {arguments.quoted(value)}")
        return value

    return Attribute(canonical, default, "bool")


def axis(of: str, default: Any = REQUIRED, *, extra: int = 0) -> Attribute:
    """Return an attribute for one axis of input ``of``, to which the op adds ``extra`` axes."""

    def canonical(value: Any, types: InputTypes) -> int:
        return shapes.normalize_axis(value, _rank(types, of) + extra)

    rank = f"rank of {of} + {extra}" if extra else f"rank of {of}"
    return Attribute(canonical, default, f"int in [0, {rank})")


def axes(of: str, default: Any = None) -> Attribute:
    """Return an attribute for sorted axes of input ``of``: None for all, an int or a list."""

    def canonical(value: Any, types: InputTypes) -> tuple[int, ...]:
        return shapes.normalize_axes(value, _rank(types, of))

    form = f"sorted tuple of ints in [0, rank of {of}); None becomes all axes"
    return Attribute(canonical, default, form)


def shape(default: Any = REQUIRED) -> Attribute:
    """Return a shape attribute: a tuple of non-negative sizes."""
    return Attribute(lambda value, _types: shapes.as_shape(value), default, "tuple of ints >= 0")


def integers(default: Any = REQUIRED) -> Attribute:
    """Return an attribute for a tuple of integers. A single integer becomes a tuple of one."""
    return Attribute(lambda value, _types: shapes.as_ints(value), default, "tuple of ints")


def integer(
    default: Any = REQUIRED, *, at_least: int | None = None, at_most: int | None = None
) -> Attribute:
    """Return an integer attribute, optionally with bounds."""

    def canonical(value: Any, _types: InputTypes) -> int:
        number = shapes.index(value)
        if at_least is not None and number < at_least:
            raise ArgumentError(f"must be at least {at_least}, got {number}")
        if at_most is not None and number > at_most:
            raise ArgumentError(f"must be at most {at_most}, got {number}")
        return number

    form = "int" if at_least is None else f"int >= {at_least}"
    if at_most is not None:
        form = f"{form}, <= {at_most}"
    return Attribute(canonical, default, form)


def number(default: Any = REQUIRED) -> Attribute:
    """Return an attribute for a Python number. NumPy scalars are converted."""

    def canonical(value: Any, _types: InputTypes) -> dt.Scalar:
        if value.__class__ is Extent:
            return value  # type: ignore[return-value]  # as shapes.index
        number = dt.as_number(value)
        if not isinstance(number, bool | int | float | complex):
            raise ArgumentError(f"must be a number, got {arguments.quoted(value)}")
        if isinstance(number, int) and number.bit_length() > _BITS_OF_FLOATS:
            raise ArgumentError(f"must fit into float64, got {arguments.quoted(value)}")
        return number

    return Attribute(canonical, default, "bool, int, float or complex")


def dtype(default: Any = REQUIRED, *, stored: bool = False) -> Attribute:
    """Return a dtype attribute, which accepts dtypes and their names.

    ``stored``: those that are for storage, too.
    """

    def canonical(value: Any, _types: InputTypes) -> dt.DType:
        dtype = dt.of(value)
        if dtype in dt.STORAGE and not stored:
            raise DTypeError(f"{dtype} is for storage; convert the result with astype")
        return dtype

    return Attribute(canonical, default, "DType")


def choice(*allowed: str | None, default: Any = REQUIRED) -> Attribute:
    """Return an attribute that accepts one of the ``allowed`` strings."""

    def canonical(value: Any, _types: InputTypes) -> str | None:
        if not isinstance(value, str | None) or value not in allowed:
            raise ArgumentError(
                f"must be one of {', '.join(map(repr, allowed))}, got {arguments.quoted(value)}"
            )
        return value

    return Attribute(canonical, default, f"one of {', '.join(map(repr, allowed))}")


def optional(kind: Attribute, absent: Callable[[InputTypes], Any] | None = None) -> Attribute:
    """Return an attribute like ``kind`` that callers may omit or set to None.

    Kernels then get the result of ``absent``, which takes a dict of the input types and of the
    attributes declared earlier. Without ``absent`` they get None.
    """
    inner: Callable[[Any, InputTypes], Any] = kind.canonical

    def canonical(value: Any, known: InputTypes) -> Any:
        if value is None:
            return None if absent is None else absent(known)
        return inner(value, known)

    form = kind.form if absent is not None or not kind.form else f"{kind.form}; or None"
    return Attribute(canonical, None, form)
