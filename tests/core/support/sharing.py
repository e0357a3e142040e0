"""A backend of tests that shares the host's memory, beside one that does not."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.core.support import engines

from tensorplug.engine.engine import Engine, Opened


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


class Source(engines.Source):
    """Opens "sharing" as a ``SharingBackend``."""

    def open(self, name: str, device: str | None) -> Opened:
        opened = super().open(name, device)
        if name != "sharing":
            return opened
        return Opened(SharingBackend(name), opened.owner, opened.kernels)


def make() -> Engine:
    """Return an engine whose active backend is "sharing"; "memory" is the other one."""
    made = engines.make(("sharing", "memory"))
    source: Any = made.devices.source
    made.devices.source = Source(source.tables)
    return made
