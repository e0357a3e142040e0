"""A recording: one differentiation that is under way in a context."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from tensorplug.autodiff.tape import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.autodiff.tape import Recorded
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["Recording", "Watched"]

Watched = tuple[Any, Any]  # a variable, and the tensor as which it is read meanwhile

_NOTHING: Final[Mapping[int, Watched]] = MappingProxyType({})


class Recording:
    """Marks a context in which calls leave nodes behind.

    ``parent`` is the recording around it, or None: nested differentiations form a chain.
    ``watched`` holds the variables that are being differentiated, by identity. A variable's
    place on the tape stands here and not in the variable, because two threads may
    differentiate with respect to one variable at the same time.
    """

    __slots__ = ("parent", "watched")

    def __init__(
        self, parent: Recording | None = None, watched: Mapping[int, Watched] = _NOTHING
    ) -> None:
        self.parent = parent
        self.watched = watched

    def record(self, plan: Recorded, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
        """Tie the outputs of a call to the tape."""
        record(plan, inputs, outputs)

    def reading(self, variable: object) -> Any:
        """Return the tensor as which ``variable`` is read here; None if it is not watched."""
        recording: Recording | None = self
        while recording is not None:
            found = recording.watched.get(id(variable))
            if found is not None:
                return found[1]
            recording = recording.parent
        return None
