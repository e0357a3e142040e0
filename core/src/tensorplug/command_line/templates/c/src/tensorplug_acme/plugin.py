"""The hooks through which tensorplug finds the backend."""

from __future__ import annotations

from collections.abc import Iterable

from tensorplug.plugin import Backend, BackendUnavailableError, KernelTable, hookimpl

from tensorplug_acme.backend import AcmeBackend
from tensorplug_acme.kernels import kernels


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    """Open a device, the first if ``None``; raise ``BackendUnavailableError`` if there is none."""
    if device is not None and not device.isdecimal():
        raise BackendUnavailableError(f"there is no device {device!r}; devices have numbers")
    return AcmeBackend(int(device or 0))


@hookimpl
def tensorplug_kernels() -> Iterable[KernelTable]:
    """Return the kernels. The core asks a backend plugin for its own backend only."""
    return (kernels,)
