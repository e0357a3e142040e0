"""Cases for the Gaussian error linear unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle.nn import gaussian_error as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

_FAR = [-1000.0, -50, -20, -13, -9.5, -6.25, -5.5, -3, 3, 5.5, 6.25, 9.5, 50, 1000]


@cases.of(specs.GELU, oracle=oracle.gelu)
def gelu(corpus: Corpus) -> Iterator[Case]:
    """Both formulas, near 0, where they bend, and so far out that one factor vanishes."""
    yield from patterns.unary(corpus)
    yield Case("far", (corpus.of(_FAR),))
    yield Case("bend", (corpus.ordinary((257,), -7.0, 7.0),))
    for name, x in (("edges", corpus.edges()), ("far", corpus.of(_FAR))):
        yield Case(f"approximate {name}", (x,), {"approximate": True})
    yield Case("approximate", (corpus.ordinary((3, 43), -7.0, 7.0),), {"approximate": True})


@cases.of(specs.GELU_GRAD, oracle=oracle.gelu_grad)
def gelu_grad(corpus: Corpus) -> Iterator[Case]:
    """Dy is finite; x goes out to infinity."""
    x = corpus.of([*_FAR, -np.inf, np.inf, np.nan, 0.0, -0.0, 0.75, -0.75])
    for approximate in (False, True):
        more = {"approximate": approximate}
        how = "approximate" if approximate else "exact"
        yield Case(f"{how} edges", (corpus.ordinary(x.shape), x), more)
        yield Case(f"{how} bend", (corpus.ordinary((257,)), corpus.ordinary((257,), -7, 7)), more)
        yield Case(f"{how} rank 0", (corpus.ordinary(()), corpus.ordinary(())), more)
    for name, shape in (("empty", (0, 3)), ("rank 5", (1, 2, 1, 3, 2)), ("large", (LARGE,))):
        yield Case(name, (corpus.ordinary(shape), corpus.ordinary(shape)))
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.ordinary((3, 5)), corpus.ordinary((3, 5))), layout=layout)


_STEEP = (0.25, 1.0)
"""Where no slope is near 0: of one element, differences say nothing there."""


@cases.gradients(specs.GELU, "x")
def gelu_points(corpus: Corpus) -> Iterator[Case]:
    for approximate in (False, True):
        more = {"approximate": approximate}
        how = "approximate" if approximate else "exact"
        yield Case(f"{how} both sides", (corpus.of([-3.0, -1.0, -0.25, 0.0, 0.5, 2.0]),), more)
        yield Case(f"{how} rank 3", (corpus.ordinary((2, 1, 2)),), more)
        yield Case(f"{how} rank 0", (corpus.ordinary((), *_STEEP),), more)
    yield Case("empty", (corpus.ordinary((0, 2)),))


@cases.gradients(specs.GELU_GRAD, "dy", "x")
def gelu_grad_points(corpus: Corpus) -> Iterator[Case]:
    for approximate in (False, True):
        more = {"approximate": approximate}
        how = "approximate" if approximate else "exact"
        yield Case(f"{how} row", (corpus.ordinary((5,)), corpus.ordinary((5,), -3.0, 3.0)), more)
        one = corpus.ordinary((), *_STEEP), corpus.ordinary((), *_STEEP)
        yield Case(f"{how} rank 0", one, more)
    yield Case("rank 3", (corpus.ordinary((2, 1, 2)), corpus.ordinary((2, 1, 2))))
    yield Case("empty", (corpus.ordinary((0, 2)), corpus.ordinary((0, 2))))
