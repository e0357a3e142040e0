"""Which backend is active, which are known, which are open, for the engine in use."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tensorplug.contract.backend import DeviceInfo
from tensorplug.dispatch.context import ContextGuard, current_context
from tensorplug.dispatch.device import device_name
from tensorplug.engine.current import in_use
from tensorplug.errors import (
    ArgumentError,
    BackendNotInstalledError,
    BackendUnavailableError,
    RegistrationError,
    TensorplugError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorplug.contract.backend import Backend
    from tensorplug.contract.tables import KernelTable
    from tensorplug.engine.engine import Engine
    from tensorplug.plugins.discovery import BackendInfo

__all__ = [
    "backends",
    "describe_device",
    "devices",
    "find_backend",
    "get_backend",
    "register_backend",
    "remove_backend",
    "set_backend",
    "synchronize",
    "trim_memory",
    "use_backend",
]


def backends() -> list[BackendInfo]:
    """Return the installed backends: name, distribution, version, state and detail.

    It reads the metadata of installed distributions and imports no plugin.
    """
    from tensorplug.plugins import discovery  # reading metadata is no work for import time

    return discovery.backends()


@runtime_checkable
class TakesBackends(Protocol):
    """An engine's source of backends that takes further ones from the running program."""

    def register(self, name: str, plugin: Any, priority: int) -> None:
        """Take a plugin object as the backend ``name``."""

    def unregister(self, name: str) -> bool:
        """Forget the backend ``name`` if it was so registered; say whether it was."""


def set_backend(name: str) -> None:
    """Make a backend the active one for the whole process.

    ``name``: ``"opencl"``, ``"opencl:1"`` for one of its devices, or ``"auto"`` for the one that
    the engine uses where none was chosen. Threads and tasks inside a
    ``use_backend`` keep theirs. Tensors of other backends stay where they are and are copied
    when a kernel needs them.

    Raises:
        BackendNotInstalledError, BackendUnavailableError, PluginLoadError,
        PluginVersionError, PluginCollisionError: the active backend stays as it was.

    """
    engine = in_use()
    engine.devices.activate(
        engine.devices.preferred() if name == "auto" else engine.devices.open(name)
    )


class use_backend:  # noqa: N801  # a context manager, called like a function
    """Make a backend the active one inside a ``with`` block, in this thread or task only.

    Raises, when entered:
        RuntimeError: this object is entered already, here or in another thread.
        BackendNotInstalledError, BackendUnavailableError, PluginLoadError,
        PluginVersionError, PluginCollisionError: as ``set_backend``.

    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._entered = ContextGuard("use_backend")

    def __enter__(self) -> str:
        engine = in_use()
        device = engine.devices.open(self._name)
        self._entered.enter(current_context().replace(device=device))
        return device.name

    def __exit__(self, *error: object) -> None:
        self._entered.leave()


def register_backend(
    name: str,
    plugin: Any,
    *,
    kernels: Iterable[KernelTable] = (),
    priority: int = 0,
) -> None:
    """Make a backend known in the running program, without a distribution.

    Args:
        name: what ``set_backend`` will know it by.
        plugin: a function that opens a device, ``create(device)`` or ``create()``, and returns
            a ``tensorplug.plugin.Backend``; or an object with hook functions, as the module
            behind an entry point has them.
        kernels: tables of its kernels; an object with hooks has a hook for them instead.
        priority: where no backend is set, the one of highest priority that opens becomes the
            active one. Installed backends have 0, and ``cpu`` stands first among equals.

    It is opened at first use. ``remove_backend`` undoes this.

    Raises:
        RegistrationError: the name is taken, or a hook does not fit.
        ArgumentError: no backend can be called so, or ``kernels`` go with an object.

    """
    from tensorplug.plugins.function_plugin import FunctionPlugin  # pluggy is loaded at first use

    if callable(plugin) and not inspect.ismodule(plugin):
        plugin = FunctionPlugin(name, plugin, kernels)
    elif list(kernels):
        raise ArgumentError(
            f"register_backend: kernels are given beside {plugin!r}, which is no function; let "
            "its hook tensorplug_kernels return them"
        )
    source = in_use().devices.source
    if not isinstance(source, TakesBackends):
        raise RegistrationError(f"the engine in use takes no backends beside {source!r}")
    source.register(name, plugin, priority)


def find_backend(name: str) -> Backend | None:
    """Return the backend object of a device, opening it if need be.

    None where no such backend is installed, or its hardware is not here. Raises as
    ``set_backend`` where it is broken.
    """
    try:
        return in_use().devices.open(name).backend
    except (BackendNotInstalledError, BackendUnavailableError):
        return None


def remove_backend(name: str) -> None:
    """Close a backend, all its devices or one (``"opencl:1"``), and free what it holds.

    Live tensors on it are moved to the host's memory first (``x.device`` is ``"host"`` then):
    they stay readable, on the tape too, and kernels copy them to their own device. Other
    threads should not use them meanwhile. What cannot be read back, because the device is
    lost, is left closed, with a ``BackendWarning``.

    A backend that ``register_backend`` made known is forgotten; an installed one can be opened
    anew, which is how to recover from a lost device. If it was the active one, the engine
    chooses another when it needs one.

    Raises:
        BackendNotInstalledError: nothing is called so.
        ArgumentError: the device named is not open.

    """
    from tensorplug.memory import removal

    engine = in_use()
    source = engine.devices.source
    removed = removal.remove(engine, name)
    forgotten = ":" not in name and isinstance(source, TakesBackends) and source.unregister(name)
    if not (removed or forgotten or name in source.names()):
        source.devices(name)  # raises what asking for it raises


def devices(backend: str | None = None) -> dict[str, DeviceInfo]:
    """Return what devices there are by the names that ``set_backend`` takes.

    Args:
        backend: restricts the answer to one backend. Without it, all installed backends are
            asked, and those that cannot answer are left out (``backends()`` says why).

    The plugins are loaded. A device is opened only where its plugin does not list them.

    Raises: as ``set_backend``, if ``backend`` is given.
    """
    engine = in_use()
    if backend is not None:
        return _devices_of(engine, backend)
    found: dict[str, DeviceInfo] = {}
    for name in engine.devices.source.names():
        try:
            found.update(_devices_of(engine, name))
        except TensorplugError:
            continue  # backends() lists it with the error
    return found


def _devices_of(engine: Engine, name: str) -> dict[str, DeviceInfo]:
    listed = engine.devices.source.devices(name)
    if listed is None:
        opened = engine.devices.open(name).backend
        listed = [DeviceInfo(opened.device, dtypes=opened.dtypes)]
    return {device_name(name, at): info for at, info in enumerate(listed)}


def get_backend() -> str:
    """Return the name of the active backend; opens one if none was used yet."""
    return in_use().devices.of(current_context()).name


def describe_device() -> str:
    """Return what hardware the active backend runs on, in its own words."""
    return in_use().devices.of(current_context()).backend.device


def synchronize() -> None:
    """Wait until the active backend has finished everything submitted to it."""
    in_use().devices.of(current_context()).backend.synchronize()


def trim_memory(backend: str | None = None) -> int:
    """Give memory that backends keep for reuse back to their devices.

    Args:
        backend: restricts it to one backend, or to one of its devices (``"opencl:1"``).

    Returns:
        How many bytes that were. Backends that keep none give none.

    Raises:
        ArgumentError: the device named is not open.

    """
    engine = in_use()
    found = engine.devices.listed() if backend is None else engine.devices.opened(backend)
    return sum(device.capabilities.trim() for device in found if device.capabilities.trim)
