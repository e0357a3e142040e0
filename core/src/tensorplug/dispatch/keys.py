"""Attributes as part of a plan's key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract.dtypes import DType

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

__all__ = ["freeze_attributes"]

# Their text tells signed zeros apart, and makes NaNs equal.
_SPELT: Final = (float, complex, np.generic)


def freeze_attributes(attributes: Mapping[str, Any]) -> list[Hashable]:
    """Return names and values such that only calls that no kernel could tell apart agree.

    1, 1.0 and True are different values, and so are 0.0 and -0.0; a plan made for one must not
    serve another.

    Raises:
        TypeError: when a value cannot be hashed; such a call has no key.

    """
    return [(name, _exact(value)) for name, value in attributes.items()]


def _exact(value: Any) -> Hashable:
    kind = value.__class__
    if kind is bool or kind is int:
        return (kind, value)
    if kind is str or kind is DType or value is None:
        return value  # type: ignore[no-any-return]  # these can be hashed, and equal only their like
    if isinstance(value, tuple | list):  # named tuples too
        return (kind, *[_exact(item) for item in value])
    if isinstance(value, _SPELT):
        return (kind, repr(value))
    hash(value)  # raises where it cannot be part of a key
    return (kind, value)
