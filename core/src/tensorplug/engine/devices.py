"""The devices of an engine: choosing, opening and closing them.

A device has a name: ``"opencl"``, ``"opencl:1"`` for another of its devices, or
``"opencl:nvidia"`` for the first whose description contains that text. A backend's own name
means its device 0: ``"opencl"`` and ``"opencl:0"`` are the same device.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.arguments import quoted
from tensorplug.dispatch.device import Device, device_name
from tensorplug.dispatch.locks import Lock
from tensorplug.dispatch.weak import WeakObjects
from tensorplug.engine import kernel_setup
from tensorplug.engine.host_device import open_host
from tensorplug.errors import (
    ArgumentError,
    BackendClosedError,
    BackendNotInstalledError,
    BackendUnavailableError,
    BackendWarning,
    TensorplugError,
)
from tensorplug.system import notices
from tensorplug.system.distributions import backend_cure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.dispatch.context import Context
    from tensorplug.engine.backend_source import BackendSource
    from tensorplug.engine.registry import Handle, Registry


class Devices:
    """The open devices, one of which is active.

    Args:
        source: of the backends.
        registry: for the kernels of opened backends.
        prefer: backend names to try first, in order, if none was set.
        wait_limit: the most seconds for which a call waits for a device; None: without limit.

    """

    def __init__(
        self,
        source: BackendSource,
        registry: Registry,
        prefer: Sequence[str] = (),
        wait_limit: float | None = None,
    ) -> None:
        self.source = source
        self.registry = registry
        self._prefer = tuple(prefer)
        self.wait_limit = wait_limit
        self._reported: set[str] = set()  # preferred names that no plugin has
        self._lock = Lock()
        self._devices: dict[str, Device] = {}
        self._registered: dict[str, list[Handle]] = {}  # the registrations of opened backends
        self.host: Device = open_host()
        self._forked: dict[str, list[str]] = {}  # devices of the parent process, by backend
        self._active: Device | None = None
        self._followers: WeakObjects[Context] = WeakObjects()
        registry.on_change(self._changed)
        _living.add(self)

    @property
    def active(self) -> Device:
        """The process-wide active device, opened at first use."""
        return self._active or self._choose()

    def _choose(self) -> Device:
        with self._lock:
            if self._active is None:
                self.activate(self.open_preferred())
            assert self._active is not None
            return self._active

    def open_preferred(self) -> Device:
        """Open the default device: the first preferred one that opens.

        Raises: the error of the only candidate, or an error that lists those of all.
        """
        names = self._preferred()
        if not names:
            raise BackendNotInstalledError(f"no backend is installed. {backend_cure('cpu')}")
        refused: list[TensorplugError] = []
        for name in names:
            try:
                device = self.open(name)
            except TensorplugError as error:
                refused.append(error)
                continue
            for refusal in refused:
                notices.warn(
                    f"using {device.name!r}, because a preferred backend does not open: {refusal}",
                    BackendWarning,
                )
            self._report_unknown(names[names.index(name) + 1 :], device)
            return device
        if len(refused) == 1:
            raise refused[0]
        listed = "\n".join(f"- {error}" for error in refused)
        raise type(refused[0])(f"none of the backends could be opened:\n{listed}")

    def _report_unknown(self, names: Sequence[str], device: Device) -> None:
        """Warn of misspelt names, once, although a name before them works."""
        for name in (name for name in names if name in {*self._prefer} - self._reported):
            reason = self.source.explain_unknown(name.partition(":")[0])
            if reason:
                self._reported.add(name)
                also = f"using {device.name!r}; TENSORPLUG_BACKEND also names {name!r}, but"
                notices.warn(f"{also} {reason}", BackendWarning)

    def _preferred(self) -> list[str]:
        """Return the names to try in order; ``auto`` means all installed backends."""
        names: dict[str, None] = {}
        for name in self._prefer or ("auto",):
            names.update(dict.fromkeys(self.source.names() if name == "auto" else (name,)))
        return list(names)

    def of(self, context: Context) -> Device:
        """Return the device on which kernels run in ``context``.

        A context keeps its device by name: where it was lost, another may be open by now.

        Raises:
            BackendClosedError: it was closed.
            DeviceTimeoutError: it has not answered.

        """
        device = context.device or self._active or self._choose()
        if device.closed:
            device = self._devices.get(device.name, device)
        if device.silent:
            raise device.timeout_error()
        if device.closed:
            raise BackendClosedError(
                f"backend {device.name!r} is the active one, but it {device.fate}"
            )
        return device

    def activate(self, device: Device) -> None:
        """Make ``device`` the process-wide active one.

        Raises:
            BackendClosedError: it was closed, perhaps by another thread.

        """
        with self._lock:
            if device.closed:
                raise BackendClosedError(f"backend {device.name!r} {device.fate}")
            self._active = device
            # `dispatch` reads plans from the context and never asks which device is active.
            for context in self._followers:
                context.plans, _ = device.caches(context.autocast)

    def follow(self, context: Context) -> None:
        """Set ``context.plans`` to those of the active device, now and when it changes."""
        with self._lock:
            self._followers.add(context)
            if self._active is not None:
                context.plans, _ = self._active.caches(context.autocast)

    def open(self, name: str) -> Device:
        """Return the device called ``name``, opening it if necessary.

        Raises:
            ArgumentError: ``name`` is not text, ends with a colon, or is ``"host"``.
            BackendUnavailableError: no device of that backend matches ``name``.
            BackendClosedError: this is a forked child, whose parent used that backend. Also the
                errors of ``BackendSource.open``.

        """
        backend_name, selector = split_name(name)
        if backend_name == self.host.name:
            raise ArgumentError(
                f"{name!r} is host memory, which can hold tensors but cannot run kernels"
            )
        # Without the lock, which another thread may hold for seconds while it opens a device.
        device = self._devices.get(name)
        if device is not None:
            return device
        with self._lock:
            number = self._number(backend_name, selector)
            full = device_name(backend_name, number)
            if full not in self._devices:
                self._devices[full] = self._open_new(full, backend_name, number)
            return self._devices[full]

    def named(self, name: Any) -> Device:
        """Return the device called ``name``, which may be the host."""
        return self.host if isinstance(name, str) and name == self.host.name else self.open(name)

    def _number(self, backend_name: str, selector: str) -> str | None:
        """Return the number of a device as ``BackendSource.open`` expects it: None for 0."""
        if not selector:
            return None
        if selector.isdecimal():
            return _number_text(int(selector))
        listed = self.source.devices(backend_name)
        if listed is None:
            return selector  # left to the plugin
        pattern = selector.casefold()
        for number, info in enumerate(listed):
            if pattern in f"{info.hardware} {info.driver}".casefold():
                return _number_text(number)
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
            if backend_name not in self._registered:  # else another device has registered them
                for owner, table in opened.kernels:
                    pairs = [(backend_name, entry) for entry in table]
                    self.registry.add(owner, kernels=pairs, into=handles)
            device = Device(name, backend_name, opened.backend, opened.owner, self.host)
            device.wait_limit = self.wait_limit
            kernel_setup.update(device, self.registry.state)
            self._registered.setdefault(backend_name, handles)
        except BaseException:
            _undo(handles)
            if self._registered.get(backend_name) is handles:
                del self._registered[backend_name]
            opened.backend.close()
            raise
        return device

    def find_open(self, name: str) -> list[Device]:
        """Return the open devices of a backend, or the one called ``name``.

        Raises:
            ArgumentError: it names a device that is not open.

        """
        backend_name, selector = split_name(name)
        of_backend = [device for device in self.listed() if device.backend_name == backend_name]
        if not selector:
            return of_backend
        full = device_name(backend_name, self._number(backend_name, selector))
        matching = [device for device in of_backend if device.name == full]
        if not matching:
            raise ArgumentError(f"no open device is called {name!r}")
        return matching

    def close(self, name: str) -> None:
        """Close the device called ``name``; its tensors raise from now on."""
        with self._lock:
            device = self._devices.get(name)
            if device is None:
                raise ArgumentError(f"no open device is called {name!r}")
            self.unlist(device)
            self.finish(device, "was closed")

    def unlist(self, device: Device) -> None:
        """Remove ``device`` from the open devices, without closing it."""
        with self._lock:
            if self._devices.get(device.name) is device:
                del self._devices[device.name]
            if self._active is device:
                self._active = None
                # Without plans, calls take the slow path, which opens a device or says why not.
                for context in self._followers:
                    context.plans = {}

    def finish(self, device: Device, fate: str) -> None:
        """Close an unlisted device; later uses raise an error with the text ``fate``."""
        with self._lock:
            device.retire(fate)
            self._forget_plans()  # other devices may fall back to this one
            device.constants.clear()
            # A teardown that fails must not keep the memory of the device.
            try:
                kernel_setup.clear(device)
            finally:
                device.close()

    def forget_parents(self, backend_name: str) -> list[str]:
        """Let this forked child open a backend that its parent uses; return the parent's devices.

        Their tensors stay closed.
        """
        with self._lock:
            active = self._active
            if active is not None and active.closed and active.backend_name == backend_name:
                self.unlist(active)
            return self._forked.pop(backend_name, [])

    def unregister(self, backend_name: str) -> None:
        """Remove the kernels that opening a backend has registered."""
        with self._lock:
            _undo(self._registered.get(backend_name, ()))
            self._registered.pop(backend_name, None)

    def listed(self) -> list[Device]:
        """Return the open devices."""
        return list(self._devices.values())

    def fallback_devices(self, home: Device) -> Iterator[Device]:
        """Yield devices of other backends, open ones first; open the others."""
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
                    continue  # backends() and doctor report the error

    def _changed(self) -> None:
        """Follow a change of the registry."""
        self._forget_plans()
        for device in self.listed():
            kernel_setup.update(device, self.registry.state)

    def _forget_plans(self) -> None:
        for device in self.listed():
            device.forget_plans()

    def forked(self) -> None:
        """Retire the devices that do not survive a fork; called in the forked child."""
        for name, device in list(self._devices.items()):
            if not device.capabilities.survives_fork:
                del self._devices[name]
                self._forked.setdefault(device.backend_name, []).append(name)
                device.retire(FORKED)
                _inherited.append(device)  # freeing it might call a driver that hangs
        if self._active is not None and self._active.closed:
            # It remains the active one: another backend must not replace it silently.
            for context in self._followers:
                context.plans = {}
        self._forget_plans()


def _number_text(number: int) -> str | None:
    return str(number) if number else None


def split_name(name: object) -> tuple[str, str]:
    """Return backend and selector of a device's name: ``("opencl", "1")``.

    Raises:
        ArgumentError: it is not text, or ends with a colon.

    """
    if not isinstance(name, str):
        raise ArgumentError(
            f"the name of a backend must be text, such as 'cpu', got {quoted(name)}"
        )
    backend_name, colon, selector = name.partition(":")
    if colon and not selector:
        raise ArgumentError(f"{name!r} must name a device after the colon")
    return backend_name, selector


def _undo(handles: Sequence[Handle]) -> None:
    for handle in reversed(handles):
        handle.remove()


FORKED: Final = (
    "was opened by the parent process, and a forked child cannot use it, nor the tensors there. "
    "Start processes with the 'spawn' method of multiprocessing, use the backend in the child "
    "only, or open it anew in the child: tp.remove_backend, then tp.set_backend"
)
_living: Final[WeakObjects[Devices]] = WeakObjects()
_inherited: Final[list[Device]] = []


def _in_child() -> None:
    for devices in list(_living):
        devices.forked()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_in_child)
