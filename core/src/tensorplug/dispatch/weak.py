"""Weak collections that run no Python code when a member dies.

The callbacks of ``weakref.WeakSet`` and ``weakref.WeakValueDictionary`` are written in Python. If
Ctrl-C is pressed while one runs, Python prints the KeyboardInterrupt and drops it, and the program
goes on. The interpreter does not interrupt the callbacks here, which are written in C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator


T = TypeVar("T")
K = TypeVar("K", bound="Hashable")


class WeakObjects(Generic[T]):
    """Objects in no order, compared by identity. Threads may add some at the same time."""

    __slots__ = ("_references",)

    def __init__(self) -> None:
        self._references: set[ref[T]] = set()

    def add(self, member: T) -> None:
        """Add ``member``, which must be hashable; a second time does nothing."""
        self._references.add(ref(member, self._references.discard))

    def __iter__(self) -> Iterator[T]:
        """Iterate over the members that are alive now."""
        members = [reference() for reference in list(self._references)]
        return iter([member for member in members if member is not None])


class WeakValues(Generic[K, T]):
    """A dictionary whose values may die. Threads may read it; those that write share a lock.

    Dead entries stay until there are as many as live ones, so that a death costs nothing.
    """

    __slots__ = ("_limit", "_references")

    def __init__(self) -> None:
        self._references: dict[K, ref[T]] = {}
        self._limit = 64

    def get(self, key: K) -> T | None:
        """Return the live value of ``key``; None without one."""
        reference = self._references.get(key)
        return None if reference is None else reference()

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def __setitem__(self, key: K, value: T) -> None:
        if len(self._references) >= self._limit:
            self._sweep()
        self._references.pop(key, None)  # a dead one; the new value comes last in the order
        self._references[key] = ref(value)

    def __delitem__(self, key: K) -> None:
        del self._references[key]

    def values(self) -> list[T]:
        """Return the live values, in the order in which their keys were first set."""
        live = [reference() for reference in list(self._references.values())]
        return [value for value in live if value is not None]

    def _sweep(self) -> None:
        for key, reference in list(self._references.items()):
            # A signal handler may have replaced or removed it meanwhile.
            if reference() is None and self._references.get(key) is reference:
                self._references.pop(key, None)
        self._limit = max(2 * len(self._references), 64)
