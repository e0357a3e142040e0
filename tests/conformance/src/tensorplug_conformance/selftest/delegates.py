"""Backends that hand every call to another, on which the wrong ones are built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.algorithms import loop_bodies
    from tensorplug.plugin import Backend
    from tensorplug_conformance.case import Array


class Delegate:
    """Passes every call on to the clean backend."""

    def __init__(self, clean: Backend) -> None:
        self.clean = clean

    def __getattr__(self, name: str) -> Any:
        return getattr(self.clean, name)

    def compile_loop(self, body: loop_bodies.LoopBody) -> Callable[..., Any] | None:  # noqa: ARG002  # of the protocol
        """Decline all loops, so that their steps run what is wrong."""
        return None


class Remote(Delegate):
    """Does not share its buffers with the host."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("share_"):
            raise AttributeError(name)
        return getattr(self.clean, name)


class Unguarded:
    """Memory that ``write`` overwrites, whatever loans are alive."""

    def __init__(self, array: Array, write: Callable[[Array, Any, Any], bool]) -> None:
        self._array = np.array(array)
        self._write = write

    def lend(self) -> Array:
        """Return a view of the memory."""
        return self._array.view()

    def overwrite(self, key: Any, value: Any) -> bool:
        """Call ``write``."""
        return self._write(self._array, key, value)
