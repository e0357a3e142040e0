"""The hooks through which tensorplug finds the backend ``remote``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Backend, KernelTable, hookimpl
from tensorplug_remote import kernels, settings
from tensorplug_remote.backend import RemoteBackend

if TYPE_CHECKING:
    from collections.abc import Iterable


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    """Connect to a server: ``remote:host:port``, or the number of one in the environment.

    Raises:
        BackendUnavailableError: none is named, nobody answers, or one side refuses the other.
        SettingsError: an environment variable holds what it does not allow.

    """
    return RemoteBackend(settings.find_address(device))


@hookimpl
def tensorplug_kernels(backend: RemoteBackend) -> Iterable[KernelTable]:
    """Return the kernels of the server. The core asks for this backend only."""
    return (kernels.table_for(backend),)
