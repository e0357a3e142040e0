"""Decompositions ask a backend for no dtypes but those of their calls, and those of each backend.

Then a row passes on each backend that has the dtypes of its cases, whatever else that backend
lacks: one dtype, two, or all but three. Nothing is computed here. Calls are traced for their
types, down to the primitives.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from tensorplug.compile.control.sub_programs import SubProgram
from tensorplug.compile.tracing.decompositions import trace_decomposition
from tensorplug.engine.widening import find_decomposition
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import _decomposed_dtypes, entries
from tensorplug_conformance.primitives import PRIMITIVES, REQUIRED_DTYPES
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.needs import needed_dtypes
from tensorplug_example_minimal.backend import MinimalBackend

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tensorplug.compile.tracing.calls import Call
    from tensorplug.engine.plans import Plan
    from tensorplug.plugin import DType
    from tensorplug_conformance.case import Case
    from tensorplug_conformance.case_entry import CaseEntry

REQUIRED = {dt.of(name) for name in REQUIRED_DTYPES}
KEYS = {"Multinomial": {dt.uint32}}  # where there is none, int32 with the same bits
INITIALS = ["AB", "C", "D", "EFGHIJK", "L", "M", "NOPQ", "R", "S", "TUVWXYZ"]


def served(entry: CaseEntry) -> Iterable[DType]:
    some = _decomposed_dtypes().get(entry.spec.name)
    return [dtype for dtype in entry.dtypes if some is None or dtype in some]


def different(entry: CaseEntry, dtype: DType) -> Iterator[Case]:
    """Yield cases of one dtype that differ by more than their sizes and numbers."""
    seen = set()
    for case in entry.generate(Corpus(dtype, 0, entry.spec.name)):
        if case.refused or case.period or case.native:
            continue
        given = [
            None if x is None else x[0].dtype if isinstance(x, list) else x.dtype
            for x in case.inputs
        ]
        key = repr((given, sorted(case.attributes.items())))
        if key not in seen:
            seen.add(key)
            yield case


def on_host(plan: Plan) -> bool:
    owned = plan.state.decomposition(plan.spec.name)
    return owned is not None and owned.entry.on_host


def expands(plan: Plan) -> bool:
    return (
        plan.spec.name not in PRIMITIVES
        and find_decomposition(plan) is not None
        and not on_host(plan)
    )


def asked_dtypes(calls: Iterable[Call]) -> set[DType]:
    asked = set()
    for call in calls:
        asked |= {output.type.dtype for output in call.plan.outputs}
        for part in call.plan.attributes.values():
            each: tuple[Any, ...] = part if isinstance(part, tuple) else (part,)
            for program in each:
                if isinstance(program, SubProgram):
                    asked |= asked_dtypes(program.calls)
    return asked


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """An engine on primitives alone, with all dtypes."""
    monkeypatch.setattr(MinimalBackend, "dtypes", dt.STORED)
    session = Session(engine_factory(None), "minimal", primitives_only=True)
    yield session
    session.close()


@pytest.mark.parametrize("initials", INITIALS)
def test_decompositions_ask_for_the_dtypes_of_their_calls(
    everything: Session, initials: str
) -> None:
    wrong: defaultdict[str, set[str]] = defaultdict(set)
    tried = 0
    for name, entry in sorted(entries().items()):
        if name[0] not in initials or name in PRIMITIVES:
            continue
        for dtype in served(entry):
            for case in different(entry, dtype):
                plan, _ = everything.engine.explain(
                    entry.spec, everything.device, case.types, case.attributes
                )
                if on_host(plan) or dtype == dt.string:  # the example's device holds bytes
                    continue
                traced = trace_decomposition(everything.engine, plan, expand=expands)
                assert traced is not None, (name, dtype, case.id, plan.how)
                tried += 1
                known = needed_dtypes(entry.spec, case) | REQUIRED | KEYS.get(name, set())
                more = asked_dtypes(traced.calls) - known
                if more:
                    wrong[name].add(f"{dtype}, case {case.id!r}: {more}")
    assert tried > 100
    assert wrong == {}
