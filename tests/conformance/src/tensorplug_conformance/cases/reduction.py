"""Cases for reductions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import JUST_LARGER, LARGE, VAST
from tensorplug_conformance.oracle import reduction as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


def _axes(
    make: Callable[[tuple[int, ...]], Array], name: str, *, has_empty_value: bool
) -> Iterator[Case]:
    """Yield cases for axes of every kind. ``name``: of the attribute that holds them."""
    yield Case("all axes", (make((3, 4)),))
    yield Case("rank 0", (make(()),))
    yield Case("rank 1", (make((7,)),))
    yield Case("first axis", (make((3, 3)),), {name: 0})
    yield Case("last axis", (make((3, 3)),), {name: -1})
    yield Case("middle axis", (make((3, 3, 3)),), {name: 1})
    yield Case("outer axes", (make((2, 3, 2)),), {name: (0, 2)})
    yield Case("axes in disorder", (make((2, 3, 4)),), {name: (-1, 0)})
    yield Case("no axes", (make((2, 3)),), {name: ()})
    yield Case("kept", (make((3, 4)),), {name: 0, "keep_dims": True})
    yield Case("all kept", (make((3, 4)),), {"keep_dims": True})
    yield Case("axis of 1", (make((3, 1, 2)),), {name: 1})
    yield Case("rank 6", (make((2, 1, 3, 2, 1, 2)),), {name: (1, 2, 5)})
    yield Case("rank 9", (make((2, 1, 3, 1, 2, 1, 2, 1, 2)),), {name: (0, 2, 5, 8)})
    for kept in ((0, 2), (1, 3), (0, 3), (1, 2), (0, 1, 3), (0, 2, 3)):
        yield Case(f"of axes {kept}", (make((3, 4, 2, 5)),), {name: kept})
    yield Case("alternate axes", (make((3, 2, 4, 2, 5)),), {name: (0, 2, 4), "keep_dims": True})
    yield Case("odd", (make((5, 37)),), {name: 1})
    yield Case("long columns", (make((301, 3)),), {name: 0})
    yield Case("transposed", (make((3, 5)),), {name: 0}, layout="transposed")
    yield Case("sliced", (make((4, 5)),), {name: 1}, layout="sliced")
    yield Case("large result", (make((2, LARGE)),), {name: 0})
    yield Case("nothing kept", (make((0, 3)),), {name: 1})
    if has_empty_value:
        yield Case("empty axis", (make((2, 0)),), {name: 1})
        yield Case("empty", (make((0, 3)),))
    else:
        yield Case("empty axis", (make((2, 0)),), {name: 1}, expected=ShapeError)


def _specials(corpus: Corpus) -> Iterator[Case]:
    if corpus.floating:
        inf, nan = np.inf, np.nan
        rows = [
            [inf, 1, 2],
            [-inf, 1, 2],
            [inf, -inf, 0],
            [1, nan, 2],
            [nan, inf, 1],
            [-0.0, 0.0, -0.0],
        ]
        axis = {"axis": 1}
        yield Case("specials", (corpus.of(rows),), axis)


@cases.of(specs.SUM, oracle=oracle.total)
def total(corpus: Corpus) -> Iterator[Case]:
    """Integers wrap; a long float sum shows the accumulator's width."""
    yield from _axes(corpus.ordinary, "axis", has_empty_value=True)
    yield from _specials(corpus)
    yield Case("large", (corpus.ordinary((LARGE,), 0.0, 0.5),))
    if corpus.floating:  # the sum of ones in bfloat16 would stick at 256
        yield Case("ones", (corpus.of(np.ones(LARGE - 1)),))
    if corpus.dtype is dt.bool_:  # counts beyond 8 and 16 bits
        yield Case("all true", (np.ones((3, LARGE), bool),), {"axis": 1})
        many = np.ones((1 << 24) + 5, bool)
        right = np.array(many.size, dt.int64.numpy)
        yield Case("more than 2**24", (many,), expected=(right,), native=True, light=True)
        yield Case("true columns", (np.ones((300, 5), bool),), {"axis": 0})
    yield Case("edges", (corpus.edges()[:0] if corpus.floating else corpus.edges(),))
    if corpus.dtype is dt.float32:
        many = patterns.vast(corpus)
        right = corpus.of(many[: many.size % patterns.PERIOD].sum(dtype=np.int64))
        yield Case("more than 2**24", (many,), expected=(right,), native=True, light=True)
        for count in JUST_LARGER:
            yield Case(f"{count} elements", (corpus.ordinary((count,)),), native=True, light=True)
    if corpus.floating:
        yield Case("cancelling", (corpus.of([1000.0, 1.0, -1000.0, 1.0]),))


