"""Where an engine's backends come from: the installed plugins, or a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.backend import Backend, DeviceInfo
    from tensorplug.contract.owner import Owner
    from tensorplug.contract.tables import KernelTable


@dataclass(frozen=True, slots=True)
class Opened:
    """An opened backend, with its kernel tables and their owners."""

    backend: Backend
    owner: Owner
    kernels: tuple[tuple[Owner, KernelTable], ...]


class BackendSource(Protocol):
    """The source of an engine's backends: the installed plugins, or those of a test."""

    def names(self) -> Sequence[str]:
        """Return the names of the backends, the preferred one first."""

    def explain_unknown(self, name: str) -> str:
        """Return what is wrong with a name that no plugin has; "" if one has it, or elsewhere."""

    def devices(self, name: str) -> Sequence[DeviceInfo] | None:
        """Return the devices of a backend, number 0 first; None if it cannot list them.

        Raises: as ``open``.
        """

    def open(self, name: str, device: str | None) -> Opened:
        """Open a device of a backend; None means number 0.

        Raises:
            BackendNotInstalledError, BackendUnavailableError, PluginLoadError,
            PluginVersionError, PluginCollisionError: with advice in the message.

        """
