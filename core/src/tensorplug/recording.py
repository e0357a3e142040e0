"""A recording: one differentiation that is under way in a frame."""

from __future__ import annotations

__all__ = ["Recording"]


class Recording:
    """Marks a frame in which calls leave nodes behind.

    ``parent`` is the recording around it, or None: nested differentiations form a chain.
    """

    __slots__ = ("parent",)

    def __init__(self, parent: Recording | None = None) -> None:
        self.parent = parent
