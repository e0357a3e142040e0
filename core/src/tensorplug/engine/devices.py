"""What is open: an engine's devices, how they are chosen, opened and closed.

A device is asked for by name: ``"opencl"``, ``"opencl:1"`` for another of its devices, or
``"opencl:nvidia"`` for the first whose description holds that text. A backend's own name means
its device 0, so that ``"opencl"`` and ``"opencl:0"`` are one device under one name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakSet

from tensorplug.dispatch.device import Device, device_name
from tensorplug.dispatch.locks import Lock
from tensorplug.engine import kernel_setup, notices
from tensorplug.engine.distributions import INSTALL
from tensorplug.engine.host_device import open_host
from tensorplug.errors import (
    ArgumentError,
    BackendClosedError,
    BackendNotInstalledError,
    BackendUnavailableError,
    BackendWarning,
    TensorplugError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.contract.backend import Backend, DeviceInfo
    from tensorplug.contract.owner import Owner
    from tensorplug.contract.tables import KernelTable
    from tensorplug.dispatch.context import Context
    from tensorplug.engine.registry import Handle, Registry

__all__ = ["BackendSource", "Devices", "Opened", "split_name"]


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

    def devices(self, name: str) -> Sequence[DeviceInfo] | None:
        """Return what devices a backend has, number 0 first; None if only opening one tells.

        Raises: as ``open``.
        """

    def open(self, name: str, device: str | None) -> Opened:
        """Open a device of a backend; None means number 0.

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
        self._lock = Lock()
        self._devices: dict[str, Device] = {}
        self._registered: dict[str, list[Handle]] = {}  # by backend, what opening it registered
        self.host = open_host()  # takes what a removed backend held
        self._forked: set[str] = set()  # backends that the parent process uses
        self._active: Device | None = None
        self._followers: WeakSet[Context] = WeakSet()
        registry.on_change(self._changed)
        _living.add(self)

    @property
    def active(self) -> Device:
        """The process-wide active device, opened at first use."""
        return self._active or self._choose()

    def _choose(self) -> Device:
        with self._lock:
            if self._active is None:
                self.activate(self.preferred())
            assert self._active is not None
            return self._active

    def preferred(self) -> Device:
        """Return the device that is used where none was chosen: the first that opens.

        Raises: what opening the only one raised; of several, an error that names all.
        """
        names = self._preferred()
        if not names:
            raise BackendNotInstalledError(f"no backend is installed. Try: {INSTALL['cpu']}")
        refused: list[TensorplugError] = []
        for name in names:
            try:
                device = self.open(name)
            except TensorplugError as error:
                refused.append(error)
                continue
            for item in refused:
                notices.warn(
                    f"{device.name!r} is used, because a preferred backend does not open: {item}",
                    BackendWarning,
                )
            return device
        if len(refused) == 1:
            raise refused[0]
        listed = "\n".join(f"- {error}" for error in refused)
        raise type(refused[0])(f"none of the backends could be opened:\n{listed}")

    def _preferred(self) -> list[str]:
        """Return the names to try in order; ``auto`` among them stands for all the others."""
        names: dict[str, None] = {}
        for name in self._prefer or ("auto",):
            names.update(dict.fromkeys(self.source.names() if name == "auto" else (name,)))
        return list(names)

    def of(self, context: Context) -> Device:
        """Return the device on which kernels run in ``context``.

        Raises:
            BackendClosedError: it was closed since it was chosen.

        """
        device = context.device or self.active
        if device.closed:
            raise BackendClosedError(
                f"backend {device.name!r} is in use here, but it {device.fate}"
            )
        return device

    def activate(self, device: Device) -> None:
        """Make ``device`` the process-wide active one.

        Raises:
            BackendClosedError: it was closed since it was opened, by another thread perhaps.

        """
        with self._lock:
            if device.closed:
                raise BackendClosedError(f"backend {device.name!r} {device.fate}")
            self._active = device
            for context in self._followers:
                context.plans = device.plans

    def follow(self, context: Context) -> None:
        """Keep ``context.plans`` those of the active device, now and when it changes."""
        with self._lock:
            self._followers.add(context)
            if self._active is not None:
                context.plans = self._active.plans

    def open(self, name: str) -> Device:
        """Return the open device called ``name``, opening it if need be.

        Raises:
            ArgumentError: ``name`` is no text, ends with a colon, or is ``"host"``.
            BackendUnavailableError: no device of that backend matches it.
            BackendClosedError: this is a forked child, whose parent used that backend. Besides,
                what ``BackendSource.open`` raises.

        """
        backend_name, selector = split_name(name)
        if backend_name == self.host.name:
            raise ArgumentError(
                f"{name!r} is the host's memory, where tensors can be but no kernel runs"
            )
        found = self._devices.get(name)
        if found is not None:
            return found
        with self._lock:
            number = self._number(backend_name, selector)
            full = device_name(backend_name, number)
            if full not in self._devices:
                self._devices[full] = self._open_new(full, backend_name, number)
            return self._devices[full]

    def named(self, name: str) -> Device:
        """Return the device called ``name``, which may be the host's memory."""
        return self.host if name == self.host.name else self.open(name)

    def _number(self, backend_name: str, selector: str) -> str | None:
        """Return which device is meant, as the source takes it: None for number 0."""
        if not selector:
            return None
        if selector.isdecimal():
            return _as_asked(int(selector))
        listed = self.source.devices(backend_name)
        if listed is None:
            return selector  # the plugin's own business
        pattern = selector.casefold()
        for number, info in enumerate(listed):
            if pattern in f"{info.hardware} {info.driver}".casefold():
                return _as_asked(number)
        known = "; ".join(f"{number}: {info.hardware}" for number, info in enumerate(listed))
        raise BackendUnavailableError(
            f"no device of backend {backend_name!r} matches {selector!r}. Devices are {known}"
        )

    def _open_new(self, name: str, backend_name: str, number: str | None) -> Device:
        if backend_name in self._forked:
            raise BackendClosedError(f"backend {backend_name!r} {FORKED}")
        opened = self.source.open(backend_name, number)
        handles: list[Handle] = []
        try:
            if backend_name not in self._registered:  # else by another device, or one since closed
                for owner, table in opened.kernels:
                    pairs = [(backend_name, entry) for entry in table]
                    handles.append(self.registry.add(owner, kernels=pairs))
            device = Device(name, backend_name, opened.backend, opened.owner, self.host)
            kernel_setup.update(device, self.registry.state)
        except BaseException:
            _undo(handles)
            opened.backend.close()
            raise
        self._registered.setdefault(backend_name, handles)
        return device

    def find_open(self, name: str) -> list[Device]:
        """Return the open devices that ``name`` means: all of a backend, or one of them.

        Raises:
            ArgumentError: it names one device, and that is not open.

        """
        backend_name, selector = split_name(name)
        of_backend = [device for device in self.listed() if device.backend_name == backend_name]
        if not selector:
            return of_backend
        full = device_name(backend_name, self._number(backend_name, selector))
        found = [item for item in of_backend if item.name == full]
        if not found:
            raise ArgumentError(f"no open device is called {name!r}")
        return found

    def close(self, name: str) -> None:
        """Close the device called ``name``; its tensors raise from now on."""
        with self._lock:
            device = self._devices.get(name)
            if device is None:
                raise ArgumentError(f"no open device is called {name!r}")
            self.unlist(device)
            self.finish(device, "was closed")

    def unlist(self, device: Device) -> None:
        """Let nobody find ``device`` any more; what uses it already may go on."""
        with self._lock:
            self._devices.pop(device.name, None)
            if self._active is device:
                self._active = None
                for context in self._followers:
                    context.plans = {}

    def finish(self, device: Device, fate: str) -> None:
        """Close an unlisted device; ``fate`` is what those who still use it are told."""
        with self._lock:
            device.retire(fate)
            self._forget_plans()  # those of other devices that fall back to this one
            device.constants.clear()
            try:
                kernel_setup.clear(device)
            finally:
                device.backend.close()

    def unregister(self, backend_name: str) -> None:
        """Take out the kernels that opening a backend has registered."""
        with self._lock:
            _undo(self._registered.pop(backend_name, []))

    def listed(self) -> list[Device]:
        """Return the open devices."""
        return list(self._devices.values())

    def fallback_devices(self, home: Device) -> Iterator[Device]:
        """Yield devices of other backends, open ones first, then those that open now."""
        tried = {home.backend_name}
        for device in self.listed():
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

    def _changed(self) -> None:
        """Follow a change of the registry."""
        self._forget_plans()
        for device in self.listed():
            kernel_setup.update(device, self.registry.state)

    def _forget_plans(self) -> None:
        for device in self.listed():
            device.forget_plans()

    def forked(self) -> None:
        """Retire, in a forked child, what does not survive that; called in the child only."""
        for name, device in list(self._devices.items()):
            if not device.capabilities.survives_fork:
                del self._devices[name]
                self._forked.add(device.backend_name)
                device.retire(FORKED)
                _inherited.append(device)  # letting go of it might call a driver that hangs
        if self._active is not None and self._active.closed:
            # It stays the active one, so that nothing moves to another backend unasked.
            for context in self._followers:
                context.plans = {}
        self._forget_plans()


def _as_asked(number: int) -> str | None:
    """Return a device's number as a source takes it."""
    return str(number) if number else None


def split_name(name: object) -> tuple[str, str]:
    """Return backend and selector of a device's name: ``("opencl", "1")``.

    Raises:
        ArgumentError: it is no text, or ends with a colon.

    """
    if not isinstance(name, str):
        raise ArgumentError(f"a backend is asked for by name, such as 'cpu', not {name!r}")
    backend_name, colon, selector = name.partition(":")
    if colon and not selector:
        raise ArgumentError(f"{name!r} names no device after the colon")
    return backend_name, selector


def _undo(handles: Sequence[Handle]) -> None:
    for handle in reversed(handles):
        handle.remove()


FORKED: Final = (
    "was opened by the parent process, and a forked child cannot use it. Start processes with "
    "multiprocessing's 'spawn' method, or first use the backend in the child"
)
_living: Final[WeakSet[Devices]] = WeakSet()
_inherited: Final[list[Device]] = []


def _in_child() -> None:
    for item in list(_living):
        item.forked()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_in_child)
