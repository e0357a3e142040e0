"""Conformance cases for special functions.

Only the conformance suite imports this module.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import ArgumentError
from tensorplug_conformance import Case, CaseTable, Published
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.variants import patterns
from tensorplug_science.oracles import bessel, gamma, incomplete, normal
from tensorplug_science.special import specs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance import Array, Corpus

cases = CaseTable()

_STEPS: Final = 2.0 ** -np.arange(1, 30)
_TENS: Final = 10.0 ** np.arange(-4, 5)
_MAGNITUDES: Final = 3.0 * 10.0 ** np.arange(-30, 31)


def _about(*places: float) -> tuple[float, ...]:
    """Return numbers ever closer to each place."""
    return tuple(float(value) for at in places for value in (*(at + _STEPS), *(at - _STEPS)))


_ROOT: Final = 1.4616321449683623  # of digamma
_BELOW_0: Final = tuple(np.arange(-79, 0) / 8.0 + 0.0625)

# Further numbers, by the name of a case: zeros, tails, where one formula ends and another begins.
_HARD: Final[dict[KernelSpec, dict[str, tuple[float, ...]]]] = {
    specs.LGAMMA: {
        "about zeros": _about(1.0, 2.0),
        "ends of intervals": _about(0.5, 1.5, 3.0, -0.5),
        "below 0": (*_BELOW_0, *_about(-2.4570247382208006, -1.0)),
        "powers of 10": tuple(_TENS),
        "all magnitudes": tuple(_MAGNITUDES),
    },
    specs.DIGAMMA: {
        "about zeros": _about(_ROOT),
        "ends of intervals": _about(1.0, 2.0),
        "below 0": (*_BELOW_0, *_about(-0.5040830082644554)),
        "powers of 10": tuple(_TENS),
        "all magnitudes": tuple(_MAGNITUDES),
    },
    specs.ERFCX: {
        "tails": tuple(np.linspace(-9.0, 30.0, 157)),
        "ends": _about(0.84375, 1.25, -1.25),
        "powers of 10": tuple(_TENS),
    },
    specs.ERFINV: {"about 1": _about(1.0, -1.0), "ends": _about(0.85, -0.85)},
    specs.NDTRI: {
        "about 1": _about(1.0, 0.5),
        "ends": _about(0.075, 0.925),
        "tiny": tuple(10.0 ** -np.arange(1.0, 38.0)),
    },
    specs.BESSEL_I0E: {"ends": _about(16.0, -16.0), "powers of 10": tuple(_TENS)},
    specs.BESSEL_I1E: {"ends": _about(16.0, -16.0), "powers of 10": tuple(_TENS)},
    specs.BESSEL_J0: {
        "about zeros": _about(2.404825557695773, 5.520078110286311),
        "ends": _about(5.0),
        "far": tuple(np.linspace(5.0, 300.0, 119)),
    },
    specs.BESSEL_J1: {
        "about zeros": _about(3.8317059702075125, 7.015586669815619),
        "ends": _about(5.0),
        "far": tuple(np.linspace(5.0, 300.0, 119)),
    },
}

# What CUDA's tables allow of the rounded value; far out, an absolute error.
# https://docs.nvidia.com/cuda/cuda-c-programming-guide/#mathematical-functions-appendix
_J: Final = Published({"float32": 9.5, "float64": 7.5}, {"float32": 2.2e-6, "float64": 5e-12}, 8.0)
_PUBLISHED: Final = {
    specs.BESSEL_J0: _J,
    specs.BESSEL_J1: _J,
    specs.LGAMMA: Published({"float32": 6.5, "float64": 4.5}, gap=(-24, -2)),
    specs.ERFCX: Published({"float32": 4.5, "float64": 4.5}),
    specs.ERFINV: Published({"float32": 2.5, "float64": 5.5}),
    specs.NDTRI: Published({"float32": 5.5, "float64": 8.5}),
}


def _function(spec: KernelSpec, low: float, high: float) -> Callable[[Corpus], Iterator[Case]]:
    ordinary = patterns.function(low, high)

    def generate(corpus: Corpus) -> Iterator[Case]:
        yield from ordinary(corpus)
        for name, values in _HARD[spec].items():
            yield Case(name, (corpus.of(values),))

    return generate


for spec, reference, ulp, signed, low, high in (
    (specs.LGAMMA, gamma.lgamma, 8, False, 0.1, 30.0),
    (specs.DIGAMMA, gamma.digamma, 8, False, 0.1, 30.0),
    (specs.ERFCX, normal.erfcx, 8, False, -4.0, 8.0),
    (specs.ERFINV, normal.erfinv, 8, True, -0.99, 0.99),
    (specs.NDTRI, normal.ndtri, 8, False, 0.001, 0.999),
    (specs.BESSEL_I0E, bessel.bessel_i0e, 16, False, -20.0, 20.0),
    (specs.BESSEL_I1E, bessel.bessel_i1e, 16, True, -20.0, 20.0),
    (specs.BESSEL_J0, bessel.bessel_j0, 8, False, -5.0, 5.0),
    (specs.BESSEL_J1, bessel.bessel_j1, 8, False, -5.0, 5.0),
):
    cases.of(
        spec,
        oracle=reference,
        ulp={"*": ulp},
        signed_zero=signed,
        published=_PUBLISHED.get(spec),
    )(_function(spec, low, high))


_EDGES: Final = (0.0, -0.0, 0.001, 0.5, 1.0, 1.5, 3.0, 10.0, 15.0, 100.0, np.inf, -1.0, np.nan)
_CONCENTRATIONS: Final = (0.001, 0.125, 0.5, 1.0, 2.5, 8.0, 14.75, 15.0, 40.0, 300.0, 6000.0)
_DEVIATIONS: Final = (-5.0, -2.0, -0.5, -0.125, 0.0, 0.125, 0.5, 2.0, 5.0)

for spec, combined in ((specs.IGAMMA, incomplete.igamma), (specs.IGAMMAC, incomplete.igammac)):

    @cases.of(spec, oracle=combined, ulp={"*": 64}, grown=False)  # which takes long
    def incomplete_gamma(corpus: Corpus) -> Iterator[Case]:
        """All pairs of special values; both tails of small and large concentrations."""
        yield from patterns.binary(
            corpus,
            lambda shape: corpus.ordinary(shape, 0.05, 30.0),
            edges=corpus.of(_EDGES),
            slow=True,
        )
        a = np.array(_CONCENTRATIONS)[:, None]
        x = a + np.sqrt(a) * np.array(_DEVIATIONS)
        yield Case("about the mean", (corpus.of(a), corpus.of(np.maximum(x, 0.0))))
        wide = np.array([0.001, 0.4375, 0.5, 1.25, 1.5, 3.0, 9.0, 20.0, 24.0, 30.0, 60.0])
        yield Case("tails", (corpus.of(a), corpus.of(wide)))


@cases.of(specs.BETAINC, oracle=incomplete.betainc, ulp={"*": 64}, grown=False)  # which takes long
def betainc(corpus: Corpus) -> Iterator[Case]:
    """All combinations of special values; both tails of small and large concentrations."""
    edges = corpus.of((0.0, -0.0, 0.001, 0.5, 1.0, 3.0, 15.0, np.inf, -1.0, np.nan))
    places = corpus.of((0.0, -0.0, 0.03125, 0.5, 0.96875, 1.0, -0.25, 1.5, np.nan))
    yield Case("edges", (edges[:, None, None], edges[:, None], places))
    some = corpus.ordinary((2, 1, 3), 0.05, 30.0), corpus.ordinary((4, 1), 0.05, 30.0)
    yield Case("broadcast", (*some, corpus.ordinary((3,), 0.01, 0.99)))
    yield Case("scalars", tuple(corpus.of(0.5 * np.ones(())) for _ in range(3)))
    yield Case("empty", (corpus.of(np.ones((0, 3))), corpus.of([1.0]), corpus.of([[0.5]])))
    few = corpus.of([0.5, 2.5, 8.0])[:, None], corpus.of([[1.5]])
    yield Case("large", (*few, corpus.ordinary((LARGE // 3 + 1,), 0.01, 0.99)))
    concentrations = np.array(_CONCENTRATIONS[:-1])  # the reference loses digits beyond
    a, b = concentrations[:, None, None], concentrations[:, None]
    mean = a / (a + b)
    deviation = np.sqrt(mean * (1 - mean) / (a + b + 1))
    x = np.clip(mean + deviation * np.array(_DEVIATIONS), 2.0**-9, 1 - 2.0**-9)
    yield Case("about the mean", (corpus.of(a), corpus.of(b), corpus.of(x)))
    wide = np.array([2.0**-9, 0.0625, 0.25, 0.5, 0.75, 0.90625, 1 - 2.0**-9])
    yield Case("tails", (corpus.of(a), corpus.of(b), corpus.of(wide)))


@cases.of(specs.POLYGAMMA, oracle=gamma.polygamma, ulp={"*": 32})
def polygamma(corpus: Corpus) -> Iterator[Case]:
    """Each order on both sides of 0."""
    for case in patterns.unary(corpus, lambda shape: corpus.ordinary(shape, 0.1, 20.0)):
        yield Case(case.id, case.inputs, {"n": 1}, layout=case.layout, period=case.period)
    for n in (1, 2, 3, 6):
        ordinary = corpus.of([*np.arange(1, 40) / 4.0, *(_TENS[2:] if n < 3 else ())])
        yield Case(f"order {n}", (ordinary,), {"n": n})
        yield Case(f"order {n} below 0", (corpus.of(_BELOW_0),), {"n": n})
    yield Case("order 0", (corpus.of([1.0]),), {"n": 0}, expected=ArgumentError)


# Gradients --------------------------------------------------------------------------------


# Near poles and zeros, where differences are inaccurate: the slope by a formula.


def _slope_of_lgamma(x: Array) -> Array:
    return gamma.digamma(x).value


def _slope_of_digamma(x: Array) -> Array:
    return gamma.polygamma(x, n=1).value


def _slope_of_erfinv(x: Array) -> Array:
    return np.asarray(np.exp(normal.erfinv(x) ** 2) * (np.sqrt(np.pi) / 2))


def _slope_of_ndtri(x: Array) -> Array:
    return np.asarray(np.exp(normal.ndtri(x) ** 2 / 2) * np.sqrt(2 * np.pi))


def _exactly(
    corpus: Corpus, name: str, values: tuple[float, ...], slope: Callable[..., Array], **given: int
) -> Case:
    """Return a case at ``values`` that expects these gradients."""
    x = corpus.of(values)
    return Case(name, (x,), given, expected=(corpus.of(slope(x)),))


def _points(
    low: float, high: float, further: Callable[[Corpus], Iterator[Case]]
) -> Callable[[Corpus], Iterator[Case]]:
    smooth = patterns.near(low, high)

    def points(corpus: Corpus) -> Iterator[Case]:
        yield from smooth(corpus)
        yield from further(corpus)

    return points


_NEAR_POLES: Final = (-0.375, -1.25, -2.5)


def _exact_points(
    name: str, values: tuple[float, ...], slope: Callable[..., Array]
) -> Callable[[Corpus], Iterator[Case]]:
    return lambda corpus: iter([_exactly(corpus, name, values, slope)])


for spec, low, high, name, hard, slope in (
    (specs.LGAMMA, 0.5, 6.0, "below 0", _NEAR_POLES, _slope_of_lgamma),
    (specs.DIGAMMA, 0.5, 6.0, "below 0", _NEAR_POLES, _slope_of_digamma),
    (specs.ERFINV, -0.75, 0.75, "about 1", (0.9375, -0.96875), _slope_of_erfinv),
    (specs.NDTRI, 0.25, 0.75, "tails", (0.03125, 0.9375), _slope_of_ndtri),
):
    steep = spec in (specs.ERFINV, specs.NDTRI)
    why = "slopes are exponentials of squares, whose errors grow" if steep else ""
    points_of = _points(low, high, _exact_points(name, hard, slope))
    cases.gradients(spec, "x", near_only=why)(points_of)


def _plain_points(places: dict[str, tuple[float, ...]]) -> Callable[[Corpus], Iterator[Case]]:
    return lambda corpus: (Case(name, (corpus.of(at),)) for name, at in places.items())


_FURTHER: Final[tuple[tuple[KernelSpec, float, float, dict[str, tuple[float, ...]]], ...]] = (
    (specs.ERFCX, -1.0, 3.0, {"tail": (7.0, 9.0), "far": (12.0, 20.0)}),
    (specs.BESSEL_I0E, 0.25, 4.0, {"far": (18.0, 20.0), "below 0": (-2.0, -0.25)}),
    (specs.BESSEL_I1E, 0.25, 4.0, {"far": (18.0, 20.0), "below 0": (-2.0, -0.25)}),
    (specs.BESSEL_J0, -4.0, 4.0, {"zero": (2.40625,), "near 0": (0.0, 0.001), "far": (7.5, 20.0)}),
    (specs.BESSEL_J1, -4.0, 4.0, {"zero": (3.875,), "near 0": (0.0, 0.001), "far": (7.5, 20.0)}),
)
for spec, low, high, places in _FURTHER:
    points_of = _points(low, high, _plain_points(places))
    # That of a scaled function is the difference of two which are nearly equal: 0.19 from 4.5 on.
    cancelled = 0.25 if spec in (specs.BESSEL_I0E, specs.BESSEL_I1E) else 0.0
    cases.gradients(spec, "x", cancelled=cancelled)(points_of)


@cases.gradients(specs.POLYGAMMA, "x", cancelled=16)
def polygamma_points(corpus: Corpus) -> Iterator[Case]:
    """Where differences are accurate; near poles, by the next order."""
    for case in patterns.near(0.75, 6.0)(corpus):
        yield Case(case.id, case.inputs, {"n": 1})
    yield Case("by differences", (corpus.of([1.5, 2.0, 4.0]),), {"n": 2})
    for n in (1, 2):

        def slope(x: Array, n: int = n) -> Array:
            return gamma.polygamma(x, n=n + 1).value

        yield _exactly(corpus, f"order {n}", (0.25, 0.75, 1.5, 4.0), slope, n=n)
        yield _exactly(corpus, f"order {n} below 0", _NEAR_POLES, slope, n=n)


for spec, at_0 in ((specs.IGAMMA, (1.0, 0.0)), (specs.IGAMMAC, (-1.0, 0.0))):

    @cases.gradients(spec, "a", "x", near_only="differences of the reference are inaccurate")
    def incomplete_points(corpus: Corpus, at_0: tuple[float, ...] = at_0) -> Iterator[Case]:
        """Small and large concentrations, and the slopes at 0."""
        yield from patterns.pairs(0.75, 4.0)(corpus)
        yield Case("large", (corpus.of([20.0, 100.0]), corpus.of([19.0, 104.0])))
        nothing = corpus.of([0.0, 0.0])
        slopes = (nothing, corpus.of(at_0))
        yield Case("at 0", (corpus.of([1.0, 2.0]), nothing), expected=slopes)


@cases.gradients(specs.BETAINC, "x", near_only="differences of the reference are inaccurate")
def betainc_points(corpus: Corpus) -> Iterator[Case]:
    """Small and large concentrations; for whole ones the density is exact."""

    def case(name: str, a: list[float], b: list[float], x: list[float]) -> Case:
        return Case(name, (corpus.of(a), corpus.of(b), corpus.of(x)))

    yield case("small", [0.25, 0.75, 1.0, 2.5], [0.5, 2.0, 1.5, 0.75], [0.25, 0.5, 0.625, 0.75])
    # Differences are inaccurate for these; for whole numbers 1 / B is whole.
    for name, a, b, x in (("one large", 1, 20, 0.0625), ("other large", 20, 3, 0.875),
                          ("large", 20, 16, 0.5), ("both large", 30, 40, 0.4375)):  # fmt: skip
        whole = math.comb(a + b - 2, a - 1) * (a + b - 1)
        slope = whole * x ** (a - 1) * (1 - x) ** (b - 1)
        inputs = corpus.of([float(a)]), corpus.of([float(b)]), corpus.of([x])
        yield Case(name, inputs, expected=(corpus.of([slope]),))
    yield Case("broadcast", (corpus.of([[2.0], [3.0]]), corpus.of([1.5]), corpus.of([0.25, 0.5])))
    yield Case("rank 0", (corpus.of(2.0), corpus.of(1.5), corpus.of(0.25)))
    deep = corpus.of([[[0.25], [0.75]]])
    yield Case("rank 3", (corpus.of([2.0, 3.0, 0.5]), corpus.of([[1.5]]), deep))
    at_ends = case("at ends", [1.0, 2.0, 2.0], [3.0, 2.0, 1.0], [0.0, 0.0, 1.0])
    yield Case(at_ends.id, at_ends.inputs, expected=(corpus.of([3.0, 0.0, 2.0]),))
