"""The journal of a run: each outcome as it comes, on disk, so that a run can go on later.

A file of JSON lines in the report's folder. The first line says what the run is of; the others
are outcomes, the backend's description of itself, and where a run went on. A report that is
complete takes its place.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final, Self

from tensorplug_conformance.reporting.schema import misfit, misfit_introduction
from tensorplug_conformance.verdicts import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tensorplug_conformance.verdicts import Item


NAME: Final = "events.jsonl"
_DRAWN: Final = ("started", "draw")  # once for a run, however often it goes on


class ResumeError(Exception):
    """A run cannot be resumed, now or later; the message says why, on one line."""


@dataclass(slots=True)
class Journal:
    """The outcomes of one run, those of before an interruption included.

    Args:
        folder: of the report.
        header: what the run is of; None before it has begun.
        outcomes: by item.
        introduced: what the backend says of itself; empty if it has not.
        seconds: that the run took before.
        lost: why the file could not be written, so that the run cannot go on; empty if it was.

    """

    folder: Path
    header: dict[str, Any] | None = None
    outcomes: dict[Item, Outcome] = field(default_factory=dict)
    introduced: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    lost: str = ""
    _file: IO[str] | None = None
    _clock: float = 0.0

    @classmethod
    def resumed(cls, folder: Path) -> Self:
        """Return the journal in a folder; a last line that was not finished does not count.

        Raises:
            ResumeError: there is none.

        """
        path = folder / NAME
        journal = cls(folder)
        try:
            lines = path.read_bytes().split(b"\n")[:-1]
            journal.header = dict(json.loads(lines[0])["run"])
            for line in lines[1:]:
                journal._read(json.loads(line))
        except FileNotFoundError:
            raise ResumeError(
                f"{folder} has no run to resume: there is no {NAME}, which a complete run removes"
            ) from None
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise ResumeError(f"{path} is not the journal of a run: {error!r}") from error
        journal.seconds += journal._clock
        journal._clock = 0.0
        return journal

    def _read(self, event: Mapping[str, Any]) -> None:
        if "backend" in event:
            self.introduced = dict(event["backend"])
            if fault := misfit_introduction(self.introduced):
                raise ValueError(fault)
        elif "item" in event:
            item = tuple(event["item"])
            if event["verdict"] is not None and (fault := misfit(item, event["verdict"])):
                raise ValueError(fault)
            self.outcomes[item] = Outcome(item, event["verdict"], str(event["error"]))
            self._clock = float(event["at"])
        elif event["resumed"]:
            self.seconds += self._clock
            self._clock = 0.0

    def begin(self, header: Mapping[str, Any]) -> None:
        """Begin a run, or go on with it.

        Raises:
            ResumeError: the run was of something else, or the folder cannot be written.

        """
        content: dict[str, Any] = json.loads(json.dumps(header))
        if self.header is not None:
            self._check(content)
        first: dict[str, Any] = {"resumed": True} if self.header else {"run": content}
        try:
            self._file = self._opened()
        except OSError as error:
            raise ResumeError(f"{self.folder} cannot be written: {error}") from error
        self.header = self.header or content
        self._clock = time.monotonic()
        self._write(first)

    def _opened(self) -> IO[str]:
        """Return the file, at the end of its last whole line."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / NAME
        if self.header is None:
            return path.open("w", encoding="utf-8")
        if not path.read_bytes().endswith(b"\n"):  # what was begun is told again
            path.write_bytes(path.read_bytes().rpartition(b"\n")[0] + b"\n")
        return path.open("a", encoding="utf-8")

    def _check(self, content: Mapping[str, Any]) -> None:
        before, now = _flat(self.header or {}), _flat(content)
        changes = [
            f"{name} was {before.get(name)}, is {now.get(name)}"
            for name in {**before, **now}
            if name not in _DRAWN and before.get(name) != now.get(name)
        ]
        if changes:
            raise ResumeError(f"the run in {self.folder} was another one: {'; '.join(changes)}")

    def introduce(self, backend: Mapping[str, Any]) -> None:
        """Write down what the backend says of itself."""
        self.introduced.update(backend)
        self._write({"backend": self.introduced})

    def add(self, outcome: Outcome) -> None:
        """Write down an outcome."""
        self.outcomes[outcome.item] = outcome
        self._write(
            {
                "at": round(time.monotonic() - self._clock, 3),
                "item": outcome.item,
                "verdict": outcome.verdict,
                "error": outcome.error,
            }
        )

    def _write(self, event: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(event) + "\n")
            self._file.flush()
        except OSError as error:  # such as a full disk: the run goes on, and tells it at its end
            self.lost = str(error)
            with suppress(OSError):
                self._file.close()
            self._file = None

    def close(self) -> None:
        """Close the file; it stays until ``remove``."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Remove the file: the report says it all."""
        self.close()
        (self.folder / NAME).unlink(missing_ok=True)


def _flat(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return a header with the parts of its parts, so that only what differs is told."""
    flat_content: dict[str, Any] = {}
    for name, value in header.items():
        if isinstance(value, dict):
            flat_content.update({f"{name} {part}": inner for part, inner in value.items()})
        else:
            flat_content[name] = value
    return flat_content
