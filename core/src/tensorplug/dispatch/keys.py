"""Hashable attributes for the keys of plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract.dtypes import DType

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping


# Equal only within their type, and hashable.
_PLAIN: Final = frozenset({bool, int, str, DType, type(None)})
# Compared as text, which distinguishes signed zeros and makes NaNs equal.
_COMPARED_AS_TEXT: Final = (float, complex, np.generic)


def freeze_attributes(attributes: Mapping[str, Any]) -> list[Hashable]:
    """Return names and values in a hashable form, equal only if no kernel could differ.

    1, 1.0 and True are different values, and so are 0.0 and -0.0: they need different plans.

    Raises:
        TypeError: a value is not hashable; such a call has no key.

    """
    try:
        return [
            (name, value.__class__, value) if value.__class__ in _PLAIN else (name, _freeze(value))
            for name, value in attributes.items()
        ]
    except RecursionError:
        raise TypeError("a list is nested too deeply, or contains itself") from None


def _freeze(value: Any) -> Hashable:
    kind = value.__class__
    if kind in _PLAIN:
        return (kind, value)
    if isinstance(value, tuple | list):  # named tuples too
        for member in value:
            if member.__class__ is not int:
                return (kind, *[_freeze(member) for member in value])
        return (kind, int, *value)  # sizes and axes: the most frequent case
    if isinstance(value, _COMPARED_AS_TEXT):
        return (kind, repr(value))
    hash(value)  # raises TypeError if the value is not hashable
    return (kind, value)
