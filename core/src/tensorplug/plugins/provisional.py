"""Registrations by code of a plugin that is being loaded: undone if loading fails.

A plugin may call ``tensorplug.register_kernel`` in its module or in a hook. If that code raises
later, nothing of the plugin may remain.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.engine.registry import Handle


_handles: Final[ContextVar[list[Handle] | None]] = ContextVar("tensorplug.handles", default=None)


def handles() -> list[Handle] | None:
    """Return the list to which registrations of this thread or task belong; None for none."""
    return _handles.get()


@contextmanager
def undone_on_failure() -> Iterator[None]:
    """Undo, if the block raises, what this thread or task has registered in it."""
    made: list[Handle] = []
    token = _handles.set(made)
    try:
        yield
    except BaseException:
        for handle in reversed(made):
            handle.remove()
        raise
    finally:
        _handles.reset(token)
