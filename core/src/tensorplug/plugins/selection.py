"""Which distribution is meant by a plugin name, if any: settings, collisions, versions.

Everything here is decided from metadata, before any code of a plugin runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeVar

from packaging.utils import canonicalize_name

from tensorplug.engine import notices
from tensorplug.engine import settings as environment
from tensorplug.engine.distributions import INSTALL
from tensorplug.errors import (
    BackendNotInstalledError,
    BackendUnavailableError,
    PluginCollisionError,
    SettingsWarning,
    TensorplugError,
)
from tensorplug.plugins import metadata
from tensorplug.plugins.metadata import BACKENDS, EXTENSIONS, BackendInfo, Claim, ExtensionInfo
from tensorplug.plugins.requirements import check_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorplug.engine.settings import Settings
    from tensorplug.plugins.metadata import State

__all__ = ["Selection", "advice"]

_LIKE: Final = 0.7  # of 1, how alike two names are; "gpu" is not like "cpu"

Info = TypeVar("Info", bound=BackendInfo)


@dataclass(frozen=True)
class Selection:
    """The installed claims, and what the settings make of them."""

    claims: tuple[Claim, ...]
    settings: Settings = field(default_factory=environment.Settings)

    @classmethod
    def read(cls, settings: Settings | None = None) -> Selection:
        """Read the metadata of what is installed, and the environment unless given."""
        claims = metadata.claims()
        if settings is None:
            names = [claim.name for claim in claims if claim.group == BACKENDS]
            settings = environment.read(backends=names)
        return cls(claims, settings)

    # Names ----------------------------------------------------------------------------

    def names(self, group: str) -> list[str]:
        """Return the names of ``group`` that the settings leave, the preferred one first.

        Those of higher priority stand before those of lower. Among equals ``cpu`` is first,
        which needs no driver and so is the default wherever it is installed; then by name.
        """
        enabled = [item for item in self.claims if item.group == group]
        enabled = [item for item in enabled if not self._disabled_by(item)]
        enabled.sort(key=lambda claim: (-claim.priority, claim.name != "cpu", claim.name))
        return list(dict.fromkeys(claim.name for claim in enabled))

    def pick(self, group: str, name: str) -> Claim:
        """Return the one claim to ``name``, checked against the installed core.

        Raises:
            BackendNotInstalledError: nothing installed claims the name.
            BackendUnavailableError: the settings disable it.
            PluginCollisionError: two distributions claim it.
            PluginVersionError: it requires another core.

        """
        claimed = self._claimed(group, name)
        if not claimed:
            raise self._not_installed(name)
        enabled = self._enabled(group, name)
        if not enabled:
            raise BackendUnavailableError(
                f"{claimed[0]} is installed, but {self._disabled_by(claimed[0])}"
            )
        if len(enabled) > 1:
            raise PluginCollisionError(self._collision(enabled))
        if enabled[0].installed:
            check_version(enabled[0])
        return enabled[0]

    def _claimed(self, group: str, name: str) -> list[Claim]:
        return [claim for claim in self.claims if (claim.group, claim.name) == (group, name)]

    def _enabled(self, group: str, name: str) -> list[Claim]:
        return [item for item in self._claimed(group, name) if not self._disabled_by(item)]

    def _disabled_by(self, claim: Claim) -> str:
        """Return what in the environment leaves a claim out, or an empty text."""
        if not claim.installed:
            return ""  # the program itself asks for it
        if _named(claim, self.settings.denied):
            return f"TENSORPLUG_DISABLE_PLUGINS={','.join(self.settings.denied)} disables it"
        if self.settings.allowed is not None:
            if _named(claim, self.settings.allowed):
                return ""
            return f"TENSORPLUG_PLUGINS={','.join(self.settings.allowed)} leaves it out"
        return "" if self.settings.autoload else "TENSORPLUG_AUTOLOAD=0 disables all plugins"

    def warn_of_unknown(self) -> None:
        """Warn of names in ``TENSORPLUG_PLUGINS`` that nothing installed has: typing errors."""
        for item in self.settings.allowed or ():
            if any(_named(claim, (item,)) for claim in self.claims):
                continue
            known = sorted({claim.name for claim in self.claims})
            near = get_close_matches(item, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"installed: {', '.join(known)}"
            notices.warn(
                f"TENSORPLUG_PLUGINS names {item!r}, but no installed plugin is called so; {hint}",
                SettingsWarning,
            )

    # Errors ---------------------------------------------------------------------------

    def _not_installed(self, name: str) -> BackendNotInstalledError:
        claimed = [claim.name for claim in self.claims if claim.group == BACKENDS]
        installed = f"Installed: {', '.join(self.names(BACKENDS)) or 'none'}"
        if name in metadata.RESERVED or not metadata.PLUGIN_NAME.fullmatch(name):
            hint = _did_you_mean(name, _meant(name, claimed))
            what = f"no backend can be called {name!r}."
        else:
            hint = advice(name, claimed)
            what = f"backend {name!r} is not installed."
        return BackendNotInstalledError(" ".join(filter(None, (what, hint, installed))))

    def _collision(self, enabled: Sequence[Claim]) -> str:
        first = enabled[0]
        others = [
            claim.name
            for claim in self.claims
            if (claim.group, claim.name) != (first.group, first.name)
            and not self._disabled_by(claim)
        ]
        choice = ",".join([f"{first.distribution}:{first.name}", *dict.fromkeys(others)])
        owners = " and ".join(str(item.owner) for item in enabled)
        return (
            f"{first.kind} {first.name!r} is claimed by {owners}. Uninstall one of them, or "
            f"choose: TENSORPLUG_PLUGINS={choice}"
        )

    # Listing --------------------------------------------------------------------------

    def backends(self) -> list[BackendInfo]:
        """Return the installed backends."""
        return self.listing(BACKENDS, BackendInfo, {})

    def extensions(self) -> list[ExtensionInfo]:
        """Return the installed extensions."""
        return self.listing(EXTENSIONS, ExtensionInfo, {})

    def listing(
        self, group: str, info: type[Info], outcomes: Mapping[Claim, tuple[State, str]]
    ) -> list[Info]:
        """Return the claims of ``group`` with what became of them; ``outcomes`` of loading."""
        names = dict.fromkeys(
            [*self.names(group), *(item.name for item in self.claims if item.group == group)]
        )
        return [
            info(name, claim.distribution, claim.version, *self._state(claim, outcomes))
            for name in names
            for claim in self._claimed(group, name)
        ]

    def _state(
        self, claim: Claim, outcomes: Mapping[Claim, tuple[State, str]]
    ) -> tuple[State, str]:
        if claim in outcomes:
            return outcomes[claim]
        reason = self._disabled_by(claim)
        if reason:
            return "disabled", reason
        try:
            self.pick(claim.group, claim.name)
        except PluginCollisionError as error:
            return "conflict", str(error)
        except TensorplugError as error:
            return "incompatible", str(error)
        return "available", ""


def advice(name: str, claimed: Sequence[str]) -> str:
    """Return what to do about a backend that is not installed, in a sentence or two.

    ``claimed``: the names of those that are.
    """
    meant = _meant(name, claimed)
    if not meant:
        return f"Any distribution can bring a backend, through the entry-point group {BACKENDS!r}."
    command = "" if meant in claimed else f"Try: {INSTALL[meant]}."
    return " ".join(filter(None, (_did_you_mean(name, meant), command)))


def _did_you_mean(name: str, meant: str) -> str:
    return f"Did you mean {meant!r}?" if meant not in ("", name) else ""


def _meant(name: str, claimed: Sequence[str]) -> str:
    """Return the backend whose name is like ``name``, installed or our own; empty if none is."""
    known = {_plain(item): item for item in (*INSTALL, *claimed)}
    near = get_close_matches(_plain(name), known, n=1, cutoff=_LIKE)
    return known[near[0]] if near else ""


def _plain(name: str) -> str:
    """Return ``opencl`` for that, for ``OpenCL``, ``open_cl`` and ``tensorplug-opencl``."""
    return re.sub(r"[\W_]", "", name).lower().removeprefix(metadata.CORE)


def _named(claim: Claim, listed: Iterable[str]) -> bool:
    """Return whether a list of ``name`` and ``distribution:name`` means this claim."""
    for item in listed:
        distribution, colon, name = item.rpartition(":")
        if name == claim.name and (
            not colon or canonicalize_name(distribution) == claim.distribution
        ):
            return True
    return False
