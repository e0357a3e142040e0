"""The distribution behind a plugin name: settings, collisions and versions.

Metadata alone decides, before any code of a plugin runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from packaging.utils import canonicalize_name

from tensorplug.engine import settings as environment
from tensorplug.errors import (
    BackendNotInstalledError,
    BackendUnavailableError,
    PluginCollisionError,
    SettingsWarning,
    TensorplugError,
)
from tensorplug.plugins import metadata
from tensorplug.plugins.metadata import BACKENDS, EXTENSIONS, BackendInfo, Candidate, ExtensionInfo
from tensorplug.plugins.requirements import check_version
from tensorplug.system import notices
from tensorplug.system.distributions import BACKENDS as OFFICIAL
from tensorplug.system.distributions import backend_cure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorplug.engine.settings import Settings
    from tensorplug.plugins.metadata import State


_SIMILARITY: Final = 0.7  # at most 1; "gpu" is not similar to "cpu"
_GPUS: Final = frozenset({"gpu", "cuda", "nvidia", "rocm", "hip", "amd", "xpu", "mps", "metal"})

Info = TypeVar("Info", bound=BackendInfo)


@dataclass(frozen=True)
class Selection:
    """The installed candidates, filtered by the settings."""

    candidates: tuple[Candidate, ...]
    settings: Settings = field(default_factory=environment.Settings)
    # Distributions and requirements that the core is known to satisfy.
    _fitting: set[tuple[str, tuple[str, ...]]] = field(
        default_factory=set, init=False, repr=False, compare=False
    )

    @classmethod
    def read(cls, settings: Settings | None = None) -> Selection:
        """Read the metadata of installed plugins, and the settings unless passed."""
        candidates = metadata.candidates()
        if settings is None:
            names = [candidate.name for candidate in candidates if candidate.group == BACKENDS]
            settings = environment.read(backends=names)
        return cls(candidates, settings)

    # Names ----------------------------------------------------------------------------

    def names(self, group: str) -> list[str]:
        """Return the names of ``group`` that the settings allow, the preferred one first.

        They are sorted by priority; among equals, ``cpu`` comes first, because it needs no driver,
        and the others follow by name.
        """
        in_group = [candidate for candidate in self.candidates if candidate.group == group]
        enabled = [candidate for candidate in in_group if not self._disabled_by(candidate)]
        enabled.sort(
            key=lambda candidate: (-candidate.priority, candidate.name != "cpu", candidate.name)
        )
        return list(dict.fromkeys(candidate.name for candidate in enabled))

    def pick(self, group: str, name: str) -> Candidate:
        """Return the only candidate for ``name``, checked against the installed core.

        Raises:
            BackendNotInstalledError: no installed distribution has a plugin of this name.
            BackendUnavailableError: the settings disable it.
            PluginCollisionError: two distributions have one.
            PluginVersionError: it requires another core.

        """
        candidates = self._named(group, name)
        if not candidates:
            raise self._not_installed(name)
        enabled = self._enabled(group, name)
        if not enabled:
            raise BackendUnavailableError(
                f"{candidates[0]} is installed, but {self._disabled_by(candidates[0])}"
            )
        if len(enabled) > 1:
            raise PluginCollisionError(self._collision(enabled))
        required = enabled[0].distribution, enabled[0].requires
        if enabled[0].installed and required not in self._fitting:
            check_version(enabled[0], self._core_version)
            self._fitting.add(required)
        return enabled[0]

    @cached_property
    def _core_version(self) -> str:
        return metadata.core_version()

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], list[Candidate]]:
        by_name: dict[tuple[str, str], list[Candidate]] = {}
        for candidate in self.candidates:
            by_name.setdefault((candidate.group, candidate.name), []).append(candidate)
        return by_name

    def _named(self, group: str, name: str) -> list[Candidate]:
        return self._by_name.get((group, name), [])

    def _enabled(self, group: str, name: str) -> list[Candidate]:
        return [
            candidate for candidate in self._named(group, name) if not self._disabled_by(candidate)
        ]

    def _disabled_by(self, candidate: Candidate) -> str:
        """Return which environment variable disables a candidate, or an empty text."""
        if not self._restricts or not candidate.installed:
            return ""  # the settings concern installed plugins only
        if _is_listed(candidate, self.settings.denied):
            return f"TENSORPLUG_DISABLE_PLUGINS={','.join(self.settings.denied)} disables it"
        if self.settings.allowed is not None:
            if _is_listed(candidate, self.settings.allowed):
                return ""
            return f"TENSORPLUG_PLUGINS={','.join(self.settings.allowed)} leaves it out"
        return "" if self.settings.autoload else "TENSORPLUG_AUTOLOAD=0 disables all plugins"

    @cached_property
    def _restricts(self) -> bool:
        settings = self.settings
        return bool(settings.denied) or settings.allowed is not None or not settings.autoload

    def warn_of_unknown(self) -> None:
        """Warn of names in the settings without an installed plugin.

        Those in ``TENSORPLUG_DISABLE_PLUGINS`` may concern other machines: only a name that looks
        like a misspelt one is reported.
        """
        known = sorted({candidate.name for candidate in self.candidates})
        for variable, names in (
            ("TENSORPLUG_PLUGINS", self.settings.allowed or ()),
            ("TENSORPLUG_DISABLE_PLUGINS", self.settings.denied),
        ):
            for name in names:
                if any(_is_listed(candidate, (name,)) for candidate in self.candidates):
                    continue
                plain = name.rpartition(":")[2]
                near = get_close_matches(plain, known, n=1, cutoff=_SIMILARITY)
                if names is self.settings.denied and (not near or plain in (*OFFICIAL, *known)):
                    continue
                hint = f"did you mean {near[0]}?" if near else f"installed: {', '.join(known)}"
                notices.warn(
                    f"{variable} names {name!r}, but there is no such plugin; {hint}",
                    SettingsWarning,
                )

    # Errors ---------------------------------------------------------------------------

    def explain_unknown(self, name: str) -> str:
        """Return what is wrong with the name of a backend that no plugin has; "" if one has it.

        Also "" for tensorplug's own backends: one setting serves machines with and without them.
        """
        if name in OFFICIAL or self._named(BACKENDS, name):
            return ""
        return str(self._not_installed(name))

    def _not_installed(self, name: str) -> BackendNotInstalledError:
        known = [candidate.name for candidate in self.candidates if candidate.group == BACKENDS]
        installed = f"Installed: {', '.join(self.names(BACKENDS)) or 'none'}"
        if name in metadata.RESERVED or not metadata.PLUGIN_NAME.fullmatch(name):
            hint = _did_you_mean(name, _meant(name, known))
            what = f"{name!r} cannot be the name of a backend."
        else:
            elsewhere = [item for item in self.candidates if item.name == name]
            hint = " ".join(
                f"{item.where}, but backends belong in {BACKENDS!r}." for item in elsewhere
            ) or advice(name, known)
            what = f"backend {name!r} is not installed."
        return BackendNotInstalledError(" ".join(filter(None, (what, hint, installed))))

    def _collision(self, enabled: Sequence[Candidate]) -> str:
        """Return the message, with a cure that keeps the official distribution, if there is one.

        Without one, nothing says which is the newcomer: the user chooses.
        """
        first = enabled[0]
        official = f"{metadata.CORE}-{first.name}"
        kept = [item for item in enabled if item.distribution == official] or enabled
        cures = []
        for keep in kept:
            others = [f"{item.distribution}:{item.name}" for item in enabled if item is not keep]
            cures.append(
                f"TENSORPLUG_DISABLE_PLUGINS={','.join(others)} keeps that of {keep.distribution}"
            )
        owners = " and ".join(str(candidate.owner) for candidate in enabled)
        return (
            f"{first.kind} {first.name!r} comes from {owners}. Uninstall all but one of them, or "
            f"skip the others: {', '.join(cures)}"
        )

    # Listing --------------------------------------------------------------------------

    def backends(self) -> list[BackendInfo]:
        """Return the installed backends."""
        return self.listing(BACKENDS, BackendInfo, {})

    def extensions(self) -> list[ExtensionInfo]:
        """Return the installed extensions."""
        return self.listing(EXTENSIONS, ExtensionInfo, {})

    def listing(
        self, group: str, info: type[Info], outcomes: Mapping[Candidate, tuple[State, str]]
    ) -> list[Info]:
        """Return the plugins of ``group`` with their states; ``outcomes``: of those tried."""
        names = dict.fromkeys(
            [
                *self.names(group),
                *(candidate.name for candidate in self.candidates if candidate.group == group),
            ]
        )
        return [
            info(
                name, candidate.distribution, candidate.version, *self._state(candidate, outcomes)
            )
            for name in names
            for candidate in self._named(group, name)
        ]

    def _state(
        self, candidate: Candidate, outcomes: Mapping[Candidate, tuple[State, str]]
    ) -> tuple[State, str]:
        if candidate in outcomes:
            return outcomes[candidate]
        reason = self._disabled_by(candidate)
        if reason:
            return "disabled", reason
        try:
            self.pick(candidate.group, candidate.name)
        except PluginCollisionError as error:
            return "conflict", str(error)
        except TensorplugError as error:
            return "incompatible", str(error)
        return "available", ""


def advice(name: str, known: Sequence[str]) -> str:
    """Return what to do about a backend that is not installed, in a sentence or two.

    ``known``: the names of the installed backends.
    """
    meant = _meant(name, known)
    if not meant:
        return f"Any distribution can provide a backend, in the entry-point group {BACKENDS!r}."
    command = "" if meant in known else f"{backend_cure(meant)}."
    return " ".join(filter(None, (_did_you_mean(name, meant), command)))


def _did_you_mean(name: str, meant: str) -> str:
    return f"Did you mean {meant!r}?" if meant not in ("", name) else ""


def _meant(name: str, known: Sequence[str]) -> str:
    """Return the known or official backend with a similar name, or for what it names, or ""."""
    names = {_plain(backend): backend for backend in (*OFFICIAL, *known)}
    near = get_close_matches(_plain(name), names, n=1, cutoff=_SIMILARITY)
    if near:
        return names[near[0]]
    return "opencl" if _plain(name) in _GPUS else ""


def _plain(name: str) -> str:
    """Return ``opencl`` for that, for ``OpenCL``, ``open_cl`` and ``tensorplug-opencl``."""
    return re.sub(r"[\W_]", "", name).lower().removeprefix(metadata.CORE)


def _is_listed(candidate: Candidate, names: Iterable[str]) -> bool:
    """Return whether ``names``, each ``name`` or ``distribution:name``, contain this candidate."""
    for text in names:
        distribution, colon, name = text.rpartition(":")
        if name == candidate.name and (
            not colon or canonicalize_name(distribution) == candidate.distribution
        ):
            return True
    return False
