"""What is installed, read from metadata alone: no plugin module is imported here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import importlib_metadata
from packaging.utils import canonicalize_name

from tensorplug.contract.owner import Owner
from tensorplug.engine import notices
from tensorplug.errors import PluginWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from importlib_metadata import EntryPoint

__all__ = [
    "BACKENDS",
    "CORE",
    "EXTENSIONS",
    "PLUGIN_NAME",
    "RESERVED",
    "BackendInfo",
    "Claim",
    "ExtensionInfo",
    "Given",
    "State",
    "claims",
    "core_version",
]

CORE: Final = "tensorplug"
BACKENDS: Final = "tensorplug.backends"
EXTENSIONS: Final = "tensorplug.extensions"

# In `opencl:1` and `dist:name` the colon separates, in the environment the comma.
PLUGIN_NAME: Final = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?", re.ASCII)

# These mean something else where a backend is named: the engine's choice, the host's memory.
RESERVED: Final = ("auto", "host")

State = Literal["available", "loaded", "failed", "incompatible", "conflict", "disabled"]


@dataclass(frozen=True, slots=True)
class Given:
    """Stands in for the entry point of a plugin that the running program hands over."""

    plugin: Any
    value: str

    def load(self) -> Any:
        """Return the plugin."""
        return self.plugin


@dataclass(frozen=True, slots=True)
class Claim:
    """One entry point of one installed distribution: its claim to a plugin name.

    ``distribution`` is normalised (``tensorplug-acme``); ``requires`` are the distribution's
    requirements as metadata writes them. ``priority`` orders the backends among which the
    engine chooses; what is installed has 0.
    """

    group: str
    name: str
    distribution: str
    version: str
    entry: EntryPoint | Given
    requires: tuple[str, ...] = ()
    priority: int = 0

    @property
    def owner(self) -> Owner:
        """Who owns what this plugin registers."""
        return Owner(self.distribution, self.version)

    @property
    def installed(self) -> bool:
        """Whether it comes from an installed distribution, not from the running program."""
        return not isinstance(self.entry, Given)

    @property
    def kind(self) -> str:
        """``"backend"`` or ``"extension"``, for messages."""
        return "backend" if self.group == BACKENDS else "extension"

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} of {self.owner}"


@dataclass(frozen=True, slots=True)
class BackendInfo:
    """One installed backend, as ``tp.backends()`` lists it.

    ``state``: ``available`` (not imported yet), ``loaded``, ``failed``, ``incompatible``
    (requires another core), ``conflict`` (two distributions claim the name) or ``disabled``.
    ``detail`` says why where there is something to say.
    """

    name: str
    distribution: str
    version: str
    state: State
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ExtensionInfo(BackendInfo):
    """One installed extension: ops, gradients, kernels for other people's backends."""


def core_version() -> str:
    """Return the installed core's version, from its metadata.

    Raises:
        importlib_metadata.PackageNotFoundError: when the core is not installed as a
            distribution; then no plugin can be checked against it.

    """
    return importlib_metadata.version(CORE)


def claims() -> tuple[Claim, ...]:
    """Return every claim to a backend or extension name, sorted by name and distribution.

    A distribution whose metadata cannot be read is left out with a ``PluginWarning``.
    """
    found: dict[tuple[str, str, str], Claim] = {}
    for candidate in importlib_metadata.distributions():
        try:
            if not _mentions_us(candidate):
                continue
            name = canonicalize_name(candidate.metadata["Name"])
            # The first of that name on the path counts: it is what imports find.
            for claim in _claims_of(name, importlib_metadata.distribution(name)):
                found[claim.group, claim.name, claim.distribution] = claim
        except Exception as error:  # noqa: BLE001  # whatever is wrong with one, the rest is listed
            where = getattr(candidate, "_path", None) or candidate.locate_file("")
            notices.warn(
                f"the metadata of the distribution at {where} cannot be read and its plugins "
                f"are left out: {type(error).__name__}: {error}",
                PluginWarning,
            )
    return tuple(found[key] for key in sorted(found))


def _mentions_us(distribution: Any) -> bool:
    return f"[{CORE}." in (distribution.read_text("entry_points.txt") or "")


def _claims_of(name: str, distribution: Any) -> Iterator[Claim]:
    if not _mentions_us(distribution):
        return
    described = distribution.metadata  # read and parsed at each access
    version = described["Version"]
    requires = tuple(described.get_all("Requires-Dist") or distribution.requires or ())
    for entry in distribution.entry_points:
        if entry.group in (BACKENDS, EXTENSIONS):
            if not PLUGIN_NAME.fullmatch(entry.name):
                raise ValueError(
                    f"a plugin cannot be called {entry.name!r}; its name must be of letters, "
                    "digits and, between them, . _ and -"
                )
            if entry.group == BACKENDS and entry.name in RESERVED:
                raise ValueError(f"a backend cannot be called {entry.name!r}, which is reserved")
            yield Claim(entry.group, entry.name, name, version, entry, requires)
