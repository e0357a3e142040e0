"""Cases for the sigmoid-weighted linear unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.nn import sigmoid_linear as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


@cases.of(specs.SILU, oracle=oracle.silu)
def silu(corpus: Corpus) -> Iterator[Case]:
    """Near 0, and far out, where the power overflows or vanishes before the product does."""
    yield from patterns.unary(corpus)
    yield Case("near 0", (corpus.ordinary((65,)) * corpus.of(2.0**-7),))
    far = [-1000.0, -740, -104, -100, -95, -88, -50, -17, -9.5, 9.5, 50, 100, 1000]
    yield Case("far", (corpus.of(far),))


@cases.gradients(specs.SILU, "x")
def silu_points(corpus: Corpus) -> Iterator[Case]:
    yield from patterns.around(corpus, -3.0, -1.5, -0.5, 0.0, 0.5, 2.0)
    yield from patterns.far_out(_slope, -40.0, -20.0, -9.5)(corpus)
    ends = corpus.of([float("-inf"), float("inf")])
    yield Case("infinite", (ends,), expected=(corpus.of([0.0, 1.0]),))


def _slope(x: Array) -> Array:
    return np.asarray((1 + np.exp(-x) + x * np.exp(-x)) / (1 + np.exp(-x)) ** 2)


@cases.of(specs.SILU_GRAD, oracle=oracle.silu_grad)
def silu_grad(corpus: Corpus) -> Iterator[Case]:
    """Dy is finite; x goes out to infinity."""
    far = corpus.of([-np.inf, -1000, -100, -30, -9.5, -1.25, -0.0, 0.0, 1.25, 9.5, 100, np.inf])
    yield Case("far", (corpus.ordinary(far.shape), far))
    yield Case("not a number", (corpus.ordinary((1,)), corpus.of([np.nan])))
    yield from patterns.slopes(corpus)


@cases.gradients(specs.SILU_GRAD, "dy", "x")
def silu_grad_points(corpus: Corpus) -> Iterator[Case]:
    yield from patterns.slope_points(corpus)
