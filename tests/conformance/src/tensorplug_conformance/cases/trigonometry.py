"""Cases for trigonometric and hyperbolic functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle import trigonometry as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


def _function(low: float, high: float, *, far: bool) -> Callable[[Corpus], Iterator[Case]]:
    """Return the cases of a range, and some around 1, where inverses and formulas change."""
    ordinary = patterns.function(low, high, far=far)

    def generate(corpus: Corpus) -> Iterator[Case]:
        yield from ordinary(corpus)
        if corpus.dtype in dt.FLOATING:
            steps = 2.0 ** -np.arange(1, 30)
            yield Case("about 1", (corpus.of([*(1 - steps), *(1 + steps), *(steps - 1)]),))
            sizes = [11.0, 11.7, 18.7, 20.5, 64.3, 88.5, 89.3, 90.0, 300.7, 709.5, 710.3, 711.0]
            sizes += [1e9, 2e9, 1e30]
            yield Case("large ones", (corpus.of([*sizes, *(-size for size in sizes)]),))

    return generate


for spec, reference, signed, low, high in (
    (specs.ACOS, oracle.acos, False, -1.0, 1.0),
    (specs.ACOSH, oracle.acosh, False, 1.0, 30.0),
    (specs.ASIN, oracle.asin, True, -1.0, 1.0),
    (specs.ASINH, oracle.asinh, True, -30.0, 30.0),
    (specs.ATANH, oracle.atanh, True, -1.0, 1.0),
    (specs.COSH, oracle.cosh, False, -10.0, 10.0),
    (specs.SINH, oracle.sinh, True, -10.0, 10.0),
    (specs.TAN, oracle.tan, True, -1.5, 1.5),
):
    far = spec not in (specs.COSH, specs.SINH, specs.TAN)
    cases.of(spec, oracle=reference, signed_zero=signed)(_function(low, high, far=far))


@cases.of(specs.ATAN2, oracle=oracle.atan2, signed_zero=True)
def atan2(corpus: Corpus) -> Iterator[Case]:
    """Every pair of edges: quadrants, axes, signed zeros, infinities."""
    yield from patterns.binary(corpus)


# Gradients --------------------------------------------------------------------------------

for spec, low, high, *poles in (
    (specs.ACOS, -0.75, 0.75),
    (specs.ACOSH, 1.5, 4.0),
    (specs.ASIN, -0.75, 0.75),
    (specs.ASINH, -3.0, 3.0, 1j, -1j),
    (specs.ATANH, -0.75, 0.75),
    (specs.COSH, -2.0, 2.0),
    (specs.SINH, -2.0, 2.0),
    (specs.TAN, -1.0, 1.0),
):
    cases.gradients(spec, "x")(patterns.near(low, high, poles))


def _left(corpus: Corpus) -> Case:
    return Case("left half", (corpus.of([2.0, -1.5]), corpus.of([-0.5, -2.0])))


cases.gradients(specs.ATAN2, "a", "b")(patterns.pairs(0.5, 2.0, _left, patterns.origin))
