"""A recording: one differentiation in progress in a context."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from tensorplug.autodiff.moves import MoveNode
from tensorplug.autodiff.tape import record

if TYPE_CHECKING:
    from collections.abc import Mapping


Watched = tuple[Any, Any]  # a variable, and the tensor that reads of it return

_NOTHING: Final[Mapping[int, Watched]] = MappingProxyType({})


class Recording:
    """Marks a context in which calls are recorded.

    ``parent`` is the enclosing recording, or None: nested differentiations form a chain.
    ``watched`` holds the differentiated variables by identity. The variable itself does not
    hold its node, because two threads may differentiate with respect to it at the same time.
    """

    __slots__ = ("parent", "watched")

    def __init__(
        self, parent: Recording | None = None, watched: Mapping[int, Watched] = _NOTHING
    ) -> None:
        self.parent: Recording | None = parent
        self.watched: Mapping[int, Watched] = watched

    record: Final = staticmethod(record)
    moved: Final = staticmethod(MoveNode)

    def reading(self, variable: object) -> Any:
        """Return the tensor that reads of ``variable`` return; None if it is not watched."""
        recording: Recording | None = self
        while recording is not None:
            watched_pair = recording.watched.get(id(variable))
            if watched_pair is not None:
                return watched_pair[1]
            recording = recording.parent
        return None
