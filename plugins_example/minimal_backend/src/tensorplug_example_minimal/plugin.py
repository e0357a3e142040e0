"""The hooks through which tensorplug finds this backend: the two that a backend needs."""

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
    if device not in (None, "0"):  # REPLACE: ask the driver, and say what the user can do
        raise BackendUnavailableError(f"there is device 0 only, and no {device!r}")
    return MinimalBackend()


@hookimpl
def tensorplug_kernels() -> Iterable[KernelTable]:
    """Return the kernels. A backend plugin is asked for its own backend only."""
    return (kernels,)
