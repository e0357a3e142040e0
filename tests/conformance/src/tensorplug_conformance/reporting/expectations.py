"""Known failures: a file that says which cases fail, why, and until when.

::

    [[expect]]
    kernel = "Erf"
    dtypes = ["float32"]
    modes = ["native"]
    cases = ["edges", "large"]
    reason = "the driver's erf is off by 20 ulp"
    issue = "https://example.org/acme/issues/7"
    expires = 2027-01-31

``dtypes``, ``modes`` and ``cases`` may be left out, and then mean all. An expected failure is
never a pass and never conformant; it only tells a build that nothing new is wrong. An entry
that no longer matches a failure, or has expired, is itself a fault.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from tensorplug.tensors.scratch_files import scratch_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


_KEYS: Final = {"kernel", "dtypes", "modes", "cases", "reason", "issue", "expires"}
_FAILED: Final = ("fail", "fallback", "missing")


class ExpectationError(Exception):
    """A file of expectations is malformed."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One entry. Empty tuples stand for all."""

    kernel: str
    reason: str
    dtypes: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    issue: str = ""
    expires: date | None = None

    def concerns(self, row: Mapping[str, Any]) -> bool:
        """Return whether this is about a row of a report."""
        return (
            row["kernel"] == self.kernel
            and (not self.dtypes or row["dtype"] in self.dtypes)
            and (not self.modes or row["mode"] in self.modes)
        )

    def describe(self) -> str:
        """Return the entry in one line."""
        parts = [self.kernel, *self.dtypes, *self.modes, *(repr(case) for case in self.cases)]
        return " ".join(parts)


def read(path: Path) -> list[Expectation]:
    """Return the entries of a file.

    Raises:
        ExpectationError: the file is something else, or an entry is wrong.

    """
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ExpectationError(f"{path}: {error}") from error
    unknown = set(table) - {"expect"}
    if unknown:
        raise ExpectationError(
            f"{path}: unknown {', '.join(sorted(unknown))}; entries are [[expect]]"
        )
    return [
        _entry(item, f"{path}, entry {number}")
        for number, item in enumerate(table.get("expect", []), start=1)
    ]


def _entry(table: Mapping[str, Any], where: str) -> Expectation:
    unknown = set(table) - _KEYS
    if unknown:
        raise ExpectationError(f"{where}: unknown key {', '.join(sorted(unknown))}")
    for name in ("kernel", "reason"):
        if not isinstance(table.get(name), str) or not table[name].strip():
            raise ExpectationError(f"{where}: {name} must be a non-empty text")
    lists = {}
    for name in ("dtypes", "modes", "cases"):
        names = table.get(name, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ExpectationError(f"{where}: {name} must be a list of texts")
        if name in table and not names:
            raise ExpectationError(f"{where}: {name} is empty; leave it out to mean all")
        lists[name] = tuple(names)
    expires = table.get("expires")
    if expires is not None and type(expires) is not date:
        raise ExpectationError(f"{where}: expires must be a day, as in 2027-01-31")
    issue = table.get("issue", "")
    return Expectation(table["kernel"], table["reason"], **lists, issue=issue, expires=expires)


def apply(
    rows: Sequence[dict[str, Any]], expectations: Iterable[Expectation], today: date
) -> list[str]:
    """Mark rows all of whose failures are expected; return what is wrong with the entries.

    An entry without cases covers a row that failed as a whole, without a case.
    """
    faults, hit = [], set()
    listed = list(expectations)
    for row in rows:
        if row["status"] not in _FAILED:
            continue
        concerned = [expectation for expectation in listed if expectation.concerns(row)]
        left = set(row["failed"]) or {""}
        beyond = row["vendor"] in _FAILED and left - set(row["tolerated"])
        reasons = []
        for expectation in concerned:
            covered = left if not expectation.cases else left & set(expectation.cases)
            if covered:
                hit |= {(expectation, name) for name in (expectation.cases and covered)}
                hit.add((expectation, None))
                reasons.append(expectation.reason)
                left = left - covered
        if not left:
            row["status"], row["reason"] = "expected fail", "; ".join(reasons)
        if beyond and not beyond & left:
            row["vendor"] = "expected fail"
    for expectation in listed:
        if expectation.expires is not None and expectation.expires < today:
            faults.append(
                f"expectation expired on {expectation.expires}: {expectation.describe()}"
            )
        if (expectation, None) not in hit:
            faults.append(f"expected to fail, but does not: {expectation.describe()}")
        else:
            gone = [name for name in expectation.cases if (expectation, name) not in hit]
            faults += [
                f"expected to fail, but does not: {expectation.kernel} case {n!r}" for n in gone
            ]
    return faults


def accepted(
    report: Mapping[str, Any], reason: str, issue: str = "", expires: date | None = None
) -> list[Expectation]:
    """Return an entry for every row of a report that failed and is not expected to."""
    return [
        Expectation(
            row["kernel"],
            reason,
            (row["dtype"],),
            (row["mode"],),
            tuple(row["failed"]),
            issue,
            expires,
        )
        for row in report["rows"]
        if row["status"] in _FAILED
    ]


def write(expectations: Iterable[Expectation], path: Path) -> None:
    """Write entries to a file that ``read`` reads."""
    parts = []
    for expectation in expectations:
        lines = ["[[expect]]", f"kernel = {_text(expectation.kernel)}"]
        for name in ("dtypes", "modes", "cases"):
            names = getattr(expectation, name)
            if names:
                lines.append(f"{name} = [{', '.join(map(_text, names))}]")
        lines.append(f"reason = {_text(expectation.reason)}")
        if expectation.issue:
            lines.append(f"issue = {_text(expectation.issue)}")
        if expectation.expires is not None:
            lines.append(f"expires = {expectation.expires.isoformat()}")
        parts.append("\n".join(lines) + "\n")
    with scratch_file(path.resolve()) as file:  # users write into it too
        file.write("\n".join(parts).encode())


def _text(value: str) -> str:
    """Return a TOML string."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}"
        for character in escaped
    )
    return f'"{shown}"'
