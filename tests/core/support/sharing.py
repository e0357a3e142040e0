"""A backend of tests that shares the host's memory, beside one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tests.core.support import engines

if TYPE_CHECKING:
    from tensorplug.engine.engine import Engine


class SharingBackend(engines.MemoryBackend):
    """Buffers are arrays, and those of others too."""

    def allocation(self, buffer: np.ndarray) -> tuple[int, int]:
        while isinstance(buffer.base, np.ndarray):
            buffer = buffer.base
        return buffer.ctypes.data, buffer.nbytes

    def share_from_host(self, array: np.ndarray) -> np.ndarray:
        self._check()
        return array

    def share_to_host(self, buffer: np.ndarray) -> np.ndarray:
        self._check()
        return buffer


def make() -> Engine:
    """Return an engine whose active backend is "sharing"; "memory" is the other one."""
    return engines.make(("sharing", "memory"), kinds={"sharing": SharingBackend})
