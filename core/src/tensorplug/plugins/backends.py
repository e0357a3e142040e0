"""The backends of the engine in use: which is active, which are known, which are open."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tensorplug.contract.arguments import is_text, quoted
from tensorplug.contract.backend import DeviceInfo
from tensorplug.dispatch.blocks import ContextBlock
from tensorplug.dispatch.context import current_context
from tensorplug.dispatch.device import device_name
from tensorplug.dispatch.exits import Exit
from tensorplug.engine.current import current_engine
from tensorplug.engine.devices import split_name
from tensorplug.errors import (
    ArgumentError,
    BackendNotInstalledError,
    BackendUnavailableError,
    RegistrationError,
    TensorplugError,
)

if TYPE_CHECKING:
    from tensorplug.contract.backend import Backend
    from tensorplug.contract.tables import KernelTable
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.plugins.discovery import BackendInfo


def backends() -> list[BackendInfo]:
    """Return the installed backends: name, distribution, version, state and detail.

    This reads the metadata of installed distributions and imports no plugin.

    Examples:
        >>> "cpu" in [backend.name for backend in tp.backends()]
        True

    """
    from tensorplug.plugins import discovery  # importlib_metadata is loaded at first use

    return discovery.backends()


@runtime_checkable
class TakesBackends(Protocol):
    """An engine's source of backends in which the running program can register more."""

    def register(self, name: str, plugin: Any, priority: int) -> None:
        """Take a plugin object as the backend ``name``."""

    def unregister(self, name: str) -> bool:
        """Forget the backend ``name`` if it was registered so; return whether it was."""


def set_backend(name: str) -> None:
    """Make a backend the active one for the whole process.

    ``name``: ``"opencl"``, ``"opencl:1"`` for one of its devices, or ``"auto"`` for the engine's
    own choice. Threads and tasks inside ``use_backend`` keep theirs. Tensors of other backends
    stay where they are and are copied when a kernel needs them. Calls with committed tensors
    (``device=``, ``to``) run where these are. A device that its backend knows to be lost is
    removed, as by ``remove_backend``, and opened anew.

    Raises:
        BackendNotInstalledError, BackendUnavailableError, PluginLoadError,
        PluginVersionError, PluginCollisionError: the active backend stays as it was.

    Examples:
        >>> tp.set_backend("cpu")
        >>> tp.ones(2).device
        'cpu'
        >>> tp.set_backend("auto")  # the engine's own choice again

    """
    engine = current_engine()
    engine.devices.activate(
        engine.devices.open_preferred() if is_text(name, "auto") else _open_usable(engine, name)
    )


def _open_usable(engine: Engine, name: str) -> Device:
    from tensorplug.memory import removal  # the first device opens without it

    return removal.open_usable(engine, name)


class use_backend(ContextBlock):  # noqa: N801  # a context manager, called like a function
    """Make a backend the active one inside a ``with`` block, in this thread or task only.

    ``name``: of a backend, or of one of its devices (``"opencl:1"``).

    A thread that starts inside has the backend of the process, unless it runs in a copy of this
    context: ``contextvars.copy_context().run``, ``asyncio.to_thread``.

    Raises, when entered:
        RuntimeError: this object is already entered, here or in another thread.
        BackendNotInstalledError, BackendUnavailableError, PluginLoadError,
        PluginVersionError, PluginCollisionError: as ``set_backend``.

    Examples:
        >>> with tp.use_backend("cpu") as name:
        ...     print(name, tp.ones(2).device)
        cpu cpu

    """

    __slots__ = ("_device", "_name")

    _device: Device

    def __init__(self, name: str) -> None:
        super().__init__("use_backend")
        self._name = name

    def __enter__(self) -> str:
        device = self._device = _open_usable(current_engine(), self._name)
        self._enter()
        return device.name

    @Exit
    def __exit__(self, *_error: object) -> None:
        self._leave()

    def _derive(self, below: Context) -> Context:
        """Return ``below`` with the device of this block."""
        return below.replace(device=self._device)


def register_backend(
    name: str,
    plugin: Any,
    *,
    kernels: Iterable[KernelTable] = (),
    priority: int = 0,
) -> None:
    """Register a backend in the running program, without a distribution.

    Args:
        name: the name for ``set_backend``.
        plugin: a function ``create(device)`` or ``create()`` that opens a device and returns a
            ``tensorplug.plugin.Backend``; or an object with hook functions, like the module of
            an entry point.
        kernels: tables of its kernels; only if ``plugin`` is a function.
        priority: if no backend is set, the one of highest priority that opens becomes the active
            one. Installed backends have 0, and ``cpu`` comes first among equals.

    The backend opens at first use. ``remove_backend`` undoes the registration.

    Raises:
        RegistrationError: the name is taken, or a hook is invalid.
        ArgumentError: the name is invalid, or there are ``kernels`` beside an object.

    Examples:
        >>> class Twin(type(tp.find_backend("cpu"))):
        ...     name = "twin"
        >>> tp.register_backend("twin", Twin)
        >>> with tp.copy_registered_kernels("cpu", "twin"), tp.use_backend("twin"):
        ...     print((tp.asarray([1.0, 2.0]) * 2).device)
        twin
        >>> tp.remove_backend("twin")

    """
    from tensorplug.plugins.function_plugin import FunctionPlugin  # pluggy is loaded at first use

    if not isinstance(kernels, Iterable):
        raise ArgumentError(
            f"register_backend: kernels must be tables of kernels, got {quoted(kernels)}"
        )
    if callable(plugin) and not inspect.ismodule(plugin):
        plugin = FunctionPlugin(name, plugin, kernels)
    elif next(iter(kernels), None) is not None:
        raise ArgumentError(
            f"register_backend: {quoted(plugin)} is not a function; return the kernels from its "
            "hook tensorplug_kernels"
        )
    source = current_engine().devices.source
    if not isinstance(source, TakesBackends):
        raise RegistrationError(f"the engine in use takes backends from {source!r} only")
    source.register(name, plugin, priority)


