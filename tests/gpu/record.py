"""``result.json`` and ``summary.md``: the results so far, on disk at any time."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from folding import fold, read
from summary import page

if TYPE_CHECKING:
    from pathlib import Path


class Record:
    """The results of a run so far, in ``folder``; it overwrites a folder of an earlier run."""

    def __init__(self, folder: Path, root: Path, budget: float, command: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._began = time.monotonic()
        self.result: dict[str, Any] = {
            "schema": 1,
            "command": f"`{command}`",
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": _commit(root),
            "budget": budget,
            "seconds": 0.0,
            "finished": False,
            "untried": False,
            "notes": [],
            "steps": {},
        }
        for file in (*folder.glob("*.jsonl"), *folder.glob("*.log"), *folder.glob("*.json")):
            file.unlink()
        for file in folder.glob("conformance/level*.json"):
            file.unlink()

    @property
    def seconds(self) -> float:
        """The seconds it has taken so far."""
        return time.monotonic() - self._began

    def file(self, step: str, ending: str) -> Path:
        """Return the path of a step's records (``jsonl``, ``json``) or its log (``log``)."""
        return self.folder / f"{step}.{ending}"

    def note(self, step: str, **state: Any) -> None:
        """Store the facts of a step and the reports of its program."""
        kept = self.result["steps"].setdefault(step, {})
        kept |= state
        records = read(self.file(step, "jsonl")) or read(self.file(step, "rows.json"))
        if records:
            kept["results"] = fold(step, records)
        self.save()

    def save(self) -> None:
        """Write both files; each of them is complete at any time."""
        self.result["seconds"] = round(self.seconds, 1)
        self._write("result.json", json.dumps(self.result, indent=1) + "\n")
        self._write("summary.md", page(self.result))

    def _write(self, name: str, text: str) -> None:
        part = self.folder / f"{name}.part"
        part.write_text(text, "utf-8")
        part.replace(self.folder / name)


def _commit(root: Path) -> str:
    """Return the commit under test, "unknown" outside of a repository."""
    told = "unknown"
    with suppress(OSError, subprocess.SubprocessError):
        command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
        told = done.stdout.strip()
    return told
