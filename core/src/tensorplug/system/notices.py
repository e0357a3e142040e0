"""Warnings that point to the user's code: the innermost line outside this package."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Final

from tensorplug.system.foreign_text import printable

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import FrameType


_PACKAGE: Final = __name__.partition(".")[0]
_CALLERS: Final = ("contextlib", "functools", "pluggy")  # of what is ours


def warn(message: str, category: type[Warning], *, within: Collection[str] = ()) -> None:
    """Issue a warning at the line that called into this package, or into those in ``within``.

    ``message``: its text; ``category``: its class.
    """
    packages = {_PACKAGE, *_CALLERS, *within}
    level = 2  # the caller of this function
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _package_of(frame) in packages:
        frame = frame.f_back
        level += 1
    warnings.warn(printable(message), category, stacklevel=level)


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]
