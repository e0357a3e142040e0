"""What a trial of a case may end with, other than success."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorplug_conformance.case import Presentation


class WrongResultError(Exception):
    """A case went wrong; the text says how."""


class PresentationError(Exception):
    """A case went wrong in one of its presentations; the cause says how."""

    def __init__(self, presentation: Presentation) -> None:
        super().__init__(presentation.id)
        self.presentation = presentation


class DeclinedError(Exception):
    """The backend's kernel declined this call, and the row asks for that kernel."""
