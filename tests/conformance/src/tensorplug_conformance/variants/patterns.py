"""Patterns of cases that many kernels share: awkward shapes for one and for two operands."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import HUGE, JUST_LARGER, LARGE, PERIOD, VAST, wide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

__all__ = [
    "PERIOD",
    "Rows",
    "apart",
    "around",
    "binary",
    "far_out",
    "function",
    "late",
    "near",
    "origin",
    "pairs",
    "points",
    "shaped",
    "slope_points",
    "slopes",
    "specials",
    "unary",
    "vast",
]

# (case, shape of x, attributes); a case called transposed or sliced is laid out so.
Rows = tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...]

_SMALL = 4096
_APART = 0.5  # from poles; the steps of differences are far smaller
_HUGE = (dt.float32, dt.int32, dt.bool_)


def unary(
    corpus: Corpus,
    draw: Callable[[tuple[int, ...]], Array] | None = None,
    *,
    quick: bool = False,
) -> Iterator[Case]:
    """Yield cases for an elementwise kernel of one input; ``draw`` gives ordinary values.

    ``quick``: it takes nanoseconds for an element, as those without ``draw`` do.
    """
    make = draw or corpus.ordinary
    yield Case("edges", (corpus.edges(),))
    yield Case("rank 0", (make(()),))
    yield Case("empty", (make((2, 0, 3)),))
    yield Case("odd", (make((7,)),))
    yield Case("rank 6", (make((2, 1, 3, 1, 2, 3)),))
    yield Case("large", (_ending(corpus, make((LARGE,)), corpus.edges()),))
    yield Case("transposed", (make((5, 3, 2)),), layout="transposed")
    yield Case("sliced", (make((3, 5)),), layout="sliced")
    edges = corpus.edges()
    even = edges[: len(edges) // 2 * 2].reshape(2, -1)
    yield Case("transposed edges", (even,), layout="transposed")
    yield from _huge(corpus, make((PERIOD,)), vast=quick or draw is None)


def binary(
    corpus: Corpus,
    draw: Callable[[tuple[int, ...]], Array] | None = None,
    *,
    edges: Array | None = None,
    slow: bool = False,
) -> Iterator[Case]:
    """Yield cases for an elementwise kernel of two inputs; every pair of ``edges`` among them.

    ``slow``: it takes microseconds for an element, and so gets no case of millions of them.
    """
    make = draw or corpus.ordinary
    special = corpus.edges() if edges is None else edges
    yield Case("edges", (special[:, None], special[None, :]))
    yield Case("rank 0", (make(()), make(())))
    yield Case("scalar left", (make(()), make((3,))))
    yield Case("scalar right", (make((2, 3)), make(())))
    yield Case("odd", (make((7,)), make((7,))))
    yield Case("large by rank 0", (make((1033,)), make(())))
    yield Case("rank 0 by large", (make(()), make((1033,))))
    yield Case("outer", (make((5, 1)), make((1, 3))))
    yield Case("lower rank", (make((2, 3, 4)), make((3, 1))))
    yield Case("row", (make((5,)), make((4, 5))))
    yield Case("rank 6", (make((2, 1, 3, 1, 2, 1)), make((1, 3, 2, 2))))
    yield Case("rank 6 right", (make((3, 1)), make((2, 1, 1, 3, 2))))
    yield Case("axes apart", (make((1, 3, 1, 4)), make((2, 1, 5, 1))))
    yield Case("first and last", (make((1, 3, 1)), make((4, 1, 5))))
    yield Case("stretched apart", (make((1, 3, 1, 4)), make((2, 3, 5, 4))))
    yield Case("stretched apart right", (make((3, 4, 2, 5)), make((3, 1, 2, 1))))
    yield Case("empty", (make((0, 3)), make((1, 3))))
    yield Case("empty by broadcast", (make((2, 0, 3)), make((1,))))
    large = (
        _ending(corpus, make((LARGE,)), special),
        _ending(corpus, make((LARGE,)), np.roll(special, 1)),
    )
    yield Case("large", large)
    yield Case("large rows", (make((257, 259)), make((259,))))
    yield Case("transposed", (make((3, 4)), make((3, 4))), layout="transposed")
    yield Case("sliced", (make((3, 5)), make((3, 1))), layout="sliced")
    if not slow:
        vast = draw is None and edges is None
        yield from _huge(corpus, make((PERIOD,)), make((PERIOD,)), vast=vast)


def _huge(corpus: Corpus, *periods: Array, vast: bool) -> Iterator[Case]:
    """Yield the cases of millions of elements, in few dtypes: they divide the work alike.

    ``vast``: also of more than float32 can count, of a quick function. Its inputs repeat a row,
    and take no memory until they are on the device.
    """
    if corpus.dtype not in _HUGE:
        return
    inputs = tuple(np.resize(period, HUGE) for period in periods)
    yield Case("huge", inputs, period=PERIOD)
    for count in JUST_LARGER:
        inputs = tuple(np.resize(period, count) for period in periods)
        yield Case(f"{count} elements", inputs, period=PERIOD, light=True)
    if vast and corpus.dtype is dt.float32:
        rows = tuple(np.broadcast_to(period, (PERIOD, PERIOD)) for period in periods)
        yield Case("more than 2**24 elements", rows, period=PERIOD, light=True)


def vast(corpus: Corpus) -> Array:
    """Return more numbers than float32 can count; each differs from its neighbours.

    They are small whole numbers, and of each period the sum is 0, so that every sum is exact.
    """
    row = np.arange(PERIOD) * 7 % 11 - 5
    row[-1] -= row.sum()
    return np.resize(corpus.of(row), VAST)


def _ending(corpus: Corpus, ordinary: Array, edges: Array) -> Array:
    """Return ordinary values that end in special ones, where kernels treat remainders apart.

    Complex ones stay as they are: for many functions some edges lie on branch cuts.
    """
    if corpus.dtype not in dt.COMPLEX:
        ordinary[-edges.size :] = edges
    return ordinary


def apart(case: Case, reference: Callable[..., Array]) -> Case:
    """Return a case of rows of one length, turned until the last two results are different.

    Most neighbours among booleans are equal, which would hide a missing last one.
    """
    result = np.asarray(reference(*case.inputs))
    places = np.flatnonzero(result[1:] != result[:-1])
    if not places.size:
        return case
    by = -(int(places[-1]) + 2)
    rows = [np.asarray(operand) for operand in case.inputs]
    return replace(case, inputs=tuple(np.roll(row, by) for row in rows))


_LENGTHS: Final = (31, 257, 1009, 4099)  # one less or more than whole blocks, and primes
_BEYOND: Final = 70_007  # places that 16 bits do not count, and 7 modulo 8


def late(corpus: Corpus) -> Iterator[tuple[str, Array]]:
    """Yield rows whose greatest or least element lies first, in the middle, or at the very end.

    Some have equal ones, of which the last lies in a last block that is not full.
    """
    for length in _LENGTHS:
        middle, last = length // 2, length - 1
        rows = ((0,), (middle,), (last,), (last - 1, last), (middle, last), (0, last))
        usual = np.maximum(corpus.ordinary((2 * len(rows), length)), corpus.of(1))
        for at, places in enumerate(rows):
            usual[2 * at, list(places)] = 120
            usual[2 * at + 1, list(places)] = 0
        yield f"late of {length}", usual
    if corpus.dtype is dt.float32:
        few = np.maximum(corpus.ordinary((4, _BEYOND)), corpus.of(1))
        few[[0, 1, 2], -1] = 120, 0, np.nan
        few[3, [-3, -2]] = 0, 120
        yield f"late of {_BEYOND}", few


def function(
    low: float, high: float, *, far: bool = False, cut: bool = False, quick: bool = False
) -> Callable[[Corpus], Iterator[Case]]:
    """Return the cases of a function that is tried on ordinary values of a range.

    ``far``: also on complex numbers of any size, for which its results are finite. ``cut``: its
    branch cut is the negative axis, where the sign of the imaginary 0 decides (the array API's
    convention for the root and the logarithm). ``quick``: as of ``unary``.
    """

    def generate(corpus: Corpus) -> Iterator[Case]:
        def draw(shape: tuple[int, ...]) -> Array:
            if corpus.dtype in dt.COMPLEX:
                return corpus.ordinary(shape, 0.25, 2.0)  # away from poles and branch cuts
            return corpus.ordinary(shape, low, high)

        for case in unary(corpus, draw, quick=quick):
            if corpus.dtype in dt.COMPLEX and "edges" in case.id:
                continue  # on branch cuts the sign of zero decides, and conventions differ
            yield case
        yield Case("near 0", (draw((33,)) * corpus.of(2.0**-9),))
        if far and corpus.dtype in dt.COMPLEX:
            yield Case("far", (corpus.far_complex(),))
        if cut and corpus.dtype in dt.COMPLEX:
            sides = corpus.of([-4, -4, -0.25, -0.25, -1e9, -1e9])
            sides.imag = [0.0, -0.0] * 3
            yield Case("both sides of the negative axis", (sides,))

    return generate


def near(
    low: float, high: float, poles: Sequence[complex] = ()
) -> Callable[[Corpus], Iterator[Case]]:
    """Return points between ``low`` and ``high`` at which a function of one input is smooth.

    Complex points keep away from ``poles`` of its slope, where differences are inaccurate.
    """

    def points(corpus: Corpus) -> Iterator[Case]:
        def draw(shape: tuple[int, ...]) -> Array:
            x = corpus.ordinary(shape, low, high)
            for pole in poles if corpus.dtype in dt.COMPLEX else ():
                x = corpus.of(np.where(abs(x - pole) < _APART, x + 2 * _APART, x))
            return x

        yield Case("row", (draw((5,)),))
        yield Case("rank 0", (draw(()),))
        yield Case("rank 3", (draw((2, 1, 3)),))
        yield Case("empty", (draw((0, 3)),))

    return points


def around(corpus: Corpus, *values: float, **attributes: Any) -> Iterator[Case]:
    """Yield points of a function with kinks: these ``values``, six at least, in every shape."""
    x = corpus.of(values)
    yield Case("row", (x,), attributes)
    yield Case("rank 0", (x[:1].reshape(()),), attributes)
    yield Case("rank 3", (x[:6].reshape(2, 1, 3),), attributes)
    yield Case("empty", (x[:0].reshape(3, 0),), attributes)


def far_out(slope: Callable[[Array], Any], *values: float) -> Callable[[Corpus], Iterator[Case]]:
    """Return points, one by one, whose small gradients are given by value."""

    def points(corpus: Corpus) -> Iterator[Case]:
        for value in values:
            x = corpus.of([value])
            yield Case(f"at {value}", (x,), expected=(corpus.of(slope(wide(x))),))

    return points


def origin(corpus: Corpus) -> Case:
    """Return a case of zeros whose gradient is 0."""
    nothing = corpus.of([0.0, -0.0])
    return Case("origin", (nothing, nothing.copy()), expected=(abs(nothing), abs(nothing)))


def pairs(
    low: float, high: float, *extra: Callable[[Corpus], Case]
) -> Callable[[Corpus], Iterator[Case]]:
    """Return points at which a function of two inputs that broadcast is smooth."""

    def points(corpus: Corpus) -> Iterator[Case]:
        def draw(shape: tuple[int, ...]) -> Array:
            return corpus.ordinary(shape, low, high)

        yield Case("same shape", (draw((5,)), draw((5,))))
        yield Case("broadcast left", (draw((1, 3)), draw((2, 3))))
        yield Case("broadcast right", (draw((2, 3, 2)), draw((3, 1))))
        yield Case("scalar", (draw(()), draw((4,))))
        yield Case("outer", (draw((3, 1)), draw((1, 2))))
        yield Case("scalar right", (draw((2, 3)), draw(())))
        yield Case("lower rank", (draw((3, 1)), draw((2, 1, 2))))
        yield Case("rank 0", (draw(()), draw(())))
        yield Case("empty", (draw((0, 3)), draw((3,))))
        yield Case("empty by broadcast", (draw((1, 3)), draw((2, 0, 3))))
        yield from (make(corpus) for make in extra)

    return points


def specials(corpus: Corpus, rows: Rows) -> Iterator[Case]:
    """Yield the rows of a table once more, each with special values of the dtype in it.

    A kernel that only moves elements must keep every one of them, to the last bit.
    """
    edges = corpus.edges()
    for number, (name, shape, attributes) in enumerate(rows):
        if 0 < math.prod(shape) <= _SMALL:
            values = np.resize(np.roll(edges, 5 * number), shape)
            yield Case(f"{name}, special values", (values,), attributes)


def shaped(rows: Rows) -> Callable[[Corpus], Iterator[Case]]:
    """Return a generator function for the cases of a table, for a kernel of one input."""

    def generate(corpus: Corpus) -> Iterator[Case]:
        for name, shape, attributes in rows:
            layout: Any = name if name in ("transposed", "sliced") else "dense"
            yield Case(name, (corpus.ordinary(shape),), attributes, layout=layout)

    return generate


def points(rows: Rows, most: int = 96) -> Callable[[Corpus], Iterator[Case]]:
    """Return a generator function for a table's small cases, at which gradients are tried."""

    def generate(corpus: Corpus) -> Iterator[Case]:
        for name, shape, attributes in rows:
            if name not in ("transposed", "sliced") and math.prod(shape) <= most:
                yield Case(name, (corpus.ordinary(shape),), attributes)

    return generate


