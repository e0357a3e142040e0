"""Cases for elementwise arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import HUGE, LARGE
from tensorplug_conformance.floats import finfo
from tensorplug_conformance.oracle import elementwise as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

from tensorplug_conformance.variants.ties import ties, whole_ties

cases = CaseTable()

# Whether -0.0 must come out as the formula says; at 0 of Mod and the choices of Maximum the
# definitions leave the sign open.
for spec, reference, signed in (
    (specs.NEG, oracle.neg, True),
    (specs.ABS, oracle.absolute, True),
    (specs.FLOOR, oracle.floor, True),
    (specs.SQUARE, oracle.square, True),
):
    cases.of(spec, oracle=reference, signed_zero=signed)(patterns.unary)


def _of_parts(corpus: Corpus) -> Iterator[Case]:
    """Yield cases of a sum or difference: complex ones are taken part by part."""
    yield from patterns.binary(corpus)
    if corpus.dtype in dt.COMPLEX:
        special = corpus.special_parts().ravel()
        yield Case("special parts", (special[:, None], special))


cases.of(specs.ADD, oracle=oracle.add, signed_zero=True)(_of_parts)
cases.of(specs.SUB, oracle=oracle.sub, signed_zero=True)(_of_parts)

for spec, reference, signed in (
    (specs.MULTIPLY, oracle.multiply, True),
    (specs.MAXIMUM, oracle.maximum, False),
    (specs.MINIMUM, oracle.minimum, False),
    (specs.SQUARED_DIFFERENCE, oracle.squared_difference, True),
):
    cases.of(spec, oracle=reference, signed_zero=signed)(patterns.binary)


for spec, reference, signed, low, high in (
    (specs.LOG, oracle.log, False, 0.01, 30.0),
    (specs.SQRT, oracle.sqrt, True, 0.0, 300.0),
    (specs.SIN, oracle.sin, True, -10.0, 10.0),
    (specs.COS, oracle.cos, False, -10.0, 10.0),
    (specs.ATAN, oracle.atan, True, -10.0, 10.0),
    (specs.ERF, oracle.erf, True, -4.0, 4.0),
    (specs.TANH, oracle.tanh, True, -6.0, 6.0),
):
    far = spec in (specs.LOG, specs.SQRT, specs.ATAN)
    cases.of(spec, oracle=reference, signed_zero=signed)(
        patterns.function(low, high, far=far, cut=spec in (specs.LOG, specs.SQRT), quick=True)
    )


@cases.of(specs.EXP, oracle=oracle.exp)
def exponential(corpus: Corpus) -> Iterator[Case]:
    """Results of every magnitude, from the least subnormal number to the largest one."""
    yield from patterns.function(-10.0, 10.0, quick=True)(corpus)
    if corpus.dtype in dt.FLOATING:
        about: Any = finfo(corpus.dtype.numpy)
        bounds = [float(about.smallest_subnormal), float(about.tiny), float(about.max)]
        least, tiny, most = np.log(np.array(bounds, np.longdouble))
        yield Case("subnormal results", (corpus.of(np.linspace(least, tiny, 19)),))
        yield Case("all magnitudes", (corpus.of(np.linspace(tiny, most, 41)[1:-1]),))
    if corpus.dtype in dt.COMPLEX:
        # The power of the real part alone overflows, its products with cosine and sine do not.
        most = float(np.log(np.longdouble(finfo(corpus.dtype.numpy).max)))
        angles = [0.8, 2.3, -2.4, -0.75, 7.0, 0.8, -2.3, 1.5]
        above = [0.25, 0.25, 0.125, 0.0625, 0.2, 0.3, 0.3, 0.0]
        beyond = [complex(most + by, angle) for by, angle in zip(above, angles, strict=True)]
        small = [complex(-most * share, 2.0) for share in (0.5, 0.9, 0.99)]
        yield Case("near overflow", (corpus.of([*beyond, *small]),))


@cases.of(specs.REAL_DIV, oracle=oracle.real_div, signed_zero=True)
def real_div(corpus: Corpus) -> Iterator[Case]:
    """Complex numbers are divided by ordinary ones only: zero divisors have no single answer."""
    for case in patterns.binary(corpus):
        if corpus.dtype not in dt.COMPLEX or case.id != "edges":
            yield case
    yield from _far_quotients(corpus)


def _far_quotients(corpus: Corpus) -> Iterator[Case]:
    """Yield quotients of complex numbers near the largest ones that are finite themselves."""
    if corpus.dtype not in dt.COMPLEX:
        return
    numbers = corpus.far_complex(1.0)
    a, b = (x.ravel() for x in np.meshgrid(numbers, numbers))
    quotients = oracle.real_div(a, b)
    about: Any = finfo(corpus.dtype.numpy)
    parts = np.abs(np.stack([quotients.real, quotients.imag])).max(axis=0)
    kept = (parts < about.max / 4) & (parts > about.tiny)
    yield Case("far", (a[kept], b[kept]))


@cases.of(specs.DIV_NO_NAN, oracle=oracle.div_no_nan)
def div_no_nan(corpus: Corpus) -> Iterator[Case]:
    """Every pair of edges: infinities and NaN by 0 are 0 as well."""
    yield from patterns.binary(corpus)
    yield from _far_quotients(corpus)


def _finite(corpus: Corpus) -> Array:
    """Return the finite edges: with infinities, floor division has more than one convention."""
    edges = corpus.edges()
    return edges[~np.isinf(edges)] if corpus.floating else edges


def _moderate(corpus: Corpus) -> Array:
    """Return edges whose quotients neither overflow nor vanish."""
    edges = _finite(corpus)
    if not corpus.floating:
        return edges
    size = np.abs(edges)
    kept = np.isnan(edges) | (edges == 0) | ((size > 2.0**-10) & (size < 2.0**10))
    return np.asarray(edges[kept])


for spec, reference in ((specs.FLOOR_DIV, oracle.floor_div), (specs.MOD, oracle.mod)):

    @cases.of(spec, oracle=reference, ordinary=("a", "b"))
    def quotient(corpus: Corpus) -> Iterator[Case]:
        """Signs in every combination, zero divisors, INT_MIN by -1."""
        yield from patterns.binary(corpus, edges=_moderate(corpus))
        halves = corpus.of([-3.5, -2.0, -0.5, 0.5, 2.0, 3.5])
        if corpus.dtype not in dt.UNSIGNED:
            signs = corpus.of([-7, -6, -1, 1, 6, 7])
            yield Case("signs", (signs[:, None], corpus.of([-3, -2, 2, 3])))
        same = corpus.of([1, 6, 0, 7, 100])
        yield Case("equal a and b", (same, same), alike=("a", "b"))
        if corpus.floating:
            yield Case("halves", (halves[:, None], halves[None, :]))
            infinities = corpus.of([np.inf, -np.inf])
            yield Case("infinities", (infinities[:, None], infinities))
            mixed = corpus.of([np.inf, 7.5, -np.inf, 0.25])
            yield Case("infinities among numbers", (mixed, corpus.of([2, 2, 3, -0.5])))
            yield Case("by infinity", (corpus.of([7.5, 0.25, 3.0]), infinities[:1]))
            yield Case("by minus infinity", (corpus.of([-7.5, -0.25, -3.0]), infinities[1:]))


@cases.of(specs.POW, oracle=oracle.power)
def power(corpus: Corpus) -> Iterator[Case]:
    """Integers by negative powers, 0**0, negative bases with whole exponents."""
    if corpus.dtype in dt.INTEGER:
        yield from patterns.binary(corpus, corpus.small)
    elif corpus.dtype in dt.COMPLEX:
        for case in patterns.binary(corpus, lambda shape: corpus.ordinary(shape, 0.5, 2.0)):
            if case.id != "edges":
                yield case
    else:
        yield from patterns.binary(
            corpus, lambda shape: corpus.ordinary(shape, 0.1, 4.0), edges=_power_edges(corpus)
        )
        whole = corpus.of([-3, -2, -1, 0, 1, 2, 3])
        yield Case("whole", (corpus.of([-2.5, -1, -0.0, 0, 0.5, 3])[:, None], whole))
        # Odd up to the last digit, beyond which all floats are even.
        odd = 2.0 ** np.arange(2, corpus.dtype.significand + 1) - 1
        yield Case("large odd", (corpus.of([[-1.0], [1.0]]), corpus.of([*odd, *-odd])))


def _power_edges(corpus: Corpus) -> Array:
    return corpus.of([0.0, -0.0, 1, -1, 0.5, -0.5, 2, -3, np.inf, -np.inf, np.nan])


_TARGETS: tuple[str, ...] = tuple(sorted(dtype.name for dtype in dt.FIXED))


@cases.of(specs.CAST, oracle=oracle.cast, signed_zero=True)
def cast(corpus: Corpus) -> Iterator[Case]:
    """From this dtype to every other: integers wrap, NaN and infinities give 0."""
    for target in _TARGETS:
        yield Case(f"edges to {target}", (corpus.edges(),), {"dtype": target})
        yield Case(f"ordinary to {target}", (corpus.ordinary((7,)),), {"dtype": target})
    if (
        corpus.floating
    ):  # a check whether a whole array can be converted at once must see both signs
        sizes = 2.0 ** np.array([0, 7, 8, 15, 16, 31, 32, 63, 64, 70])
        sides = {"large": sizes, "small": -sizes, "NaN": [3, np.nan, 7], "inf": [2, np.inf]}
        for side, values in sides.items():
            for target in sorted(dtype.name for dtype in dt.INTEGER):
                yield Case(f"{side} to {target}", (corpus.of(values),), {"dtype": target})
        upper = corpus.of([2.0**63, 2.0**63 * 1.5, np.nan, -5, np.inf])
        octaves = corpus.of(np.outer([1.13, -1.61], 2.0 ** np.arange(31)))
        for target in ("int32", "int64", "float64"):
            yield Case(f"octaves to {target}", (octaves,), {"dtype": target})
        yield Case("upper half of uint64", (upper,), {"dtype": "uint64"})
        yield from ties(corpus)
    if corpus.dtype in dt.INTEGER:
        yield from whole_ties(corpus)
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((3, 5)),)
        yield Case(f"{layout} to float32", inputs, {"dtype": "float32"}, layout=layout)
    yield Case("empty to float32", (corpus.ordinary((0, 2)),), {"dtype": "float32"})
    yield Case("rank 0 to int32", (corpus.ordinary(()),), {"dtype": "int32"})
    yield Case("rank 6 to bool", (corpus.small((1, 2, 1, 2, 1, 2)),), {"dtype": "bool"})
    yield Case("large to float32", (corpus.ordinary((LARGE,)),), {"dtype": "float32"})
    # All lanes of a vector but one are left over, between dtypes of every pair of widths.
    for target in _TARGETS:
        yield Case(f"15 to {target}", (corpus.ordinary((2, 15)),), {"dtype": target})
    yield Case("rank 3 to float32", (corpus.ordinary((2, 3, 4)),), {"dtype": "float32"})
    yield Case("rank 4 to float32", (corpus.ordinary((2, 3, 2, 3)),), {"dtype": "float32"})
    if corpus.dtype in (dt.float32, dt.int32):
        other = "int32" if corpus.floating else "float32"
        period = corpus.ordinary((patterns.PERIOD,))
        inputs = (np.resize(period, HUGE),)
        yield Case(f"huge to {other}", inputs, {"dtype": other}, period=patterns.PERIOD)
        rows = (np.broadcast_to(period, (patterns.PERIOD, patterns.PERIOD)),)
        more, to = f"more than 2**24 to {other}", {"dtype": other}
        yield Case(more, rows, to, period=patterns.PERIOD, light=True)


@cases.of(specs.SELECT, oracle=oracle.select, signed_zero=True)
def select(corpus: Corpus) -> Iterator[Case]:
    """All three operands broadcast."""

    def choice(shape: tuple[int, ...]) -> Array:
        return corpus.indices(shape, 2, "bool")

    edges = corpus.edges()
    yield Case("edges", (choice(edges.shape), edges, edges[::-1].copy()))
    for name, shapes in {
        "rank 0": ((), (), ()),
        "scalar condition": ((), (3,), (3,)),
        "plain": ((3, 5), (3, 5), (3, 5)),
        "three ways": ((4, 1, 1), (3, 1), (2,)),
        "wide condition": ((3, 4), (), (4,)),
        "empty": ((0, 3), (1, 3), (3,)),
        "rank 6": ((1, 2, 1, 3, 1, 2), (2, 1, 2, 1, 3, 1), (2,)),
        "axes apart": ((1, 3, 1, 4), (2, 1, 5, 1), (3, 1, 1)),
        "rank 5 at the end": ((3, 1), (2,), (1, 2, 1, 3, 2)),
        "large": ((LARGE,), (LARGE,), ()),
    }.items():
        yield Case(
            name, (choice(shapes[0]), corpus.ordinary(shapes[1]), corpus.ordinary(shapes[2]))
        )
    if corpus.dtype in (dt.float32, dt.int32):
        parts = (choice((4099,)), corpus.ordinary((4099,)), corpus.ordinary((4099,)))
        yield Case("huge", tuple(np.resize(part, HUGE) for part in parts), period=4099)
        sides = (choice((1031, 1)), corpus.ordinary((1031, 1033)), corpus.ordinary((1033,)))
        yield Case("huge rows", sides, native=True)
    for layout in ("transposed", "sliced"):
        shape = (3, 5)
        inputs = (choice(shape), corpus.ordinary(shape), corpus.ordinary(shape))
        yield Case(layout, inputs, layout=layout)


# Gradients: points where the functions are smooth, and the conventions where they are not.


for spec, low, high, *poles in (
    (specs.NEG, -2.0, 2.0),
    (specs.SQUARE, -2.0, 2.0),
    (specs.EXP, -1.0, 2.0),
    (specs.LOG, 0.5, 3.0),
    (specs.SQRT, 0.5, 4.0),
    (specs.SIN, -3.0, 3.0),
    (specs.COS, -3.0, 3.0),
    (specs.ATAN, -2.0, 2.0, 1j, -1j),
    (specs.ERF, -1.5, 1.5),
    (specs.TANH, -1.5, 1.5, 0.5j * np.pi, -0.5j * np.pi),
):
    # 1 - y**2 has no more digits than y
    cancelled = float(spec is specs.TANH)
    cases.gradients(spec, "x", cancelled=cancelled)(patterns.near(low, high, poles))


@cases.gradients(specs.ABS, "x")
def abs_points(corpus: Corpus) -> Iterator[Case]:
    yield from patterns.around(corpus, -2.5, -0.5, 0.5, 3.0, 1.5, -1.0)
    yield Case("at 0", (corpus.of([0.0, -0.0]),), expected=(corpus.of([0.0, 0.0]),))


def _tie(corpus: Corpus) -> Case:
    at = corpus.of([1.0, -2.0])
    half = corpus.of([0.5, 0.5])
    return Case("tie", (at, at.copy()), expected=(half, half))


for spec, low, high, extra in (
    (specs.ADD, -2.0, 2.0, ()),
    (specs.SUB, -2.0, 2.0, ()),
    (specs.MULTIPLY, -2.0, 2.0, ()),
    (specs.REAL_DIV, 0.5, 3.0, ()),
    (specs.POW, 0.5, 2.0, ()),
    (specs.MAXIMUM, -2.0, 2.0, (_tie,)),
    (specs.MINIMUM, -2.0, 2.0, (_tie,)),
    (specs.SQUARED_DIFFERENCE, -2.0, 2.0, ()),
):
    cases.gradients(spec, "a", "b")(patterns.pairs(low, high, *extra))


def _by_zero(corpus: Corpus) -> Case:
    zeros = corpus.of([0.0, 0.0])
    return Case("by zero", (corpus.of([1.0, 0.0]), zeros), expected=(zeros, zeros))


cases.gradients(specs.DIV_NO_NAN, "a", "b")(patterns.pairs(0.5, 3.0, _by_zero))


@cases.gradients(specs.MOD, "a", "b")
def mod_points(corpus: Corpus) -> Iterator[Case]:
    """Away from whole quotients, where the remainder jumps."""
    yield Case("same shape", (corpus.of([5.25, -5.25, 4.0]), corpus.of([2.0, 2.0, -3.0])))
    yield Case("broadcast", (corpus.of([[5.25], [-1.5]]), corpus.of([2.0, -4.0])))
    yield Case("rank 3", (corpus.of([[[5.25], [-1.5]]]), corpus.of(2.0)))
    yield Case("rank 0", (corpus.of(7.5), corpus.of([2.0, -4.0])))
    yield Case("rank 3 divisor", (corpus.of(7.5), corpus.of([[[2.0], [-4.0]]])))
    yield Case("empty", (corpus.of([[]]), corpus.of([2.0])))
    yield Case("empty divisor", (corpus.of([[7.5]]), corpus.of([])))


@cases.gradients(specs.CAST, "x")
def cast_points(corpus: Corpus) -> Iterator[Case]:
    """To the same dtype, and to a wider one."""
    for name, shape in (("rank 0", ()), ("rank 3", (2, 1, 3)), ("empty", (0,))):
        yield Case(name, (corpus.ordinary(shape),), {"dtype": corpus.dtype.name})
    wider = "float64" if corpus.floating else "complex128"
    yield Case(f"to {wider}", (corpus.ordinary((2, 3)),), {"dtype": wider})


@cases.gradients(specs.SELECT, "t", "e")
def select_points(corpus: Corpus) -> Iterator[Case]:
    condition = np.array([[True, False, True], [False, False, True]])
    yield Case("broadcast", (condition, corpus.ordinary((3,)), corpus.ordinary((2, 1))))
    yield Case("scalars", (condition, corpus.ordinary(()), corpus.ordinary(())))
    yield Case("rank 3", (condition, corpus.ordinary((2, 1, 1)), corpus.ordinary((1, 2, 1))))
    yield Case("empty", (condition[:0], corpus.ordinary((3,)), corpus.ordinary((0, 1))))
    yield Case("empty choice", (condition[:0], corpus.ordinary((0, 3)), corpus.ordinary((3,))))


@cases.of(specs.ADD_N, oracle=oracle.add_n)
def add_n(corpus: Corpus) -> Iterator[Case]:
    """Lists of one to many; sums of integers wrap."""
    for count in (1, 2, 3, 7, 32):
        yield Case(f"{count} of rank 2", ([corpus.ordinary((2, 3)) for _ in range(count)],))
    edges = corpus.edges()
    yield Case("edges", ([edges, edges[::-1].copy()],))
    for name, shape in (("rank 0", ()), ("empty", (0, 2)), ("rank 6", (1, 2, 1, 3, 1, 2))):
        yield Case(name, ([corpus.ordinary(shape) for _ in range(3)],))
    yield Case("large", ([corpus.ordinary((LARGE,)) for _ in range(3)],))
    for layout in ("transposed", "sliced"):
        yield Case(layout, ([corpus.ordinary((3, 5)) for _ in range(3)],), layout=layout)
    yield Case("none", ([],), expected=ArgumentError)
    shapes = ([corpus.ordinary((2,)), corpus.ordinary((1,))],)
    yield Case("two shapes", shapes, expected=ShapeError)


@cases.gradients(specs.ADD_N, "xs")
def add_n_points(corpus: Corpus) -> Iterator[Case]:
    yield Case("three", ([corpus.ordinary((2, 3)) for _ in range(3)],))
    yield Case("one", ([corpus.ordinary((2,))],))
    for name, shape in (("rank 0", ()), ("rank 3", (2, 1, 3)), ("empty", (0, 2))):
        yield Case(name, ([corpus.ordinary(shape) for _ in range(2)],))
