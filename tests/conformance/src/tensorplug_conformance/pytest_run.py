"""The suite as a plain pytest run: checks and rows are items, each tried in a worker process.

``pytest --pyargs tensorplug_conformance --tensorplug-backend acme --tensorplug-level 2``. A crash
or a hang of the backend fails its item, and the run goes on. This is for daily work: nothing
counts what pytest deselects, skips or repeats, so only ``tensorplug-conformance run`` certifies.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import tensorplug as tp
from tensorplug_conformance import SUITE_VERSION
from tensorplug_conformance.checks import Target
from tensorplug_conformance.denominator import LEVELS, Selection, entries
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.reporting.reproduction import script
from tensorplug_conformance.running.certify import items_of
from tensorplug_conformance.running.supervisor import Attendant, Limits
from tensorplug_conformance.verdicts import BLOCKING, PASSED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest._code.code import ExceptionInfo, TerminalRepr

    from tensorplug_conformance.verdicts import Item, Outcome


_FILE: Final = Path(__file__)
_NODE: Final = f"{__package__}.{_FILE.stem}"  # what --pyargs finds again
_TOLD: Final = ("cases", "passed", "examples", "ulp")  # name of a row in JUnit's XML
_POLLS: Final = (0.002, 0.02)  # seconds: at first, and in the long run


class NotConformantError(Exception):
    """An item failed; the message says what was found, and how to repeat it."""


class ConformanceRun:
    """The plugin of one pytest process, with the worker that its items run in.

    Raises:
        pytest.UsageError: an option is invalid.

    """

    def __init__(self, config: pytest.Config) -> None:
        self.target = Target(config.getoption("tensorplug_backend"))
        self.seed: int = config.getoption("tensorplug_seed")
        self.examples: int = config.getoption("tensorplug_examples")
        asked = config.getoption("tensorplug_level")
        self.level: int = max(LEVELS) if asked is None else asked
        limit = config.getoption("tensorplug_item_limit")
        self._limits = Limits() if limit is None else Limits(limit)
        self._attendant: Attendant | None = None
        installed = [backend.name for backend in tp.backends()]
        faults = {
            f"no backend {self.target.backend!r} is installed, but {', '.join(installed)}": (
                self.target.backend not in installed
            ),
            f"there is no level {self.level}; the last is {max(LEVELS)}": self.level not in LEVELS,
            f"the time limit of an item must be positive, got {limit}": limit is not None
            and not limit > 0,
            f"the seed must be at least 0, got {self.seed}": self.seed < 0,
            f"examples must be at least 0, got {self.examples}": self.examples < 0,
        }
        for fault, holds in faults.items():
            if holds:
                raise pytest.UsageError(fault)

    def pytest_report_header(self) -> str:
        """Return the header of the run."""
        return (
            f"tensorplug-conformance: suite {SUITE_VERSION}, backend {self.target.backend}, "
            f"levels 0 to {self.level}, seed {self.seed}, {self.examples} examples per row"
        )

    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> pytest.Directory | None:
        """Collect the suite, where pytest comes to its package, and none of its modules."""
        if path != _FILE.parent:
            return None
        package: pytest.Directory = _Package.from_parent(parent, path=path, run=self)
        return package

    def outcome(self, item: Item) -> Outcome:
        """Run one item in the worker, which is started if there is none."""
        if self._attendant is None:
            self._attendant = Attendant(self.target, self.seed, self._limits)
        worker, wait = self._attendant, _POLLS[0]
        try:
            worker.give([(0, item)])
            while not (ended := worker.finished()):
                if worker.over:  # it died between two items
                    return self._replaced().outcome(item)
                time.sleep(wait)
                wait = min(2 * wait, _POLLS[1])
        except BaseException:  # of a time limit or the keyboard: the item is still at work
            self._replaced()
            raise
        if worker.over:
            self._replaced()
        return ended[0][1]

    def _replaced(self) -> ConformanceRun:
        if self._attendant is not None:
            self._attendant.stop()
        self._attendant = None
        return self

    def pytest_unconfigure(self) -> None:
        """End the worker."""
        if self._attendant is not None:
            self._attendant.dismiss()
            self._attendant.leave()
            self._replaced()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print that the run is not a certificate."""
        nodes = (
            getattr(e, "nodeid", "") for some in terminalreporter.stats.values() for e in some
        )
        if not any(node.startswith(_NODE) for node in nodes):
            return
        terminalreporter.section("tensorplug conformance")
        terminalreporter.line("A pytest run is not a certificate. This command makes one:")
        command = f"tensorplug-conformance run --backend {self.target.backend}"
        terminalreporter.line(f"  {command} --level {self.level} --report out/")


