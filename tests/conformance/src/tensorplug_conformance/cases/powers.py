"""Cases for exponentials, logarithms, reciprocals and roots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle import powers as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


def _function(low: float, high: float, *, far: bool) -> Callable[[Corpus], Iterator[Case]]:
    """Return the cases of a range, and some about 1 and -1 and at whole powers."""
    ordinary = patterns.function(low, high, far=far)

    def generate(corpus: Corpus) -> Iterator[Case]:
        yield from ordinary(corpus)
        if corpus.dtype in dt.FLOATING:
            steps = 2.0 ** -np.arange(1, 30)
            yield Case("about 1", (corpus.of([*(1 - steps), *(1 + steps)]),))
            yield Case("about -1", (corpus.of([*(steps - 1), *(-steps - 1)]),))
            yield Case("tiny", (corpus.of([*steps**3, *-(steps**2)]),))
            yield Case("powers of 10", (corpus.of(10.0 ** np.arange(-4, 5)),))

    return generate


for spec, reference, signed, low, high in (
    (specs.EXPM1, oracle.expm1, True, -5.0, 10.0),
    (specs.LOG1P, oracle.log1p, True, -0.99, 30.0),
    (specs.LOG2, oracle.log2, False, 0.01, 30.0),
    (specs.LOG10, oracle.log10, False, 0.01, 30.0),
    (specs.RECIPROCAL, oracle.reciprocal, True, 0.1, 30.0),
    (specs.RSQRT, oracle.rsqrt, True, 0.01, 30.0),
):
    far = spec in (specs.LOG2, specs.LOG10, specs.LOG1P, specs.RECIPROCAL, specs.RSQRT)
    cases.of(spec, oracle=reference, signed_zero=signed)(_function(low, high, far=far))


for spec, combine in ((specs.HYPOT, oracle.hypot), (specs.LOG_ADD_EXP, oracle.log_add_exp)):

    @cases.of(spec, oracle=combine)
    def combined(corpus: Corpus) -> Iterator[Case]:
        """Every pair of edges: squares and powers that overflow, infinities, NaN."""
        yield from patterns.binary(corpus)


# Gradients --------------------------------------------------------------------------------

for spec, low, high in (
    (specs.EXPM1, -1.0, 2.0),
    (specs.LOG1P, -0.5, 3.0),
    (specs.LOG2, 0.5, 3.0),
    (specs.LOG10, 0.5, 3.0),
    (specs.RECIPROCAL, 0.5, 3.0),
    (specs.RSQRT, 0.5, 3.0),
):
    cases.gradients(spec, "x")(patterns.near(low, high))


cases.gradients(specs.HYPOT, "a", "b")(patterns.pairs(0.5, 2.0, patterns.origin))


def _infinite(corpus: Corpus) -> Case:
    ends = corpus.of([np.inf, -np.inf])
    half = corpus.of([0.5, 0.5])
    return Case("equal infinities", (ends, ends.copy()), expected=(half, half))


def _equal(corpus: Corpus) -> Case:
    return Case("equal", (corpus.of([1.0, -2.0]), corpus.of([1.0, -2.0])))


cases.gradients(specs.LOG_ADD_EXP, "a", "b")(patterns.pairs(-2.0, 2.0, _equal, _infinite))
