"""The hooks through which tensorplug finds this backend: the two that a backend needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.errors import BackendUnavailableError
from tensorplug.contract.hooks import hookimpl

from tensorplug_acme.backend import AcmeBackend
from tensorplug_acme.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorplug.contract.backend import Backend
    from tensorplug.contract.tables import KernelTable


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    """Open a device, the first if ``None``; raise ``BackendUnavailableError`` if there is none."""
    if device not in (None, "0"):  # REPLACE: ask the driver, and say what the user can do
        raise BackendUnavailableError(f"there is device 0 only, and no {device!r}")
    return AcmeBackend()


@hookimpl
def tensorplug_kernels() -> Iterable[KernelTable]:
    """Return the kernels. A backend plugin is asked for its own backend only."""
    return (kernels,)
