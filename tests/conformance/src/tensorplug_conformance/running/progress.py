"""The progress of a run: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from tensorplug_conformance.verdicts import BLOCKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from rich.console import Console

    from tensorplug_conformance.verdicts import Item, Outcome


_EVERY: Final = 30.0  # seconds between lines when nothing else happens
_POLL: Final = 1.0  # seconds
_PARTS: Final = 10  # of a run, each with a line at its end


def progress(
    console: Console, backend: str, level: int, jobs: int, *, expecting: bool = False
) -> ProgressBar | ProgressLines:
    """Return a progress display for a run; ``expecting``: some failures are expected."""
    if console.is_interactive and console.file.isatty():
        return ProgressBar(console, f"level {level}")
    return ProgressLines(console, backend, level, jobs, expecting=expecting)


class ProgressBar:
    """A bar that moves."""

    def __init__(self, console: Console, what: str) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[now]}"),
            console=console,
        )
        self._what = what
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def started(self, items: Sequence[Item]) -> None:
        """Learn which items there are."""
        self._task = self._progress.add_task(self._what, total=len(items), now="")

    def heard(self, outcome: Outcome) -> None:
        """Show one more item as done."""
        if self._task is not None:
            now = " ".join(str(part) for part in outcome.item[1:])
            self._progress.update(self._task, advance=1, now=now)


class ProgressLines:
    """A line at the beginning, one for each tenth of the items, and one after a while anyway.

    Args:
        console: where to; each line is flushed at once.
        backend: its name, ``level``: the last one, ``jobs``: how many processes there are.
        expecting: some failures are expected; they are counted all the same.
        clock: gives seconds.
        poll: seconds from one look at the clock to the next.

    """

    def __init__(
        self,
        console: Console,
        backend: str,
        level: int,
        jobs: int,
        *,
        expecting: bool = False,
        clock: Callable[[], float] = time.monotonic,
        poll: float = _POLL,
    ) -> None:
        self._console = console
        self._what = f"backend {backend!r}, level {level}"
        self._processes = _counted(jobs, "process", "processes")
        self._expecting = expecting
        self._clock = clock
        self._poll = poll
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, name="progress", daemon=True)
        self._total = self._done = self._failed = 0
        self._began = self._said = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._watch.is_alive():
            self._watch.join()

    def started(self, items: Sequence[Item]) -> None:
        """Print what runs, and start the clock."""
        rows = sum(item[0] == "row" for item in items)
        tests = sum(item[0] == "evidence" for item in items)
        counts = [(rows, "row"), (len(items) - rows - tests, "check"), (tests, "test")]
        parts = [_counted(count, what, f"{what}s") for count, what in counts if count]
        self._total = len(items)
        self._began = self._said = self._clock()
        self._print(f"{self._what}: {' and '.join(parts) or 'nothing'} in {self._processes}")
        self._watch.start()

    def heard(self, outcome: Outcome) -> None:
        """Count one more item as done; print a line when another tenth is complete."""
        verdict = outcome.verdict
        with self._lock:
            before = self._done * _PARTS // self._total
            self._done += 1
            self._failed += verdict is None or verdict["status"] in BLOCKING
            if self._done * _PARTS // self._total > before:
                self._say()

    def tick(self) -> None:
        """Print a line if there was none for a while."""
        with self._lock:
            if self._clock() - self._said >= _EVERY:
                self._say()

    def _look(self) -> None:
        while not self._over.wait(self._poll):
            self.tick()

    def _say(self) -> None:
        self._said = self._clock()
        elapsed = self._said - self._began
        parts = [
            f"{self._done} of {self._total} done ({100 * self._done // self._total}%)",
            f"{self._failed} failed{' (expected or not)' if self._expecting else ''}",
            f"{_duration(elapsed)} elapsed",
        ]
        if 0 < self._done < self._total:
            left = elapsed / self._done * (self._total - self._done)
            parts.append(f"about {_duration(left)} left")
        self._print(", ".join(parts))

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, highlight=False, markup=False)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))
