"""The results of drivers: read from reports and logs, kept as JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.verdicts import BLOCKING, PASSED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    Report = Mapping[str, Any]

NOT_INSTALLED: Final = "not installed"
NOT_SET_UP: Final = "not set up"
NO_DEVICE: Final = "no device"
UNSOUND: Final = "unsound"
_UNTRIED: Final = (NOT_INSTALLED, NOT_SET_UP)
_FAILED: Final = (*BLOCKING, "expected fail")
_SAID: Final = re.compile(r"@@ (?P<what>call|control|done|end) ?(?P<name>.*)")
_QUESTION: Final = "Function: clGetDeviceInfo"  # pyopencl asks for more than the simulator knows
_CHATTER: Final = re.compile(r"\d+ warnings? generated\.")
_PLACE: Final = re.compile(r"\s*(?:at (?:global|local|private) memory )?address 0x[0-9a-f]+")


@dataclass(frozen=True)
class Result:
    """The result of one driver on one processor.

    ``trial``: its verdict; ``refused``: why the backend does not open it. ``level``: the one that
    was run, 0 for none; ``certified``: whether it conforms; ``profile``: by which bounds, a
    vendor's only where it does not conform strictly. ``passed`` and ``failed`` count its rows by
    these, or the watched kernels; ``beyond`` counts the rows of level 3: passed, failed, and all.
    ``failures``: a line for each row, check or kernel. ``note``: why less was done.
    """

    driver: str
    title: str
    processor: str
    date: str
    tensorplug: str
    device: str = ""
    version: str = ""
    trial: str = NOT_INSTALLED
    findings: tuple[str, ...] = ()
    refused: str = ""
    level: int = 0
    certified: bool = False
    watched: int = 0
    passed: int = 0
    failed: int = 0
    beyond: tuple[int, int, int] = (0, 0, 0)
    failures: tuple[str, ...] = ()
    note: str = ""
    profile: str = "strict"

    @property
    def key(self) -> tuple[str, str]:
        """The key by which a new result replaces an earlier one."""
        return self.driver, self.processor

    @property
    def wrong(self) -> bool:
        """Whether a usable driver has failures."""
        opened = self.trial not in (NOT_INSTALLED, NO_DEVICE, UNSOUND)
        return opened and bool(self.failures or self.note)


def certified(result: Result, report: Report) -> Result:
    """Return ``result`` with a report of the whole level."""
    strictly, leniently = (each["conformant"] is True for each in (report, report["vendor"]))
    result = replace(result, profile="vendor" if leniently and not strictly else "strict")
    passed, failed = _counted(report["rows"], result)
    return replace(
        result,
        level=report["level"],
        certified=strictly or leniently,
        tensorplug=report["tensorplug"],
        passed=passed,
        failed=failed,
        failures=(*result.failures, *_failures(report, result)),
    )


def with_part(result: Result, report: Report, there: int) -> Result:
    """Return ``result`` with a report of some kernels of level 3, which has ``there`` rows."""
    rows = [row for row in report["rows"] if beyond_primitives(row)]
    passed, failed = _counted(rows, result)
    lines = _failures({"rows": rows, "checks": []}, result)
    return replace(
        result,
        beyond=(result.beyond[0] + passed, result.beyond[1] + failed, there),
        failures=(*result.failures, *lines),
    )


def beyond_primitives(row: Mapping[str, Any]) -> bool:
    """Return whether a row is of level 3, and not of level 2."""
    return row["mode"] != "native" or row["kernel"] not in PRIMITIVES


def _status(row: Mapping[str, Any], result: Result) -> str:
    return str(row["vendor" if result.profile == "vendor" else "status"])


def _counted(rows: Iterable[Mapping[str, Any]], result: Result) -> tuple[int, int]:
    counts = Counter(_status(row, result) for row in rows)
    return sum(counts[status] for status in PASSED), sum(counts[status] for status in _FAILED)


def _failures(report: Report, result: Result) -> list[str]:
    checks = [check for check in report["checks"] if check["status"] == "fail"]
    found = [f"check {check['check']}: {_first(check['message'])}" for check in checks]
    for row in report["rows"]:
        if _status(row, result) in _FAILED:
            name = f"{row['kernel']} {row['dtype']} {row['mode']}"
            told = [
                f"{failure['case']}: {_first(failure['message'])}"
                for failure in row["failures"][:1]
            ]
            count = f"{len(row['failed'])} of {row['cases']} cases"
            found.append(f"{name}, {count}: {(told or [_first(row['reason'])])[0]}")
    return found


def _first(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[0]


# Watched calls -----------------------------------------------------------------------------------


def watched(result: Result, text: str) -> Result:
    """Return ``result`` with a simulator's messages on each call.

    ``text`` has a line that begins with ``@@`` where a call begins and where it ends. All else
    that is written between them is a finding.
    """
    calls, messages, ended = _said(text)
    kernels = {name.split()[0] for what, name in calls if what == "call"}
    found: dict[str, Counter[str]] = {}
    for (what, name), lines in zip(calls, messages, strict=True):
        if what == "call" and lines:
            found.setdefault(name.split()[0], Counter()).update(lines)
    failures = [
        f"{kernel}: {'; '.join(f'{line} ({count} times)' for line, count in lines.items())}"
        for kernel, lines in found.items()
    ]
    blind = [
        name
        for (what, name), lines in zip(calls, messages, strict=True)
        if what == "control" and not lines
    ]
    notes = [f"{name} in a program that is wrong was not found" for name in blind]
    if not ended:
        notes.append(f"it did not survive {calls[-1][1] if calls else 'its start'}")
    return replace(
        result,
        watched=sum(what == "call" for what, _ in calls),
        passed=len(kernels - found.keys()),
        failed=len(found),
        failures=tuple(failures),
        note="; ".join(notes),
    )


def _said(text: str) -> tuple[list[tuple[str, str]], list[list[str]], bool]:
    """Return the calls, the messages during each of them, and whether the last line came."""
    calls: list[tuple[str, str]] = []
    messages: list[list[list[str]]] = []
    ended = within = False
    for line in text.splitlines():
        said = _SAID.match(line)
        if said:
            ended, within = said["what"] == "end", said["what"] in ("call", "control")
            if within:
                calls.append((said["what"], said["name"]))
                messages.append([])
        elif within and line.strip() and not _CHATTER.match(line):
            if line[0].isspace() and messages[-1]:
                messages[-1][-1].append(line.strip())
            else:
                messages[-1].append([line.strip()])
    return (
        calls,
        [[_told(message) for message in of if _QUESTION not in message] for of in messages],
        ended,
    )


def _told(lines: Sequence[str]) -> str:
    """Return a message in a line: what, and in which lines of the program."""
    places = [at for at, line in enumerate(lines) if line.startswith("At line ")]
    sources = [lines[at + 1] for at in places if at + 1 < len(lines)]
    more = " and ".join(sorted({*sources})) if places else ", ".join(lines[1:])
    return ": ".join(filter(None, [_PLACE.sub("", lines[0]), more]))


# Keeping -----------------------------------------------------------------------------------------


def read(path: Path) -> list[Result]:
    """Return the results in ``path``; none if there is no such file."""
    if not path.exists():
        return []
    return [_of(load) for load in json.loads(path.read_text("utf-8"))]


def _of(told: Mapping[str, Any]) -> Result:
    return Result(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in told.items()
        }
    )


def write(path: Path, results: Iterable[Result]) -> None:
    """Write ``results`` to ``path``."""
    path.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", "utf-8")


def joined(before: Iterable[Result], now: Iterable[Result]) -> list[Result]:
    """Return the results of both in order: of one driver and processor, that of ``now``.

    A result without a trial replaces nothing.
    """
    found = {result.key: result for result in before}
    for result in now:
        if result.trial not in _UNTRIED or result.key not in found:
            found[result.key] = result
    return [found[key] for key in sorted(found)]
