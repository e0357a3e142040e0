"""A plugin's requirement on tensorplug, checked against the installed core before any import."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tensorplug.errors import PluginVersionError
from tensorplug.plugins import metadata
from tensorplug.system.distributions import pip_install
from tensorplug.system.foreign_text import message_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.specifiers import Specifier

    from tensorplug.plugins.metadata import Candidate


_SHOWN: Final = 200  # characters of a requirement
_NAME: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


def check_version(candidate: Candidate, installed: str) -> None:
    """Check that the installed core, in version ``installed``, satisfies a plugin's requirements.

    Raises:
        PluginVersionError: it does not, or the requirement cannot be read. The message names
            the pip command that helps.

    """
    try:
        for line, requirement in _requirements_on_core(candidate):
            _check(candidate, line, requirement, Version(installed))
    except (ValueError, RecursionError) as error:  # packaging: not a requirement or version
        raise PluginVersionError(
            f"{candidate}: its requirement on tensorplug cannot be read: {message_of(error)}. "
            f"Try: {pip_install(candidate.distribution, options='--upgrade')}"
        ) from error


def _requirements_on_core(candidate: Candidate) -> Iterator[tuple[str, Requirement]]:
    """Yield the requirements on the core that hold in this environment, as written and as read.

    Other requirements are not even parsed: pip has dealt with them.
    """
    for line in map(str.strip, candidate.requires):
        name = _NAME.match(line)
        if name is None or canonicalize_name(name[1]) != metadata.CORE:
            continue
        try:
            requirement = Requirement(line)
        except InvalidRequirement as error:
            raise ValueError(f"{_short(line)}: {str(error).splitlines()[0]}") from error
        except RecursionError as error:
            raise ValueError(f"{_short(line)}: it is nested too deeply") from error
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield line, requirement


def _short(line: str) -> str:
    return repr(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}...")


def _check(candidate: Candidate, line: str, requirement: Requirement, installed: Version) -> None:
    refused = [
        specifier
        for specifier in requirement.specifier
        if not specifier.contains(installed, prereleases=True)
    ]
    if not refused:
        return
    if any(_asks_for_later(specifier, installed) for specifier in refused):
        conditions = ",".join(sorted(map(str, requirement.specifier), reverse=True))
        cure = pip_install(f"tensorplug{conditions}")
    else:  # the plugin is too old for this core
        cure = pip_install(candidate.distribution, options="--upgrade")
    raise PluginVersionError(
        f"{candidate} requires {line!r}, but tensorplug {installed} is installed. Try: {cure}"
    )


def _asks_for_later(specifier: Specifier, installed: Version) -> bool:
    """Return whether an upgrade of the core can satisfy ``specifier``."""
    if specifier.operator in ("<", "<=", "!=", "==="):
        return False
    return Version(specifier.version.removesuffix(".*")) > installed
