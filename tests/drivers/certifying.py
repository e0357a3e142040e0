"""One driver from its environment to its result."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from tensorplug_conformance import denominator
from tensorplug_conformance.reporting import report as reports
from tensorplug_conformance.reporting.report import ReportError

from . import results
from .drivers import install
from .environments import Environment, SetUpError
from .results import NO_DEVICE, NOT_SET_UP, Result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .drivers import Driver

PART: Final = 24  # kernels of level 3 in one run: few for a hang, many for a start


@dataclass(frozen=True)
class Plan:
    """The work on each driver.

    ``level``: 2 or 3, or 0 for the trial alone. ``seconds``: the time limit of each command.
    ``budget``: seconds for level 3. ``jobs``: processes of the suite, 0 for its default.
    """

    folder: Path
    level: int
    seconds: float
    budget: float
    jobs: int
    processor: str
    say: Callable[[str], None]


def certify(driver: Driver, plan: Plan) -> Result:
    """Return the result of one driver; a driver's errors are part of it."""
    today = datetime.now(UTC).date().isoformat()
    result = Result(driver.name, driver.title, plan.processor, today, version("tensorplug"))
    environment = Environment(driver, plan.folder)
    missing = ""
    if driver.package and environment.library is None:
        plan.say(f"installing {driver.package}")
        missing = install(driver.package)
    if missing:
        return replace(result, note=missing)
    plan.say("making its environment")
    try:
        environment.folder.mkdir(parents=True, exist_ok=True)
        environment.set_up(plan.seconds)
    except SetUpError as error:
        return replace(result, trial=NOT_SET_UP, note=str(error))
    library = environment.library
    if library is None:
        return replace(result, note=f"nothing that was installed has a library of {driver.title}")
    environment.show(library)
    result = _tried(result, environment, plan)
    if result.refused or result.note or not plan.level:
        return result
    if driver.watches:
        plan.say("calling every kernel, watched")
        code, text = environment.script("watched.py", plan.seconds)
        return _timed(results.watched(result, text), code, plan)
    result = _certified(result, environment, plan)
    return _with_level_3(result, environment, plan) if plan.level > 2 and result.level else result


def _tried(result: Result, environment: Environment, plan: Plan) -> Result:
    """Return ``result`` with the device and the verdict of its trial."""
    plan.say("trying the driver")
    code, text = environment.script(f"about_{environment.driver.backend}.py", plan.seconds)
    told = [line.removeprefix("@@ ") for line in text.splitlines() if line.startswith("@@ ")]
    if not told:
        last = [*text.splitlines(), f"exit status {code}"][-1]
        return _timed(replace(result, trial=NO_DEVICE, note=last), code, plan)
    about = json.loads(told[0])
    if "error" in about:
        return replace(result, trial=NO_DEVICE, note=about["error"])
    return replace(
        result,
        device=about["device"],
        version=about["version"],
        trial=about["trial"],
        findings=tuple(about["findings"]),
        refused=about["refused"],
    )


def _certified(result: Result, environment: Environment, plan: Plan) -> Result:
    plan.say("certifying level 2")
    folder = environment.folder / "level-2"
    code = _conformance(environment, plan, folder, plan.seconds, "--level", "2")
    try:
        return results.certified(result, reports.read(folder))
    except ReportError:
        note = f"no report: the suite ended with exit status {code}, see {environment.log}"
        return _timed(replace(result, note=note), code, plan)


def _with_level_3(result: Result, environment: Environment, plan: Plan) -> Result:
    """Return ``result`` with as many kernels of level 3 as there is time for.

    Another kernel comes first each day, so that those at the end have their turn, too.
    """
    known = denominator.entries()
    rows = denominator.rows(3, known)
    names = sorted({row.kernel for row in rows})
    first = datetime.now(UTC).toordinal() * PART % len(names)
    end = time.monotonic() + plan.budget
    turned = names[first:] + names[:first]
    for at in range(0, len(turned), PART):
        part = turned[at : at + PART]
        left = end - time.monotonic()
        if left <= 0:
            break
        plan.say(f"level 3: {part[0]} to {part[-1]}, {left:.0f} s left")
        folder = environment.folder / "level-3" / part[0]
        chosen = ["--level", "3", "--kernels", ",".join(part)]
        code = _conformance(environment, plan, folder, left, *chosen)
        try:
            result = results.with_part(result, reports.read(folder), len(rows))
        except ReportError:
            if code is None:  # there was no time left for these
                break
            told = f"{part[0]} to {part[-1]}: no report, exit status {code}"
            result = replace(result, failures=(*result.failures, told))
    return result


def _conformance(
    environment: Environment, plan: Plan, folder: Path, seconds: float, *options: str
) -> int | None:
    (folder / reports.NAME).unlink(missing_ok=True)
    run = ["run", "--backend", environment.driver.backend, "--report", str(folder)]
    if plan.jobs:
        run += ["--jobs", str(plan.jobs)]
    return environment.command("tensorplug-conformance", *run, *options, seconds=seconds)


def _timed(result: Result, code: int | None, plan: Plan) -> Result:
    if code is not None:
        return result
    return replace(result, note=f"it did not end within {plan.seconds / 60:.0f} minutes")
