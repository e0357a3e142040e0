"""The names of variables that are in use."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from tensorplug.dispatch.locks import Lock
from tensorplug.dispatch.weak import WeakValues
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.contract.spec import TensorType


class Named(Protocol):
    """A variable, as far as its name goes."""

    @property
    def name(self) -> str:
        """The name."""

    @property
    def type(self) -> TensorType:
        """Dtype and shape."""


T = TypeVar("T", bound=Named)


class Names(Generic[T]):
    """The live variables of an engine by name, in the order of their creation.

    References are weak: deleting or disposing of a variable frees its name.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._named: WeakValues[str, T] = WeakValues()
        self._count = itertools.count()

    def listed(self) -> list[T]:
        """Return the live variables, the oldest first."""
        with self._lock:
            return self._named.values()

    def enter(self, variable: T, name: str | None) -> str:
        """Register ``variable`` under ``name``, or under a new name; return the name.

        Raises:
            ArgumentError: another variable has that name.

        """
        with self._lock:
            if name is None:
                name = next(new for new in self._automatic() if new not in self._named)
            other = self._named.get(name)
            if other is not None:
                raise ArgumentError(
                    f"Variable: a live variable ({other.type}) has the name {name!r}. Choose "
                    "another name, or none; or dispose of the old one first: call "
                    "dispose_variables() at the top of a notebook cell that is run again"
                )
            self._named[name] = variable
            return name

    def enter_like(self, variable: T, name: str) -> str:
        """Register ``variable`` under ``name``, with a number appended if that is taken."""
        with self._lock:
            numbered = (f"{name}_{number}" for number in itertools.count(1))
            candidates = itertools.chain((name,), numbered)
            return self.enter(variable, next(new for new in candidates if new not in self._named))

    def remove(self, variable: T) -> None:
        """Free the name of ``variable``."""
        with self._lock:
            if self._named.get(variable.name) is variable:
                del self._named[variable.name]

    def _automatic(self) -> Iterator[str]:
        while True:
            yield f"variable_{next(self._count)}"
