"""Whether values that are equal are also alike: 1 equals True and 1.0, but is not like them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_NUMBERS: Final = (float, complex, np.generic, np.ndarray)
_WHOLE: Final = (int, str, bytes, type)
"""Classes whose equal instances differ in nothing but their class."""


def are_alike(a: Any, b: Any) -> bool:
    """Return whether equal values are of the same classes in all their parts.

    Zeros must have the same sign. The parts of an object are its members or its attributes.
    Attributes that are not equal do not count: the object's class has decided that. Of an object
    without attributes, such as a ``Decimal``, the parts are what pickle stores.
    """
    return _are_alike(a, b, set())


def _are_alike(a: Any, b: Any, above: set[tuple[int, int]]) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, _NUMBERS):
        x, y = np.asarray(a), np.asarray(b)
        return x.dtype == y.dtype and x.tobytes() == y.tobytes()
    pair = (id(a), id(b))
    if a is b or isinstance(a, _WHOLE) or pair in above:
        return True
    above.add(pair)
    attributes = _attributes(a)
    if attributes:
        others = _attributes(b)
        parts = [(attributes[name], others[name]) for name in attributes.keys() & others.keys()]
        if not all(_are_alike(x, y, above) for x, y in parts if _are_equal(x, y)):
            return False
    members: Iterable[tuple[Any, Any]]
    if isinstance(a, list | tuple):
        members = zip(a, b, strict=False)
    elif isinstance(a, dict | set | frozenset):
        members = _partners(a, b)
    elif attributes:
        return True
    else:
        members = zip(_stored(a), _stored(b), strict=False)
        return all(_are_equal(x, y) and _are_alike(x, y, above) for x, y in members)
    return all(_are_alike(x, y, above) for x, y in members if _are_equal(x, y))


def _are_equal(a: Any, b: Any) -> bool:
    """Return whether two parts are equal; False for tensors, whose data are not asked for."""
    if hasattr(a, "_placement") or hasattr(b, "_placement"):
        return a is b
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(np.all(a == b))


def _partners(a: Any, b: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the equal members of sets, or the equal keys of dicts and their values."""
    own = {key: key for key in b}
    for key in a:
        if key in own:
            yield key, own[key]
            if isinstance(a, dict):
                yield a[key], b[key]


def slots_of(kind: type) -> Sequence[str]:
    """Return the names of the attributes in the slots of one class, without those of its bases."""
    slots: Any = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else slots
    owner = kind.__name__.lstrip("_")
    return [
        f"_{owner}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    ]


def _attributes(value: Any) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in slots_of(kind)]
    return {
        **{name: getattr(value, name) for name in slots if hasattr(value, name)},
        **getattr(value, "__dict__", {}),
    }


def _stored(value: Any) -> tuple[Any, ...]:
    """Return what pickle stores of an object; () for one that it refuses."""
    try:
        stored = value.__reduce_ex__(2)
    except TypeError:
        return ()
    return stored if isinstance(stored, tuple) else ()
