"""Conformance cases for special functions.

Only the conformance suite imports this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug_conformance import Case, CaseTable, Published
from tensorplug_conformance.variants import patterns
from tensorplug_science.oracles import bessel
from tensorplug_science.special import specs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance import Corpus

cases = CaseTable()

_STEPS: Final = 2.0 ** -np.arange(1, 30)
_TENS: Final = 10.0 ** np.arange(-4, 5)


def _about(*places: float) -> tuple[float, ...]:
    """Return numbers ever closer to each place."""
    return tuple(float(value) for at in places for value in (*(at + _STEPS), *(at - _STEPS)))


# Further numbers, by the name of a case: zeros, tails, where one formula ends and another begins.
_HARD: Final[dict[KernelSpec, dict[str, tuple[float, ...]]]] = {
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
_PUBLISHED: Final = {specs.BESSEL_J0: _J, specs.BESSEL_J1: _J}


def _function(spec: KernelSpec, low: float, high: float) -> Callable[[Corpus], Iterator[Case]]:
    ordinary = patterns.function(low, high)

    def generate(corpus: Corpus) -> Iterator[Case]:
        yield from ordinary(corpus)
        for name, values in _HARD[spec].items():
            yield Case(name, (corpus.of(values),))

    return generate


for spec, reference, ulp, signed, low, high in (
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


# Gradients --------------------------------------------------------------------------------


def _points(
    low: float, high: float, further: Callable[[Corpus], Iterator[Case]]
) -> Callable[[Corpus], Iterator[Case]]:
    smooth = patterns.near(low, high)

    def points(corpus: Corpus) -> Iterator[Case]:
        yield from smooth(corpus)
        yield from further(corpus)

    return points


def _plain_points(places: dict[str, tuple[float, ...]]) -> Callable[[Corpus], Iterator[Case]]:
    return lambda corpus: (Case(name, (corpus.of(at),)) for name, at in places.items())


_FURTHER: Final[tuple[tuple[KernelSpec, float, float, dict[str, tuple[float, ...]]], ...]] = (
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
