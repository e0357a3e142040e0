"""What is open: an engine's devices, how they are chosen, opened and closed.

A device is asked for by name: ``"opencl"``, or ``"opencl:1"`` for another of its devices.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from tensorplug.device import Device
from tensorplug.errors import (
    ArgumentError,
    BackendClosedError,
    BackendNotInstalledError,
    TensorplugError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.backend import Backend
    from tensorplug.dispatch import Frame
    from tensorplug.registry import Owner, Registry
    from tensorplug.tables import KernelTable

__all__ = ["BackendSource", "Devices", "Opened"]


@dataclass(frozen=True, slots=True)
class Opened:
    """What a source gives for a backend that it opened: kernels with the owner of each table."""

    backend: Backend
    owner: Owner
    kernels: tuple[tuple[Owner, KernelTable], ...]


class BackendSource(Protocol):
    """Where an engine's backends come from: the installed plugins, or a test's own."""

    def names(self) -> Sequence[str]:
        """Return the names that can be asked for, the preferred one first."""

    def open(self, name: str, device: str | None) -> Opened:
        """Open a backend.

        Raises:
            BackendNotInstalledError, BackendUnavailableError, PluginLoadError,
            PluginVersionError, PluginCollisionError: each saying what to do.

        """


class Devices:
    """The devices that are open, one of which is active.

    Args:
        source: gives the backends.
        registry: takes the kernels of those that are opened.
        prefer: backend names to try first, in order, when none was set.

    """

    def __init__(
        self, source: BackendSource, registry: Registry, prefer: Sequence[str] = ()
    ) -> None:
        self.source = source
        self.registry = registry
        self._prefer = tuple(prefer)
        self._lock = threading.RLock()
        self._devices: dict[str, Device] = {}
        self._registered: set[str] = set()  # the backends whose kernels were taken
        self._active: Device | None = None
        self._followers: WeakSet[Frame] = WeakSet()
        registry.on_change(self._forget_plans)

    @property
    def device(self) -> Device:
        """The process-wide active device, opened at first use."""
        return self._active or self._choose()

    def _choose(self) -> Device:
        with self._lock:
            if self._active is None:
                self.set_device(self._first_that_opens())
            assert self._active is not None
            return self._active

    def _first_that_opens(self) -> Device:
        names = self._prefer or self.source.names()
        if not names:
            raise BackendNotInstalledError(
                "no backend is installed. Try: pip install tensorplug-cpu"
            )
        refused: list[TensorplugError] = []
        for name in names:
            try:
                return self.open(name)
            except TensorplugError as error:
                refused.append(error)
        if len(refused) == 1:
            raise refused[0]
        listed = "\n".join(f"- {error}" for error in refused)
        raise type(refused[0])(f"none of the backends could be opened:\n{listed}")

    def device_of(self, frame: Frame) -> Device:
        """Return the device on which kernels run in ``frame``.

        Raises:
            BackendClosedError: a ``use_backend`` around it names one closed since.

        """
        device = frame.device or self.device
        if device.closed:
            raise BackendClosedError(f"backend {device.name!r} is in use here, but was closed")
        return device

    def set_device(self, device: Device) -> None:
        """Make ``device`` the process-wide active one.

        Raises:
            BackendClosedError: it was closed since it was opened, by another thread perhaps.

        """
        with self._lock:
            if device.closed:
                raise BackendClosedError(f"backend {device.name!r} was closed")
            self._active = device
            for frame in self._followers:
                frame.plans = device.plans

    def follow(self, frame: Frame) -> None:
        """Keep ``frame.plans`` those of the active device, now and when it changes."""
        with self._lock:
            self._followers.add(frame)
            if self._active is not None:
                frame.plans = self._active.plans

    def open(self, name: str) -> Device:
        """Return the open device called ``name`` (``"opencl"`` or ``"opencl:1"``), opening it.

        Raises:
            ArgumentError: ``name`` is no text, or ends with a colon. Besides, what
                ``BackendSource.open`` raises.

        """
        if not isinstance(name, str):
            raise ArgumentError(f"a backend is asked for by name, such as 'cpu', not {name!r}")
        found = self._devices.get(name)
        if found is not None:
            return found
        backend_name, colon, number = name.partition(":")
        if colon and not number:
            raise ArgumentError(f"{name!r} names no device after the colon")
        with self._lock:
            if name not in self._devices:
                opened = self.source.open(backend_name, number or None)
                self._register(backend_name, opened)
                self._devices[name] = Device(name, backend_name, opened.backend, opened.owner)
            return self._devices[name]

    def _register(self, backend_name: str, opened: Opened) -> None:
        if backend_name in self._registered:
            return  # for another device of that backend, or for one since closed
        handles = []
        try:
            for owner, table in opened.kernels:
                pairs = [(backend_name, entry) for entry in table]
                handles.append(self.registry.add(owner, kernels=pairs))
        except TensorplugError:
            for handle in handles:
                handle.remove()
            opened.backend.close()
            raise
        self._registered.add(backend_name)

    def close(self, name: str) -> None:
        """Close the device called ``name``; its tensors raise from now on."""
        with self._lock:
            device = self._devices.pop(name, None)
            if device is None:
                raise ArgumentError(f"no open device is called {name!r}")
            if self._active is device:  # first, so that who asks now gets another one
                self._active = None
                for frame in self._followers:
                    frame.plans = {}
            device.closed = True
            device.forget_plans()
            self._forget_plans()  # those of other devices that fall back to this one
            device.constants.clear()
            device.backend.close()

    def devices(self) -> list[Device]:
        """Return the open devices."""
        return list(self._devices.values())

    def fallback_devices(self, home: Device) -> Iterator[Device]:
        """Yield devices of other backends, open ones first, then those that open now."""
        tried = {home.backend_name}
        for device in self.devices():
            if device.backend_name not in tried:
                tried.add(device.backend_name)
                yield device
        for name in self.source.names():
            if name not in tried:
                tried.add(name)
                try:
                    yield self.open(name)
                except TensorplugError:
                    continue  # listed with its own error by backends() and doctor

    def _forget_plans(self) -> None:
        for device in self.devices():
            device.forget_plans()
