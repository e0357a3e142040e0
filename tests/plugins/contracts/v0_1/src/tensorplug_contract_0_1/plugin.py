"""The hooks through which tensorplug finds this backend: the two that a backend needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Backend, BackendUnavailableError, KernelTable, hookimpl
from tensorplug_contract_0_1.backend import MinimalBackend
from tensorplug_contract_0_1.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Iterable


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    """Open the only device; raise ``BackendUnavailableError`` for any other ("contract-0-1:1")."""
    if device not in (None, "0"):
        raise BackendUnavailableError(f"there is device 0 only, and no {device!r}")
    return MinimalBackend()


@hookimpl
def tensorplug_kernels() -> Iterable[KernelTable]:
    """Return the primitive kernels. A backend plugin is asked for its own backend only."""
    return (kernels,)