def find_backend(name: str) -> Backend | None:
    """Return the backend object of a device, which is opened if necessary.

    None if no such backend is installed, or its hardware is missing. Raises as ``set_backend`` if
    it is broken.

    ``name``: of a backend, or of one of its devices (``"opencl:1"``).

    Examples:
        >>> tp.find_backend("cpu").name
        'cpu'
        >>> tp.find_backend("abacus") is None
        True

    """
    try:
        return current_engine().devices.open(name).backend
    except (BackendNotInstalledError, BackendUnavailableError):
        return None


def remove_backend(name: str) -> None:
    """Close a backend, all its devices or one (``"opencl:1"``), and free its memory.

    Its live tensors first move to the host's memory (``x.device`` is then ``"host"``): they stay
    readable, on the tape too, and kernels copy them to their own device. Other threads should
    not use them meanwhile. Tensors that cannot be read back, because the device is lost, stay
    closed, with a ``BackendWarning``; another one reports what closing the backend raised.

    A backend of ``register_backend`` is forgotten. An installed one can be opened again, which is
    how to recover from a lost device. If it was active, the engine chooses another when it needs
    one. In a forked child, devices of the parent process are forgotten, and the backend can be
    opened anew; the parent's tensors on them stay closed.

    Raises:
        BackendNotInstalledError: no installed backend has this name.
        ArgumentError: the device is not open.

    Examples:
        >>> class Twin(type(tp.find_backend("cpu"))):
        ...     name = "twin"
        >>> tp.register_backend("twin", Twin)
        >>> x = tp.asarray([1.0, 2.0]).to("twin")
        >>> tp.remove_backend("twin")
        >>> x.device, x.tolist()
        ('host', [1.0, 2.0])

    """
    from tensorplug.memory import removal

    engine = current_engine()
    source = engine.devices.source
    removed = removal.remove(engine, name)
    forgotten = ":" not in name and isinstance(source, TakesBackends) and source.unregister(name)
    if not (removed or forgotten or name in source.names()):
        source.devices(name)  # raises what asking for it raises


def devices(backend: str | None = None) -> dict[str, DeviceInfo]:
    """Return the devices by the names that ``set_backend`` takes.

    Args:
        backend: only the devices of this one. Without it, all installed backends are asked, and
            those that fail are left out (``backends()`` says why).

    This loads the plugins. It opens a device only if its plugin does not list its devices.

    Raises: as ``set_backend``, if ``backend`` is given.

    Examples:
        >>> list(tp.devices("cpu"))
        ['cpu']

    """
    engine = current_engine()
    if backend is not None:
        split_name(backend)  # refuses what is not text
        return _devices_of(engine, backend)
    infos: dict[str, DeviceInfo] = {}
    for name in engine.devices.source.names():
        try:
            infos.update(_devices_of(engine, name))
        except TensorplugError:
            continue  # backends() shows the error
    return infos


def _devices_of(engine: Engine, name: str) -> dict[str, DeviceInfo]:
    listed = engine.devices.source.devices(name)
    if listed is None:
        opened = engine.devices.open(name).backend
        listed = [DeviceInfo(opened.device, dtypes=opened.dtypes)]
    return {device_name(name, at): info for at, info in enumerate(listed)}


def get_backend() -> str:
    """Return the name of the active backend; open one if there is none yet.

    Examples:
        >>> with tp.use_backend("cpu"):
        ...     tp.get_backend()
        'cpu'

    """
    return current_engine().devices.of(current_context()).name


def describe_device() -> str:
    """Return the backend's description of the active device.

    Examples:
        >>> tp.describe_device()
        'NumPy ...'

    """
    return current_engine().devices.of(current_context()).backend.device


def synchronize() -> None:
    """Wait until the active backend has finished all submitted work.

    Raises:
        DeviceError: some of it failed: ``DeviceFaultError``, ``BackendMemoryError``,
            ``DeviceLostError``, or the device did not answer: ``DeviceTimeoutError``.

    Examples:
        >>> y = tp.ones((100, 100)) @ tp.ones((100, 100))
        >>> tp.synchronize()  # y has been computed

    """
    current_engine().devices.of(current_context()).synchronize()


def trim_memory(backend: str | None = None) -> int:
    """Free memory that backends keep for reuse.

    Args:
        backend: only this one, or one of its devices (``"opencl:1"``).

    Returns:
        The number of bytes freed.

    Raises:
        ArgumentError: the device is not open.

    Examples:
        >>> tp.trim_memory("cpu") >= 0
        True

    """
    engine = current_engine()
    open_devices = (
        engine.devices.listed() if backend is None else engine.devices.find_open(backend)
    )
    return sum(device.capabilities.trim() for device in open_devices if device.capabilities.trim)
