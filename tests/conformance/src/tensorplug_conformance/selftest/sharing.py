"""The work of the self test, in parts that several processes share."""

from __future__ import annotations

import fnmatch
import gc
import os
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import dtypes
from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.pools import spawned_pool
from tensorplug_conformance.running.process import COLLECTED
from tensorplug_conformance.selftest.backends import WRONG_BACKENDS
from tensorplug_conformance.selftest.bench import Bench, Finding
from tensorplug_conformance.selftest.generation import THINNED, selected
from tensorplug_conformance.selftest.honesty import MISBEHAVIOUR, try_misbehaviour
from tensorplug_conformance.selftest.hostile import try_hostile
from tensorplug_conformance.selftest.judged import CHEATS, try_cheat
from tensorplug_conformance.selftest.memories import WRONG_MEMORIES
from tensorplug_conformance.selftest.programs import WRONG_PROGRAMS, try_program
from tensorplug_conformance.selftest.queues import WRONG_QUEUES, try_queue
from tensorplug_conformance.selftest.rare import rare_saboteurs, try_rare
from tensorplug_conformance.selftest.saboteurs import saboteurs
from tensorplug_conformance.selftest.trials import Trial, try_backend, try_clean, try_null
from tensorplug_conformance.selftest.vendors import VENDORS, try_vendor
from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.selftest.sabotage import Saboteur


_WRONG: Final = (*WRONG_BACKENDS, *WRONG_MEMORIES)
_AT_ONCE: Final = 12  # saboteurs in one part: neighbours share cases and expected outputs


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan: the clean backend, the kinds, and how many of the generated saboteurs.

    ``thin``: one generated saboteur in so many, 0 for none; ``offset``: which one.
    """

    backend: str = "cpu"
    kinds: str = "*"
    thin: int = THINNED
    offset: int = 0


@dataclass(slots=True)
class Results:
    """The results: trials, and findings by the number of the saboteur."""

    trials: list[Trial]
    findings: list[Finding]


Part = tuple[str, tuple[int, ...]]  # what, and which of them
Told = tuple[list[Trial], list[tuple[int, str, str]]]  # trials; number, outcome, evidence


def run(
    plan: Plan,
    jobs: int = 1,
    started: Callable[[int], None] = lambda _total: None,
    heard: Callable[[], None] = lambda: None,
) -> Results:
    """Carry out ``plan`` in ``jobs`` processes; their number does not change the results.

    ``started`` is told how many parts there are; ``heard`` is called after each.
    """
    parts = list(_parts(plan))
    started(len(parts))
    work = partial(_carry_out, plan)
    answers: list[Told] = []
    if jobs == 1:
        for part in parts:
            answers.append(work(part))
            heard()
    else:
        with spawned_pool(jobs, gc.set_threshold, COLLECTED) as pool:
            futures = [pool.submit(work, part) for part in parts]
            for _ in as_completed(futures):
                heard()
            answers = [future.result() for future in futures]
    chosen = _chosen(plan)
    trials = [trial for some, _ in answers for trial in some]
    clean = _clean_rows(plan)
    if clean and all(trial.right for trial in trials if trial.name.startswith("clean ")):
        trials.append(Trial(f"clean {plan.backend}: {len(clean)} rows", True, "all pass"))
    return Results(
        trials,
        [Finding(chosen[at], *rest) for _, findings in answers for at, *rest in findings],  # type: ignore[arg-type]  # an outcome
    )


def _parts(plan: Plan) -> Iterator[Part]:
    """Yield the parts, those that take long first."""
    if os.name == "posix" and _fits("hostile", plan):  # signals and processes are others elsewhere
        yield "hostile", (0,)
    for what, names in _NAMES.items():
        yield from ((what, (at,)) for at, name in enumerate(names) if _fits(name, plan))
    yield from (("rare", (at,)) for at in range(len(_rare(plan))))
    yield from (("clean", batch) for batch in _batches(len(_clean_rows(plan))))
    yield from (("saboteurs", batch) for batch in _batches(len(_chosen(plan))))


def _batches(count: int) -> list[tuple[int, ...]]:
    return [tuple(range(at, min(at + _AT_ONCE, count))) for at in range(0, count, _AT_ONCE)]


_NULLS: Final = ("zeros", "nothing")
_NAMES: Final = {
    "null": _NULLS,
    "misbehaviour": [each.name for each in MISBEHAVIOUR],
    "program": [each.name for each in WRONG_PROGRAMS],
    "backend": [each.name for each in _WRONG],
    "queue": [each.name for each in WRONG_QUEUES],
    "vendor": [each.name for each in VENDORS],
    "cheat": [each.name for each in CHEATS],
}


def _fits(name: str, plan: Plan) -> bool:
    return fnmatch.fnmatchcase(name, plan.kinds)


@cache
def _chosen(plan: Plan) -> list[Saboteur]:
    """Return the saboteurs, those of one row together, since its cases are kept only for them."""
    made = [*saboteurs(), *(selected(plan.thin, plan.offset) if plan.thin else ())]
    fitting = [saboteur for saboteur in made if _fits(saboteur.kind, plan)]
    return sorted(fitting, key=lambda saboteur: (saboteur.kernel, saboteur.mode, saboteur.dtype))


@cache
def _rare(plan: Plan) -> list[Saboteur]:
    """Return the saboteurs that thousands of calls show; each takes as long as ten others."""
    made = rare_saboteurs(10 * plan.thin, plan.offset)
    return [saboteur for saboteur in made if _fits(saboteur.kind, plan)]


@cache
def _clean_rows(plan: Plan) -> list[Row]:
    """Return the rows of the saboteurs written by hand; the clean backend passes these rows.

    It has no kernels of its own for the dtypes that it leaves to the engine.
    """
    hand = [
        saboteur
        for saboteur in saboteurs()
        if _fits(saboteur.kind, plan) and dtypes.of(saboteur.dtype) not in dtypes.WIDENED
    ]
    return sorted({Row(saboteur.kernel, saboteur.dtype, saboteur.mode) for saboteur in hand})


def _carry_out(plan: Plan, part: Part) -> Told:
    what, which = part
    if what == "saboteurs":
        return [], _tried(plan, which)
    if what == "clean":
        return try_clean(plan.backend, entries(), [_clean_rows(plan)[at] for at in which]), []
    if what == "hostile":
        return try_hostile(), []
    (at,) = which
    if what == "null":
        trial = try_null(_NULLS[at])
    elif what == "misbehaviour":
        trial = try_misbehaviour(MISBEHAVIOUR[at])
    elif what == "rare":
        saboteur = _rare(plan)[at]
        trial = try_rare(plan.backend, saboteur, entries()[saboteur.kernel])
    elif what == "program":
        trial = Trial(*try_program(WRONG_PROGRAMS[at]))
    elif what == "queue":
        trial = try_queue(plan.backend, WRONG_QUEUES[at])
    elif what == "vendor":
        trial = try_vendor(plan.backend, entries(), VENDORS[at])
    elif what == "cheat":
        trial = try_cheat(CHEATS[at])
    else:
        trial = try_backend(plan.backend, _WRONG[at])
    return [trial], []


def _tried(plan: Plan, which: tuple[int, ...]) -> list[tuple[int, str, str]]:
    """Try saboteurs in turn on one session; return numbers, since functions cannot be sent."""
    session = Session(engine_factory(None), plan.backend)
    bench = Bench(session, entries())
    findings: list[tuple[int, str, str]] = []
    for at in which:
        finding = bench.try_one(_chosen(plan)[at])
        findings.append((at, finding.outcome, finding.evidence))
    session.close()
    return findings