class _Package(pytest.Directory):
    """The suite's folder: only the suite itself is collected there."""

    def __init__(self, *, run: ConformanceRun, **more: Any) -> None:
        super().__init__(**more)
        self._run = run

    def collect(self) -> Iterator[pytest.Collector]:
        yield _Suite.from_parent(self, path=_FILE, nodeid=_NODE, run=self._run)


class _Suite(pytest.File):
    """All levels."""

    def __init__(self, *, run: ConformanceRun, **more: Any) -> None:
        super().__init__(**more)
        self._run = run

    def collect(self) -> Iterator[pytest.Collector]:
        known = entries(extension_tables())
        for level in range(self._run.level + 1):
            items, _ = items_of(level, known, Selection(), self._run.examples)
            yield _Level.from_parent(self, name=f"level{level}", items=items, run=self._run)


class _Level(pytest.Collector):
    """The items that one level adds to those below."""

    def __init__(self, *, items: list[Item], run: ConformanceRun, **more: Any) -> None:
        super().__init__(**more)
        self._items = items
        self._run = run

    def collect(self) -> Iterator[pytest.Item]:
        for item in self._items:
            made = _Check if item[0] == "check" else _Row
            yield made.from_parent(self, name=made.called(item), tried=item, run=self._run)


class _Tried(pytest.Item):
    """A check or a row; ``tried`` is the item as the worker gets it."""

    def __init__(self, *, tried: Item, run: ConformanceRun, **more: Any) -> None:
        super().__init__(**more)
        self._tried = tried
        self._run = run

    @staticmethod
    def called(item: Item) -> str:
        """Return the name of an item: nothing in it needs quotes but the brackets."""
        return re.sub(r"\W+", "-", item[2])

    def runtest(self) -> None:
        outcome = self._run.outcome(self._tried)
        if outcome.verdict is None:
            raise NotConformantError("\n".join([outcome.error, "", *self._again()]))
        self._judge(outcome.verdict)

    def _judge(self, verdict: dict[str, Any]) -> None:
        raise NotImplementedError

    def _again(self) -> list[str]:
        """Return the command that repeats the item."""
        return [f'again: pytest --pyargs "{self.nodeid}" {self._options()}']

    def _options(self) -> str:
        run = self._run
        return (
            f"--tensorplug-backend {run.target.backend} --tensorplug-level {run.level} "
            f"--tensorplug-seed {run.seed} --tensorplug-examples {run.examples}"
        )

    def repr_failure(
        self, excinfo: ExceptionInfo[BaseException], style: Any = None
    ) -> str | TerminalRepr:
        if isinstance(excinfo.value, NotConformantError):
            return str(excinfo.value)  # the place in this module does not matter
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.config.rootpath / _NODE, None, self.nodeid.removeprefix(f"{_NODE}::")


class _Check(_Tried):
    """A check of level 0, 1 or 4."""

    def _judge(self, verdict: dict[str, Any]) -> None:
        if verdict["status"] == "fail":
            raise NotConformantError("\n".join([verdict["message"], "", *self._again()]))
        if verdict["status"] != "pass":
            pytest.skip(f"{verdict['status']}: {verdict['message']}")


class _Row(_Tried):
    """A kernel in a dtype, natively, decomposed, or differentiated."""

    @staticmethod
    def called(item: Item) -> str:
        _, kernel, dtype, mode, *_ = item
        return f"{kernel}[{dtype}-{mode}]"

    def _judge(self, verdict: dict[str, Any]) -> None:
        status = verdict["status"]
        self.user_properties += [(key, verdict[key]) for key in _TOLD]
        if status in BLOCKING:
            raise NotConformantError("\n".join(self._findings(verdict)))
        if status not in PASSED:
            pytest.skip(f"{status}: {verdict['reason']}" if verdict["reason"] else status)

    def _findings(self, verdict: dict[str, Any]) -> list[str]:
        """Return what failed, with a script that shows the first of it again."""
        described = verdict["failures"]
        of = f"{verdict['cases']} cases"
        of += f" and {verdict['examples']} examples" * bool(verdict["examples"])
        lines = [f"{verdict['status']}: {len(verdict['failed'])} of {of}"]
        lines += [f"  {failure['case']}: {failure['message']}" for failure in described]
        more = verdict["failed"][len(described) :]
        lines += [f"  {case}" for case in more]
        if not described:
            return [*lines, verdict["reason"], "", *self._again()]
        run = {
            "suite": {"version": SUITE_VERSION, "seed": self._run.seed},
            "backend": {"name": self._run.target.backend},
        }
        return [*lines, "", *script(run, verdict["row"], described[0]).splitlines()]