@cases.of(specs.PROD, oracle=oracle.product, grown=False)  # long ones vanish
def product(corpus: Corpus) -> Iterator[Case]:
    """Numbers near 1, so that long products neither overflow nor vanish; integers wrap."""

    def make(shape: tuple[int, ...]) -> Array:
        return (
            corpus.ordinary(shape, 0.75, 1.25)
            if corpus.dtype in dt.INEXACT
            else corpus.small(shape)
        )

    def modest(shape: tuple[int, ...]) -> Array:
        values = make(shape)
        if corpus.dtype in dt.INEXACT and max(shape, default=0) > 40:
            values = np.where(np.arange(values.size).reshape(shape) % 97 < 9, values, corpus.of(1))
        return values

    for case in _axes(modest, "axis", has_empty_value=True):
        if not (corpus.dtype in dt.COMPLEX and case.id == "long columns"):
            yield case
    yield from _specials(corpus)
    if corpus.dtype in (dt.int64, dt.uint64):  # no float64 holds these products
        rows = [[94906267, 94906265, 1], [1000003, 1000033, 1009], [3, 2**61 - 1, 1]]
        yield Case("beyond 2**53", (corpus.of(rows),), {"axis": 1})


@cases.of(specs.MEAN, oracle=oracle.mean)
def mean(corpus: Corpus) -> Iterator[Case]:
    """NaN where there are no elements."""
    yield from _axes(corpus.ordinary, "axis", has_empty_value=True)
    yield from _specials(corpus)
    yield Case("large", (corpus.ordinary((LARGE,), 0.0, 0.5),))


