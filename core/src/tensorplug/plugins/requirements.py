"""Requirements on the core in a distribution's metadata, read as PEP 508 writes them.

A plugin's own requirement on ``tensorplug`` is checked before any of its code runs. Only
lines about ``tensorplug`` are read in full; everything else is pip's business.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tensorplug.plugins.versions import Specifier, Version, parse_specifiers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Requirement", "environment", "marker_holds", "normalize", "requirements_on"]

_NAME: Final = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<bracket>[()])
  | (?P<text>'[^']*'|"[^"]*")
  | (?P<operator><=|>=|===|==|!=|~=|<|>)
  | (?P<word>[A-Za-z_.]+)
    )""",
    re.VERBOSE,
)
_VERSIONS: Final = frozenset(
    {"python_version", "python_full_version", "implementation_version", "platform_release"}
)


def normalize(name: str) -> str:
    """Return a distribution's name as PEP 503 compares it: ``Acme_Ops`` is ``acme-ops``."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True, slots=True)
class Requirement:
    """The conditions that one line of metadata puts on a version."""

    line: str
    specifiers: tuple[Specifier, ...]

    def refused(self, version: Version) -> tuple[Specifier, ...]:
        """Return the conditions that ``version`` does not fulfil."""
        return tuple(specifier for specifier in self.specifiers if not specifier.allows(version))


def requirements_on(name: str, lines: Iterable[str]) -> tuple[Requirement, ...]:
    """Return what ``lines`` of ``Requires-Dist`` ask of ``name`` in this environment.

    Raises:
        ValueError: when a line about ``name`` cannot be read.

    """
    found = []
    for line in lines:
        match = _NAME.match(line)
        if match is None or normalize(match[1]) != normalize(name):
            continue
        conditions, _, marker = line[match.end() :].partition(";")
        conditions = re.sub(r"^\s*\[[^]]*\]", "", conditions).strip()
        if marker.strip() and not marker_holds(marker, environment()):
            continue
        if conditions.startswith("@"):  # a direct reference says where from, not which version
            conditions = ""
        conditions = conditions.removeprefix("(").removesuffix(")")
        found.append(Requirement(line.strip(), parse_specifiers(conditions)))
    return tuple(found)


def environment() -> dict[str, str]:
    """Return the values of PEP 508's marker variables here, with no extra chosen."""
    implementation = sys.implementation.version
    level = "" if implementation.releaselevel == "final" else implementation.releaselevel[0]
    serial = str(implementation.serial) if level else ""
    return {
        "os_name": os.name,
        "sys_platform": sys.platform,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "python_full_version": platform.python_version(),
        "implementation_name": sys.implementation.name,
        "implementation_version": ".".join(map(str, implementation[:3])) + level + serial,
        "extra": "",
    }


def marker_holds(marker: str, values: Mapping[str, str]) -> bool:
    """Return whether an environment marker is true for ``values``.

    Raises:
        ValueError: when it cannot be read.

    """
    return _Marker(marker, values).evaluate()


class _Marker:
    """A recursive-descent evaluation of one marker: ``or`` of ``and`` of comparisons."""

    def __init__(self, marker: str, values: Mapping[str, str]) -> None:
        self._marker = marker.strip()
        self._values = values
        self._tokens = self._split()

    def evaluate(self) -> bool:
        result = self._any()
        if self._tokens:
            raise self._bad()
        return result

    def _split(self) -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(self._marker):
            match = _TOKEN.match(self._marker, at)
            if match is None or match.lastgroup is None:
                raise self._bad()
            tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        return tokens

    def _bad(self) -> ValueError:
        return ValueError(f"the environment marker {self._marker!r} cannot be read")

    def _take(self, *texts: str) -> bool:
        if self._tokens and self._tokens[0][1] in texts:
            self._tokens.pop(0)
            return True
        return False

    def _any(self) -> bool:
        result = self._all()
        while self._take("or"):
            result = self._all() or result  # the right side is read even where it decides nothing
        return result

    def _all(self) -> bool:
        result = self._one()
        while self._take("and"):
            result = self._one() and result
        return result

    def _one(self) -> bool:
        if self._take("("):
            result = self._any()
            if not self._take(")"):
                raise self._bad()
            return result
        left, left_is_version = self._value()
        operator = self._operator()
        right, right_is_version = self._value()
        return self._compare(left, operator, right, versions=left_is_version or right_is_version)

    def _value(self) -> tuple[str, bool]:
        """Return the next value, and whether it is a variable that holds a version."""
        kind, text = self._tokens.pop(0) if self._tokens else ("", "")
        if kind == "text":
            return text[1:-1], False
        if kind != "word" or text not in self._values:
            raise self._bad()
        return self._values[text], text in _VERSIONS

    def _operator(self) -> str:
        kind, text = self._tokens.pop(0) if self._tokens else ("", "")
        if text == "not" and self._take("in"):
            return "not in"
        if kind != "operator" and text != "in":
            raise self._bad()
        return text

    def _compare(self, left: str, operator: str, right: str, *, versions: bool) -> bool:
        if operator == "in":
            return left in right
        if operator == "not in":
            return left not in right
        if versions:
            try:
                return Specifier.parse(operator + right).allows(Version.parse(left))
            except ValueError:
                pass  # a kernel's release need not be a version: then it is text
        if operator not in ("==", "!=", "<", "<=", ">", ">="):
            raise self._bad()
        # Text has no order, says the specification; what includes equality may still hold.
        return (left == right) == (operator != "!=") and operator not in ("<", ">")
