"""The installed plugins, read from metadata alone: no plugin is imported here."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

import importlib_metadata
from packaging.utils import canonicalize_name

from tensorplug.contract.owner import Owner
from tensorplug.errors import PluginWarning
from tensorplug.system import notices
from tensorplug.system.foreign_text import cause_of, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from importlib_metadata import EntryPoint


CORE: Final = "tensorplug"
BACKENDS: Final = "tensorplug.backends"
EXTENSIONS: Final = "tensorplug.extensions"

# The rule for distributions. A colon separates in `opencl:1` and `dist:name`, a comma in
# environment variables.
PLUGIN_NAME: Final = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?", re.ASCII)

_OURS: Final = re.compile(rf"^\s*\[\s*{CORE}", re.IGNORECASE | re.MULTILINE)  # also misspelt
_SIMILARITY: Final = 0.85  # at most 1, for groups of entry points

# In place of a backend's name, these mean the engine's choice and the host's memory.
RESERVED: Final = ("auto", "host")

State = Literal["available", "loaded", "failed", "incompatible", "conflict", "disabled"]


@dataclass(frozen=True, slots=True)
class ProgramEntry:
    """Takes the place of an entry point for a plugin object that the running program registers."""

    plugin: Any
    value: str

    def load(self) -> Any:
        """Return the plugin."""
        return self.plugin


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate for a plugin name: one entry point of one installed distribution.

    ``group`` may be a misspelling of one of ours; then it belongs to no group, and only messages
    mention it.

    ``distribution`` is normalised (``tensorplug-acme``); ``requires`` are the distribution's
    requirements as metadata writes them. ``priority`` orders the backends among which the
    engine chooses; installed backends have priority 0.
    """

    group: str
    name: str
    distribution: str
    version: str
    entry: EntryPoint | ProgramEntry
    requires: tuple[str, ...] = ()
    priority: int = 0

    @property
    def owner(self) -> Owner:
        """The owner of everything that this plugin registers."""
        return Owner(self.distribution, self.version)

    @property
    def installed(self) -> bool:
        """Whether it comes from an installed distribution, and not from the running program."""
        return not isinstance(self.entry, ProgramEntry)

    @property
    def where(self) -> str:
        """The distribution, the entry point and its group, for messages."""
        return f"{self.owner} has the entry point {self.name!r} in the group {self.group!r}"

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
    (requires another core), ``conflict`` (two distributions have the name) or ``disabled``.
    ``detail`` says why, where there is more to say.
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
    """Return the core's version, from its metadata; if a program is packed without, its own."""
    try:
        return importlib_metadata.version(CORE)
    except importlib_metadata.PackageNotFoundError:
        return str(vars(sys.modules[CORE])["__version__"])


def candidates() -> tuple[Candidate, ...]:
    """Return the candidates for all backend and extension names, sorted by name and distribution.

    A distribution whose metadata cannot be read is left out with a ``PluginWarning``.
    """
    by_key: dict[tuple[str, str, str], Candidate] = {}
    for distribution in importlib_metadata.distributions():
        try:
            if not _mentions_us(distribution):
                continue
            written = distribution.metadata["Name"]
            if not PLUGIN_NAME.fullmatch(written):  # the rule for both
                raise ValueError(f"{written!r} cannot be the name of a distribution")
            name = canonicalize_name(written)
            # The first distribution of that name on the path counts: imports find that one.
            for candidate in _candidates_of(name, importlib_metadata.distribution(name)):
                by_key[candidate.group, candidate.name, candidate.distribution] = candidate
        except Exception as error:  # noqa: BLE001  # the others are still listed
            where = getattr(distribution, "_path", None) or distribution.locate_file("")
            notices.warn(
                f"the metadata of the distribution at {where} cannot be read and its plugins "
                f"are left out: {cause_of(error)}",
                PluginWarning,
            )
    return tuple(by_key[key] for key in sorted(by_key))


def _mentions_us(distribution: Any) -> bool:
    return _OURS.search(distribution.read_text("entry_points.txt") or "") is not None


def _candidates_of(name: str, distribution: Any) -> Iterator[Candidate]:
    if not _mentions_us(distribution):
        return
    described = distribution.metadata  # parsed again at each access
    version = printable(described["Version"])
    requires = tuple(described.get_all("Requires-Dist") or distribution.requires or ())
    for entry in distribution.entry_points:
        meant = meant_group(entry.group)
        if meant is not None:
            if not PLUGIN_NAME.fullmatch(entry.name):
                raise ValueError(
                    f"{entry.name!r} cannot be the name of a plugin: use letters and digits, with "
                    ". _ and - between them"
                )
            if entry.group == BACKENDS and entry.name in RESERVED:
                raise ValueError(
                    f"{entry.name!r} is reserved, and cannot be the name of a backend"
                )
            candidate = Candidate(entry.group, entry.name, name, version, entry, requires)
            if meant != entry.group:
                notices.warn(
                    f"{candidate.where}, did you mean {meant!r}? It is left out", PluginWarning
                )
            yield candidate


@lru_cache(64)  # a distribution may have thousands of entry points in one group
def meant_group(group: str) -> str | None:
    """Return our group of entry points with this name or a similar one, or None."""
    plain = _plain(group)
    for ours in (BACKENDS, EXTENSIONS):
        alike = abs(len(plain) - len(_plain(ours))) < 3
        if alike and SequenceMatcher(None, plain, _plain(ours)).ratio() > _SIMILARITY:
            return ours
    return None


def _plain(group: str) -> str:
    return re.sub(r"[\W_]", "", group).lower()
