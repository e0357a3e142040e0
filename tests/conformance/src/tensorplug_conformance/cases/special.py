"""Cases for the complement of the error function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle import special as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

_STEPS: Final = 2.0 ** -np.arange(1, 30)
_ENDS: Final = (0.84375, 1.25, -1.25)  # where one formula ends and another begins


@cases.of(specs.ERFC, oracle=oracle.erfc)
def erfc(corpus: Corpus) -> Iterator[Case]:
    """Both tails, and numbers ever closer to the ends of formulas."""
    yield from patterns.function(-4.0, 6.0)(corpus)
    yield Case("tail", (corpus.of(np.linspace(0.0, 28.0, 113)),))
    ends = [part for end in _ENDS for step in _STEPS for part in (end + step, end - step)]
    yield Case("ends", (corpus.of(ends),))


@cases.gradients(specs.ERFC, "x")
def erfc_points(corpus: Corpus) -> Iterator[Case]:
    yield from patterns.near(-2.0, 2.0)(corpus)
    yield Case("tail", (corpus.of((3.0, 4.0, 5.0)),))
