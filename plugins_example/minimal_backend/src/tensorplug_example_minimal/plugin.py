"""The two hooks that a backend needs, through which tensorplug finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Backend, BackendUnavailableError, KernelTable, hookimpl

from tensorplug_example_minimal.backend import MinimalBackend
from tensorplug_example_minimal.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Iterable


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    """Open a device, the first if ``None``; raise ``BackendUnavailableError`` if there is none."""
    if device not in (None, "0"):  # REPLACE: ask the driver, and tell the user what to do
        raise BackendUnavailableError(f"there is no device {device!r}, only device 0")
    return MinimalBackend()


@hookimpl
def tensorplug_kernels() -> Iterable[KernelTable]:
    """Return the kernels. The core asks a backend plugin for its own backend only."""
    return (kernels,)
