"""Random examples: Hypothesis looks for a variation of a kernel's cases that fails.

The search is derandomised: the same suite, seed and number try the same examples on every backend.
A failing example is simplified, and its name suffices to make it again.
"""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING, NoReturn

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Presentation
from tensorplug_conformance.trying.rows import run_case
from tensorplug_conformance.trying.variations import (
    DRAWS,
    SIZES,
    Variation,
    Variations,
)
from tensorplug_conformance.variants.histories import NOTHING, every_before
from tensorplug_conformance.variants.layouts import LAYOUTS
from tensorplug_conformance.verdicts import PASSED

if TYPE_CHECKING:
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.denominator import Row
    from tensorplug_conformance.session import Session
    from tensorplug_conformance.verdicts import Failure, RowVerdict


_MOST = 3  # special values in one example
_SELDOM = 3  # one example in one more than that keeps the sizes of its case, or is presented


def strategy(variations: Variations) -> st.SearchStrategy[Variation]:
    """Return the strategy that draws variations, the simplest ones first."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Variation:
        case = draw(st.sampled_from(variations.cases))
        count = variations.sizes(case)
        others = st.lists(st.sampled_from(SIZES), min_size=count, max_size=count)
        sizes = draw(others) if draw(st.integers(0, _SELDOM)) else ()
        attributes = [
            (name, draw(st.sampled_from(cases)))
            for name, cases in variations.attributes.items()
            if draw(st.booleans())
        ]
        inputs = len(variations.spec.input_names)
        value = st.tuples(
            st.integers(0, max(inputs - 1, 0)), st.integers(0, 2**10), st.integers(0, 63)
        )
        values = st.lists(value, max_size=_MOST if inputs else 0)
        return Variation(
            case,
            draw(st.integers(0, DRAWS - 1)),
            draw(st.sampled_from(LAYOUTS)),
            tuple(sizes),
            tuple(attributes),
            tuple(draw(values)),
            draw(_presentations(variations)) if draw(st.integers(0, _SELDOM)) == _SELDOM else "",
        )

    return drawn()


def _presentations(variations: Variations) -> st.SearchStrategy[str]:
    """Return the strategy that draws ids of presentations."""
    names = variations.spec.input_names
    layouts = st.lists(st.sampled_from(LAYOUTS), min_size=len(names), max_size=len(names)).map(
        lambda drawn: tuple(pair for pair in zip(names, drawn, strict=True) if pair[1] != "dense")
    )
    before = st.sampled_from((NOTHING, *every_before(variations.spec)))
    made = st.builds(Presentation, layouts, st.sampled_from(("apart", "packed")), before)
    return made.map(lambda presentation: presentation.id)


class _FailedError(Exception):
    """An example failed."""


def search(
    session: Session, entry: CaseEntry, row: Row, seed: int, count: int
) -> tuple[int, Failure | None]:
    """Try ``count`` examples of a row; return how many were run, and the simplest that fails.

    Where none does but some are right only within a vendor's bounds, the first of these.

    Fewer are run where there are fewer, or where no case can be varied.
    """
    variations = Variations(entry, dt.of(row.dtype), seed)
    if not variations.cases or count < 1:
        return 0, None
    tried: set[str] = set()
    failures: list[Failure] = []
    tolerated: list[Failure] = []  # which do not end the search

    @hypothesis.seed(zlib.crc32(f"{seed}:{row.kernel}:{row.dtype}:{row.mode}".encode()))
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
    )
    @hypothesis.given(strategy(variations))
    def run(variation: Variation) -> None:
        case = variations.made(variation)
        if case.id in tried and not failures:
            return
        tried.add(case.id)
        failure = run_case(session, entry, row, case, aftermath=False)
        if failure is not None and failure.tolerated:
            tolerated.append(failure)
        elif failure is not None:
            failures.append(failure)
            _fail(failure)

    try:
        run()
    except (_FailedError, Flaky):  # the last that failed is the simplest
        return len(tried), failures[-1]
    return len(tried), tolerated[0] if tolerated else None


def _fail(failure: Failure) -> NoReturn:
    raise _FailedError(failure.message.partition("\n")[0])


def add_examples(
    verdict: RowVerdict, session: Session, entry: CaseEntry, seed: int, count: int
) -> None:
    """Try examples of a row that has passed so far, and add the outcome to its verdict."""
    if verdict.vendor not in PASSED:
        return
    started = time.perf_counter()
    verdict.examples, failure = search(session, entry, verdict.row, seed, count)
    verdict.seconds += time.perf_counter() - started
    if failure is not None:
        verdict.status = "fail"
        if failure.tolerated:
            verdict.tolerated.append(failure.case)
        else:
            verdict.vendor = "fail"
        verdict.failed.append(failure.case)
        verdict.failures.append(failure)
