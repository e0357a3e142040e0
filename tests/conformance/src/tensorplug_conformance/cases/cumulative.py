"""Cases for running sums and products."""

from __future__ import annotations

from itertools import product as pairs
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import JUST_LARGER, LARGE, VAST
from tensorplug_conformance.oracle import cumulative as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

_FORMS: tuple[dict[str, Any], ...] = tuple(
    {"exclusive": exclusive, "reverse": reverse}
    for exclusive, reverse in pairs((False, True), repeat=2)
)


def _running(corpus: Corpus, make: Callable[[tuple[int, ...]], Array]) -> Iterator[Case]:
    yield Case("defaults", (make((5,)),))
    for form in _FORMS:
        name = ", ".join(key for key, on in form.items() if on) or "plain"
        yield Case(f"{name}, first axis", (make((4, 3)),), {"axis": 0, **form})
        yield Case(f"{name}, last axis", (make((3, 4)),), {"axis": -1, **form})
        yield Case(f"{name}, middle axis", (make((2, 5, 3)),), {"axis": 1, **form})
        yield Case(f"{name}, long", (make((1009,)),), form)
        yield Case(f"{name}, long rows", (make((2, 263)),), {"axis": 1, **form})
        yield Case(f"{name}, long columns", (make((263, 2)),), {"axis": 0, **form})
        yield Case(f"{name}, one", (make((1,)),), form)
        yield Case(f"{name}, empty", (make((0,)),), form)
        if corpus.floating:
            inf, nan = np.inf, np.nan
            rows = [[1, inf, 2], [1, nan, 2], [inf, -inf, 1], [-0.0, 0.0, -0.0], [0, inf, 1]]
            yield Case(f"{name}, specials", (corpus.of(rows),), {"axis": 1, **form})
    yield Case("rank 6", (make((2, 1, 3, 1, 2, 2)),), {"axis": 2})
    yield Case("odd", (make((3, 37)),), {"axis": 1})
    yield Case("many rows", (make((3, 5, 700)),), {"axis": -2, "reverse": True})
    yield Case("long and wide", (make((301, 2051)),), {"axis": 0})
    yield Case("long, wide and deep", (make((3, 131, 700)),), {"axis": 1, "exclusive": True})
    yield Case("nothing beside", (make((0, 3)),), {"axis": 1})
    yield Case("transposed", (make((3, 5)),), {"axis": 0}, layout="transposed")
    yield Case("sliced", (make((4, 5)),), {"axis": 1, "exclusive": True}, layout="sliced")
    yield Case("rank 0", (make(()),), expected=ShapeError)
    yield Case("no such axis", (make((2,)),), {"axis": 1}, expected=ShapeError)


@cases.of(specs.CUMSUM, oracle=oracle.running_sum)
def running_sum(corpus: Corpus) -> Iterator[Case]:
    """Integers wrap; a long float sum shows the accumulator's width."""
    yield from _running(corpus, corpus.ordinary)
    if not corpus.floating:
        yield Case("edges", (corpus.edges(),))
    yield Case("large", (corpus.ordinary((LARGE,), 0.0, 0.5),), {"exclusive": True})
    yield Case("large columns", (corpus.ordinary((4099, 17), 0.0, 0.5),), {"reverse": True})
    if corpus.dtype is dt.float32:
        many = patterns.vast(corpus)
        sums = np.cumsum(many[: patterns.PERIOD].astype(np.int64)).astype(np.float32)
        for count in (*JUST_LARGER, VAST):
            right = (np.resize(sums, count),)
            label = f"{count} elements"
            yield Case(label, (many[:count],), expected=right, native=True, light=True)


@cases.of(specs.CUMPROD, oracle=oracle.running_product, grown=False)  # long ones vanish
def running_product(corpus: Corpus) -> Iterator[Case]:
    """Numbers near 1, so that long products neither overflow nor vanish; integers wrap."""

    def make(shape: tuple[int, ...]) -> Array:
        if corpus.dtype not in dt.INEXACT:
            return corpus.small(shape)
        values = corpus.ordinary(shape, 0.75, 1.25)
        if max(shape, default=0) > 40:
            values = np.where(np.arange(values.size).reshape(shape) % 97 < 9, values, corpus.of(1))
        return values

    yield from _running(corpus, make)
    if corpus.dtype not in dt.COMPLEX:  # none of which stays near 1 for long
        swing = np.where(np.arange(LARGE) % 2, 2.0, 0.5) if corpus.floating else np.ones(LARGE)
        yield Case("large", (corpus.of(swing),), {"exclusive": True})


def _smooth(low: float, high: float) -> Callable[[Corpus], Iterator[Case]]:
    def points(corpus: Corpus) -> Iterator[Case]:
        for form in _FORMS:
            name = ", ".join(key for key, on in form.items() if on) or "plain"
            yield Case(f"{name}, rank 1", (corpus.ordinary((5,), low, high),), form)
            shape = corpus.ordinary((3, 2), low, high)
            yield Case(f"{name}, first axis", (shape,), {"axis": 0, **form})
        yield Case("middle axis", (corpus.ordinary((2, 3, 2), low, high),), {"axis": -2})
        yield Case("last axis", (corpus.ordinary((2, 1, 3), low, high),), {"axis": 2})
        yield Case("one element", (corpus.ordinary((3, 1), low, high),), {"axis": -1})
        yield Case("empty axis", (corpus.ordinary((2, 0)),), {"axis": 1})
        yield Case("empty rows", (corpus.ordinary((0, 3)),), {"axis": 1})
        zeros = [[0.0, 2.0, 3.0], [2.0, 0.0, 0.0], [1.0, 0.0, 3.0], [2.0, -1.0, 0.5]]
        yield Case("zeros", (corpus.of(zeros),), {"axis": 1})
        yield Case("zeros, back", (corpus.of(zeros),), {"axis": 1, "reverse": True})

    return points


cases.gradients(specs.CUMSUM, "x")(_smooth(-2.0, 2.0))
cases.gradients(specs.CUMPROD, "x")(_smooth(0.5, 1.5))