def slopes(corpus: Corpus) -> Iterator[Case]:
    """Yield the cases of dy and x that the gradient kernels of activations share."""
    yield Case("bend", (corpus.ordinary((257,)), corpus.ordinary((257,), -8.0, 8.0)))
    for name, shape in (("rank 0", ()), ("empty", (0, 3)), ("rank 5", (1, 2, 1, 3, 2))):
        yield Case(name, (corpus.ordinary(shape), corpus.ordinary(shape)))
    yield Case("large", (corpus.ordinary((LARGE,)), corpus.ordinary((LARGE,))))
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.ordinary((3, 5)), corpus.ordinary((3, 5))), layout=layout)


def slope_points(corpus: Corpus) -> Iterator[Case]:
    """Yield the gradient points of such a kernel, in dy and x."""
    yield Case("row", (corpus.ordinary((5,)), corpus.ordinary((5,), -3.0, 3.0)))
    # One element where no slope is near 0, since differences are inaccurate there.
    yield Case("rank 0", (corpus.ordinary((), 0.25, 1.0), corpus.ordinary((), 0.25, 1.0)))
    yield Case("rank 3", (corpus.ordinary((2, 1, 2)), corpus.ordinary((2, 1, 2))))
    yield Case("empty", (corpus.ordinary((0, 2)), corpus.ordinary((0, 2))))
