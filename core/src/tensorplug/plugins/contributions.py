"""What a plugin hands over, checked as a whole before any of it is registered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tensorplug.contract.backend import Backend, DeviceInfo
from tensorplug.contract.dtypes import DType
from tensorplug.contract.tables import (
    DecompositionEntry,
    DecompositionTable,
    GradientEntry,
    GradientTable,
    KernelEntry,
    KernelTable,
)
from tensorplug.engine.registry import Registry
from tensorplug.errors import RegistrationError
from tensorplug.plugins.loading import guarded, refused
from tensorplug.tensors import methods

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.owner import Owner
    from tensorplug.plugins.loading import Loader, Plugin
    from tensorplug.plugins.metadata import Claim

__all__ = [
    "Rules",
    "check_backend",
    "device_infos",
    "kernels",
    "register_rules",
    "rehearsal",
    "rules",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rules:
    """What a plugin brings that does not depend on a device."""

    gradients: tuple[GradientEntry, ...]
    decompositions: tuple[DecompositionEntry, ...]
    chained: tuple[Callable[..., Any], ...]


def kernels(loader: Loader, plugin: Plugin, backend: Backend) -> tuple[KernelTable, ...]:
    """Return the plugin's kernel tables for ``backend``.

    Raises:
        PluginLoadError: its hook raised.
        RegistrationError: it returned something else than tables of kernels.

    """
    tables = _ask(loader, plugin, "tensorplug_kernels", KernelTable, backend=backend)
    for table in tables:
        _entries(plugin.claim, table, KernelEntry)
    return tuple(tables)


def rules(loader: Loader, plugin: Plugin) -> Rules:
    """Return the plugin's gradients, decompositions and chained ops.

    Raises: as ``kernels``.
    """
    gradients = _ask(loader, plugin, "tensorplug_gradients", GradientTable)
    decompositions = _ask(loader, plugin, "tensorplug_decompositions", DecompositionTable)
    chained: list[Callable[..., Any]] = _ask(loader, plugin, "tensorplug_chained_ops", object)
    for function in chained:
        _check_chained(plugin.claim, function)
    claim = plugin.claim
    return Rules(
        tuple(entry for table in gradients for entry in _entries(claim, table, GradientEntry)),
        tuple(
            entry
            for table in decompositions
            for entry in _entries(claim, table, DecompositionEntry)
        ),
        tuple(chained),
    )


def _ask(loader: Loader, plugin: Plugin, hook: str, kind: type[T], **arguments: Any) -> list[Any]:
    items: list[Any] = []
    for result in loader.call(plugin, hook, **arguments):
        if isinstance(result, KernelTable | GradientTable | DecompositionTable | str):
            raise refused(
                plugin.claim,
                f"{hook} returned a {type(result).__name__}; it must return an "
                f"iterable of {kind.__name__}s, such as a list of one",
            )
        if not isinstance(result, Iterable):
            raise refused(plugin.claim, f"{hook} returned {result!r}, which is no iterable")
        # A generator runs the plugin's code only now.
        items += guarded(plugin.claim, f"in {hook}", partial(list, result))
    for item in items:
        if not isinstance(item, kind):
            raise refused(
                plugin.claim,
                f"{hook} gave {item!r}, a {type(item).__name__}; it must give {kind.__name__}s",
            )
    return items


def _entries(claim: Claim, table: Any, kind: type[T]) -> list[T]:
    entries: list[T] = guarded(claim, "while its tables were read", partial(list, table))
    for entry in entries:
        if not isinstance(entry, kind):
            raise refused(claim, f"{table!r} holds {entry!r}, which is no {kind.__name__}")
    return entries


def check_backend(claim: Claim, backend: Any) -> None:
    """Check that what a plugin created is a ``Backend`` under its entry point's name.

    Raises:
        RegistrationError: saying what is missing or wrong.

    """
    what = f"the backend it created, a {type(backend).__name__},"
    members = [name for name in vars(Backend) if not name.startswith("_")]
    lacks = [name for name in members if not hasattr(backend, name)]
    if lacks:
        raise RegistrationError(
            f"{what} lacks {', '.join(lacks)}; tensorplug.plugin.Backend says what it must have"
        )
    for name in members:
        is_property = isinstance(vars(Backend)[name], property)
        if not is_property and not callable(getattr(backend, name)):
            raise RegistrationError(f"{what} has a {name} that cannot be called")
    if backend.name != claim.name:
        raise RegistrationError(
            f"{what} calls itself {backend.name!r}, but its entry point is {claim.name!r}"
        )
    dtypes = backend.dtypes
    if not isinstance(dtypes, frozenset) or not all(isinstance(dtype, DType) for dtype in dtypes):
        raise RegistrationError(
            f"{what} has dtypes {dtypes!r}; it must be a frozenset of tensorplug's dtypes"
        )
    if not isinstance(backend.device, str):
        raise RegistrationError(f"{what} has device {backend.device!r}; it must be a text")


def device_infos(claim: Claim, given: Any) -> list[DeviceInfo]:
    """Return what a plugin says of its devices.

    Raises:
        RegistrationError: it is something else than descriptions of devices.

    """
    items = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(item, DeviceInfo) for item in items):
        raise RegistrationError(
            f"tensorplug_devices of {claim} returned {given!r}; it must return a sequence of "
            "tensorplug.plugin.DeviceInfo"
        )
    return items


def rehearsal(registry: Registry) -> Registry:
    """Return a registry with the same contents, to try additions on."""
    copy = Registry(registry.state.specs.values())
    copy.state = registry.state
    return copy


def register_rules(registry: Registry, owner: Owner, rules: Rules) -> None:
    """Put rules into force, all or none: in the registry, and as methods of ``Tensor``.

    Methods are the whole process's; engines built later find them there already.

    Raises:
        RegistrationError: one is registered already, or Tensor has another such method.

    """
    handle = registry.add(owner, gradients=rules.gradients, decompositions=rules.decompositions)
    try:
        methods.attach(rules.chained)
    except RegistrationError:
        handle.remove()
        raise


def _check_chained(claim: Claim, function: Any) -> None:
    if not getattr(function, "__tensorplug_chained__", False) or not callable(function):
        raise refused(
            claim, f"tensorplug_chained_ops gave {function!r}, which is no op marked @chained"
        )
