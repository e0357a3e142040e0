"""Hashable attributes for the keys of plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract.dtypes import DType
from tensorplug.contract.extents import Extent
from tensorplug.dispatch.likeness import are_alike

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping


# Equal only within their type, and hashable.
PLAIN: Final = frozenset({bool, int, str, bytes, DType, type(None)})
# Compared as text, which distinguishes signed zeros and makes NaNs equal.
_COMPARED_AS_TEXT: Final = frozenset({float, complex})


def freeze_attributes(attributes: Mapping[str, Any]) -> list[Hashable]:
    """Return names and values in a hashable form, equal only if no kernel could differ.

    1, 1.0 and True are different values, and so are 0.0 and -0.0: they need different plans. That
    holds inside of other values, too.

    Raises:
        TypeError: a value is not hashable; such a call has no key.

    """
    try:
        return [
            (name, value.__class__, value) if value.__class__ in PLAIN else (name, freeze(value))
            for name, value in attributes.items()
        ]
    except RecursionError:
        raise TypeError("a list is nested too deeply, or contains itself") from None


def freeze_names(names: Iterable[Any]) -> Iterable[Hashable]:
    """Return the keys of a dict in a hashable form; strings, which are most of them, stay."""
    for name in names:
        if name.__class__ is not str:
            return [freeze(name) for name in names]
    return names


def freeze(value: Any) -> Hashable:
    """Return one value in a hashable form.

    Raises:
        TypeError: it is not hashable.

    """
    kind = value.__class__
    if kind in PLAIN:
        return (kind, value)
    if kind is Extent:
        return (kind, value.term)
    if isinstance(value, tuple | list):  # named tuples too
        for member in value:
            if member.__class__ is not int:
                return (kind, *[freeze(member) for member in value])
        return (kind, int, *value)  # sizes and axes: the most frequent case
    if isinstance(value, frozenset):
        return (kind, frozenset([freeze(member) for member in value]))
    if isinstance(value, np.void) and not value.dtype.hasobject:
        return (kind, value.dtype, value.tobytes())  # its text leaves out members
    if kind in _COMPARED_AS_TEXT or isinstance(value, np.generic):
        return (kind, repr(value))
    hash(value)  # raises TypeError if the value is not hashable
    # What is compared by identity has no equal.
    return (kind, value if kind.__eq__ is object.__eq__ else _Exact(value))


class _Exact:
    """A value of any class, equal to others that are equal to it in all their parts, too."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Exact) and (
            self._value is other._value
            or (bool(self._value == other._value) and are_alike(self._value, other._value))
        )

    def __hash__(self) -> int:
        return hash(self._value)
