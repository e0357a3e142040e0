"""What a plugin contributes, checked as a whole before any of it is registered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tensorplug.contract import capabilities
from tensorplug.contract.backend import Backend, DeviceInfo
from tensorplug.contract.dtypes import DType
from tensorplug.contract.entries import DecompositionEntry, KernelEntry
from tensorplug.contract.rule_entries import BatchingEntry, GradientEntry, TangentEntry
from tensorplug.contract.rules import BatchingTable, GradientTable, RuleTable, TangentTable
from tensorplug.contract.tables import DecompositionTable, KernelTable, Table
from tensorplug.engine.registry import Registry
from tensorplug.errors import RegistrationError
from tensorplug.plugins.loader import call_guarded, refusal
from tensorplug.system.foreign_text import shown
from tensorplug.tensors import methods

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.owner import Owner
    from tensorplug.plugins.loader import Loader, Plugin
    from tensorplug.plugins.metadata import Candidate


T = TypeVar("T")


_ANY_RULE: Final = GradientEntry | TangentEntry | BatchingEntry
_RULES: Final = (  # hooks, the tables that they return, and what these contain
    ("tensorplug_rules", RuleTable, _ANY_RULE),
    ("tensorplug_gradients", GradientTable, GradientEntry),
    ("tensorplug_tangents", TangentTable, TangentEntry),
    ("tensorplug_batching", BatchingTable, BatchingEntry),
)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a plugin contributes independently of a device."""

    rules: tuple[GradientEntry | TangentEntry | BatchingEntry, ...]
    decompositions: tuple[DecompositionEntry, ...]
    chained: tuple[Callable[..., Any], ...]


def collect_kernels(loader: Loader, plugin: Plugin, backend: Backend) -> tuple[KernelTable, ...]:
    """Return the plugin's kernel tables for ``backend``.

    Raises:
        PluginLoadError: its hook raised.
        RegistrationError: it returned anything other than kernel tables.

    """
    tables = _collect(loader, plugin, "tensorplug_kernels", KernelTable, backend=backend)
    for table in tables:
        _entries(plugin.candidate, table, KernelEntry)
    return tuple(tables)


def collect_rules(loader: Loader, plugin: Plugin) -> Rules:
    """Return the plugin's rules, decompositions and chained ops.

    Raises: as ``collect_kernels``.
    """
    tables = [
        (entry, table)
        for hook, kind, entry in _RULES
        for table in _collect(loader, plugin, hook, kind)
    ]
    decompositions = _collect(loader, plugin, "tensorplug_decompositions", DecompositionTable)
    chained: list[Callable[..., Any]] = _collect(loader, plugin, "tensorplug_chained_ops", object)
    for function in chained:
        _check_chained(plugin.candidate, function)
    candidate = plugin.candidate
    return Rules(
        tuple(entry for kind, table in tables for entry in _entries(candidate, table, kind)),
        tuple(
            entry
            for table in decompositions
            for entry in _entries(candidate, table, DecompositionEntry)
        ),
        tuple(chained),
    )


def _collect(
    loader: Loader, plugin: Plugin, hook: str, kind: type[T], **arguments: Any
) -> list[Any]:
    items: list[Any] = []
    for result in loader.call(plugin, hook, **arguments):
        if isinstance(result, Table | str):
            raise refusal(
                plugin.candidate,
                f"{hook} returned a {type(result).__name__}; it must return an "
                f"iterable of {kind.__name__}s, such as a list of one",
            )
        if not isinstance(result, Iterable):
            raise refusal(
                plugin.candidate, f"{hook} returned {shown(result)}, which is not iterable"
            )
        # A generator runs code of the plugin here.
        items += call_guarded(plugin.candidate, f"in {hook}", partial(list, result))
    for item in items:
        if not isinstance(item, kind):
            raise refusal(
                plugin.candidate,
                f"{hook} returned {shown(item)}, a {type(item).__name__}, not {kind.__name__}s",
            )
    return items


def _entries(candidate: Candidate, table: Any, kind: Any) -> list[Any]:
    entries: list[Any] = call_guarded(
        candidate, "while its tables were read", partial(list, table)
    )
    for entry in entries:
        if not isinstance(entry, kind):
            raise refusal(
                candidate,
                f"{shown(table)} contains {shown(entry)}, which is not a {kind.__name__}",
            )
    return entries


def check_backend(candidate: Candidate, backend: Any) -> None:
    """Check that a plugin created a ``Backend`` with its entry point's name.

    Raises:
        RegistrationError: with what is missing or wrong.

    """
    what = f"its backend object, a {type(backend).__name__},"
    members = [name for name in vars(Backend) if not name.startswith("_")]
    lacks = [name for name in members if not hasattr(backend, name)]
    if lacks:
        raise RegistrationError(f"{what} lacks {', '.join(lacks)}, see tensorplug.plugin.Backend")
    for name in members:
        is_property = isinstance(vars(Backend)[name], property)
        if not is_property and not callable(getattr(backend, name)):
            raise RegistrationError(f"{what} has a {name} that is not callable")
    if backend.name != candidate.name:
        raise RegistrationError(
            f"{what} has the name {backend.name!r}, but its entry point is {candidate.name!r}"
        )
    dtypes = backend.dtypes
    if not isinstance(dtypes, frozenset) or not all(isinstance(dtype, DType) for dtype in dtypes):
        raise RegistrationError(
            f"{what} has dtypes {dtypes!r}; it must be a frozenset of tensorplug's dtypes"
        )
    if not isinstance(backend.device, str):
        raise RegistrationError(f"{what} has device {backend.device!r}; it must be a string")
    capabilities.of(backend)  # the engine reads them; they may raise here, with the plugin's name


def device_infos(candidate: Candidate, returned: Any) -> list[DeviceInfo]:
    """Return what a plugin's hook returned, checked to be descriptions of devices.

    Raises:
        RegistrationError: it is anything else.

    """
    infos = list(returned) if isinstance(returned, Iterable) else [returned]
    if not all(isinstance(info, DeviceInfo) for info in infos):
        listed = ", ".join(map(shown, infos))
        raise RegistrationError(
            f"tensorplug_devices of {candidate} returned {listed}; it must return a "
            "sequence of tensorplug.plugin.DeviceInfo"
        )
    return infos


def copied_registry(registry: Registry) -> Registry:
    """Return a registry with the same contents, on which additions can be tried."""
    copy = Registry(registry.state.specs.values())
    copy.state = registry.state
    return copy


def register_rules(registry: Registry, owner: Owner, rules: Rules) -> None:
    """Register rules, all or none, in the registry and as methods of ``Tensor``.

    Methods belong to the whole process; for engines built later they exist already.

    Raises:
        RegistrationError: a rule is registered already, or Tensor has another such method.

    """
    handle = registry.add(
        owner,
        rules=rules.rules,
        decompositions=rules.decompositions,
    )
    try:
        methods.attach(rules.chained)
    except RegistrationError:
        handle.remove()
        raise


def _check_chained(candidate: Candidate, function: Any) -> None:
    if not getattr(function, "__tensorplug_chained__", False) or not callable(function):
        raise refusal(
            candidate,
            f"tensorplug_chained_ops returned {shown(function)}, which is not an op marked "
            "@chained",
        )