for spec, largest, name in ((specs.MAX, True, "reduction_indices"), (specs.MIN, False, "axis")):

    @cases.of(spec, oracle=oracle.extreme(largest, name))
    def extreme(corpus: Corpus, name: str = name) -> Iterator[Case]:
        """Integer extremes, all equal, all negative, NaN first and last."""
        yield from _axes(corpus.ordinary, name, has_empty_value=False)
        edges = corpus.edges()
        yield Case("edges", (edges,))
        yield Case("edge pairs", (np.stack([edges, edges[::-1]]),), {name: 0})
        yield Case("large", (corpus.ordinary((LARGE,)),))
        for label, rows_of in patterns.late(corpus):
            yield Case(label, (rows_of,), {name: 1})
            yield Case(f"{label}, columns", (rows_of.T.copy(),), {name: 0})
        for place in (0, LARGE // 2, LARGE):
            for what in (120, 0):
                usual = np.maximum(corpus.ordinary((LARGE + 1,)), corpus.of(1))
                usual[place] = what
                yield Case(f"{what} at {place}", (usual,))
        if corpus.dtype is dt.float32:
            for count in (*JUST_LARGER, VAST):
                ends = corpus.of(0) + np.zeros(count, np.float32)
                ends[[-1, 0]] = 120, -120
                right = (ends[-1] if name == "reduction_indices" else ends[0]).reshape(())
                label = f"{count} elements"
                yield Case(label, (ends,), expected=(right,), native=True, light=True)
        if corpus.floating:
            with_nan = corpus.ordinary((4, 37))
            with_nan[[0, 1, 2], [0, 16, 36]] = np.nan
            yield Case("NaN in odd rows", (with_nan,), {name: 1})
            yield Case("NaN in odd columns", (with_nan.T.copy(),), {name: 0})
        yield Case("equal", (corpus.of([[3, 3], [3, 3]]),), {name: 1})
        if corpus.floating:
            inf, nan = np.inf, np.nan
            rows = [[nan, 1, 2], [1, 2, nan], [-inf, -inf, -inf], [inf, 1, -inf], [-3, -1, -2]]
            yield Case("specials", (corpus.of(rows),), {name: 1})


for spec, reference in ((specs.ANY, oracle.quantifier(any)), (specs.ALL, oracle.quantifier(all))):

    @cases.of(spec, oracle=reference)
    def quantified(corpus: Corpus, spec: KernelSpec = spec) -> Iterator[Case]:
        """Rows with all, none and one."""
        value = spec is specs.ANY  # one of these decides the result
        yield from _axes(partial(corpus.rare, value=value), "axis", has_empty_value=True)
        rows = [
            [True, True, True],
            [False, False, False],
            [False, False, True],
            [True, True, False],
        ]
        yield Case("rows", (corpus.of(rows),), {"axis": 1})
        yield Case("last of many", (corpus.of([False] * LARGE + [True]),))
        yield Case("all of many", (corpus.of([True] * LARGE),))
        for count in (*JUST_LARGER, VAST):
            for rest in (False, True):
                last = np.full(count, rest)
                last[-1] = not rest
                right = (np.array(value),)
                label = f"{count} elements, {rest} but for the last"
                yield Case(label, (last,), expected=right, native=True, light=True)


def _first(corpus: Corpus, sign: int) -> Iterator[Case]:
    if corpus.dtype is dt.float32:
        for count in (*JUST_LARGER, VAST):
            place = count - 2 if count == VAST else count - 1  # 2**24 + 1 is no float32
            last = np.zeros(count, np.float32)
            last[place] = sign
            right = (np.array(place, np.int32),)
            yield Case(f"{count} elements", (last,), expected=right, native=True, light=True)
    yield Case("default axis", (corpus.ordinary((3, 4)),))
    yield Case("last axis", (corpus.ordinary((3, 3)),), {"axis": -1})
    yield Case("middle axis", (corpus.ordinary((3, 3, 3)),), {"axis": 1})
    yield Case("rank 1", (corpus.ordinary((7,)),))
    yield Case("rank 6", (corpus.ordinary((1, 2, 3, 2, 1, 2)),), {"axis": 2})
    yield Case("axis of 1", (corpus.ordinary((3, 1)),), {"axis": 1})
    yield Case("ties", (corpus.of([[1, 3, 3], [2, 2, 2], [0, 0, 1]]),), {"axis": 1})
    yield Case("tied columns", (corpus.of([[5, 1], [5, 7], [2, 7]]),), {"axis": 0})
    yield Case("edges", (corpus.edges(),))
    yield Case("large", (corpus.ordinary((LARGE,)),))
    yield Case("late", (corpus.of([1] * LARGE + [2]),))
    if corpus.floating:
        yield Case("late NaN", (corpus.of([1] * LARGE + [np.nan]),))
    for label, rows_of in patterns.late(corpus):
        yield Case(label, (rows_of,), {"axis": 1})
        yield Case(f"{label}, columns", (rows_of.T.copy(),), {"axis": 0})
    tied = corpus.of([1] * (LARGE + 1))
    yield Case("all tied", (tied,))
    yield Case("rank 9", (corpus.ordinary((2, 1, 2, 1, 3, 1, 2, 1, 2)),), {"axis": 4})
    yield Case("transposed", (corpus.ordinary((3, 5)),), {"axis": 0}, layout="transposed")
    yield Case("sliced", (corpus.ordinary((4, 5)),), {"axis": 1}, layout="sliced")
    yield Case("nothing kept", (corpus.ordinary((0, 3)),), {"axis": 1})
    yield Case("empty axis", (corpus.ordinary((2, 0)),), {"axis": 1}, expected=ShapeError)
    if corpus.floating:
        inf, nan = np.inf, np.nan
        rows = [[1, nan, 3], [nan, nan, 1], [-inf, -inf, -inf], [inf, 1, inf], [0.0, -0.0, -1]]
        yield Case("specials", (corpus.of(rows),), {"axis": 1})
        zeros = [[-0.0, 0.0], [0.0, -0.0]]
        yield Case("zeros of both signs", (corpus.of(zeros),), {"axis": 1})


@cases.of(specs.ARG_MAX, oracle=oracle.arg_max)
def arg_max(corpus: Corpus) -> Iterator[Case]:
    """The first of equals; a NaN counts as largest."""
    yield from _first(corpus, 1)


@cases.of(specs.ARG_MIN, oracle=oracle.arg_min)
def arg_min(corpus: Corpus) -> Iterator[Case]:
    """The first of equals; a NaN counts as smallest."""
    yield from _first(corpus, -1)


# Gradients.


def _smooth(
    name: str, low: float, high: float, *, distinct: bool = False, may_be_empty: bool = False
) -> Any:
    def points(corpus: Corpus) -> Iterator[Case]:
        def make(shape: tuple[int, ...]) -> Array:
            return corpus.distinct(shape) if distinct else corpus.ordinary(shape, low, high)

        yield Case("all axes", (make((2, 3)),))
        yield Case("first axis", (make((3, 2)),), {name: 0})
        yield Case("kept", (make((2, 3)),), {name: 1, "keep_dims": True})
        yield Case("two axes", (make((2, 2, 3)),), {name: (0, 2)})
        yield Case("axes from the end", (make((2, 1, 3)),), {name: (-1, -2)})
        yield Case("no axes", (make((2, 3)),), {name: ()})
        yield Case("rank 0", (make(()),))
        yield Case("nothing kept", (make((0, 3)),), {name: 1})
        if may_be_empty:
            yield Case("empty axis", (make((2, 0)),), {name: 1})
        if distinct:
            tied = corpus.of([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
            third = corpus.of(1) / corpus.of(3)
            zero = 0.0 if name == "reduction_indices" else 1.0
            first = [zero, (1 - zero) / 2, (1 - zero) / 2]
            yield Case("tie", (tied,), {name: 1}, expected=(corpus.of([first, [third] * 3]),))

    return points


cases.gradients(specs.SUM, "x")(_smooth("axis", -2.0, 2.0, may_be_empty=True))
cases.gradients(specs.MEAN, "x")(_smooth("axis", -2.0, 2.0))
cases.gradients(specs.MAX, "x")(_smooth("reduction_indices", 0, 0, distinct=True))
cases.gradients(specs.MIN, "x")(_smooth("axis", 0, 0, distinct=True))
cases.gradients(specs.PROD, "x")(_smooth("axis", 0.5, 1.5, may_be_empty=True))
