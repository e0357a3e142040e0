"""Cases for rounding, signs, bounds and neighbours."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.floats import finfo
from tensorplug_conformance.oracle import rounding as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

for spec, reference, signed in (
    (specs.CEIL, oracle.ceil, True),
    (specs.ROUND, oracle.round, True),
    (specs.TRUNC, oracle.trunc, True),
    (specs.SIGN, oracle.sign, False),
    (specs.SIGN_BIT, oracle.signbit, False),
):

    @cases.of(spec, oracle=reference, signed_zero=signed)
    def rounded(corpus: Corpus) -> Iterator[Case]:
        """Halves and their neighbours, of either sign."""
        yield from patterns.unary(corpus)
        if corpus.dtype in dt.FLOATING:
            halves = corpus.of(np.arange(-4.5, 5.0, 0.5))
            yield Case("halves", (halves,))
            powers = 2.0 ** np.arange(1, corpus.dtype.significand - 1)
            large = np.concatenate([powers + 0.5, powers + 1.5])
            yield Case("large halves", (corpus.of([*large, *-large]),))
            for name, to in (("above", np.inf), ("below", -np.inf)):
                yield Case(f"{name} halves", (np.nextafter(halves, corpus.of(to)),))
        if corpus.dtype in dt.COMPLEX:
            yield Case("complex halves", (corpus.of([0.5 + 1.5j, -2.5 - 0.5j, 1.5j, -0.2 + 2j]),))
            about: Any = finfo(corpus.dtype.numpy)
            parts = np.array([1, 1 + 1j, 1 - 1j, -1 - 0.5j, -1j, 0.25j - 1], np.clongdouble)
            yield Case("modulus beyond the dtype", (corpus.of(parts * float(about.max)),))
            yield Case("tiny modulus", (corpus.of(parts * float(about.tiny)),))


@cases.of(specs.COPY_SIGN, oracle=oracle.copysign, signed_zero=True)
def copysign(corpus: Corpus) -> Iterator[Case]:
    """Every pair of edges, zeros of both signs among them."""
    yield from patterns.binary(corpus)


@cases.of(specs.NEXT_AFTER, oracle=oracle.nextafter, signed_zero=True)
def nextafter(corpus: Corpus) -> Iterator[Case]:
    """Every pair of edges, and all powers of 2, where the distance to both neighbours differs."""
    yield from patterns.binary(corpus)
    about: Any = finfo(corpus.dtype.numpy)
    exponents = np.arange(int(about.minexp) - int(about.nmant), int(about.maxexp))
    powers = corpus.of(np.ldexp(np.longdouble(1), exponents.astype(np.int32)))
    yield Case("up from powers of 2", (powers, corpus.of(np.inf)))
    yield Case("down from powers of 2", (powers, corpus.of(-np.inf)))
    yield Case("below powers of 2", (np.nextafter(powers, corpus.of(0)), powers))


@cases.of(specs.CLIP_BY_VALUE, oracle=oracle.clip_by_value)
def clip_by_value(corpus: Corpus) -> Iterator[Case]:
    """Bounds within and beyond the dtype, equal ones, infinite ones, fractions for integers."""
    usual = {"clip_value_min": 1, "clip_value_max": 3}
    for case in patterns.unary(corpus):
        yield replace(case, attributes=usual)
    for name, low, high in (
        ("equal bounds", 2, 2),
        ("fractions", 0.5, 2.75),
        ("negative fractions", -2.75, -0.5),
        ("no lower bound", -np.inf, 2),
        ("no upper bound", 2, np.inf),
        ("no bounds", -np.inf, np.inf),
    ):
        if corpus.dtype in dt.UNSIGNED and high < 0:
            continue  # out of the range of the dtype
        bounds = {"clip_value_min": low, "clip_value_max": high}
        yield Case(name, (corpus.edges(),), bounds)
    for value in corpus.far():
        limits: Any = np.iinfo(corpus.dtype.numpy)
        near = np.clip(np.arange(-2, 3, dtype=object) + value, int(limits.min), int(limits.max))
        bounds = {"clip_value_min": min(value, 0), "clip_value_max": max(value, 0)}
        yield Case(f"bound {value}", (near.astype(corpus.dtype.numpy),), bounds)
    if corpus.dtype in dt.INTEGER:
        bounds = {"clip_value_min": -(2**70), "clip_value_max": 2**70}
        yield Case("bounds beyond the dtype", (corpus.edges(),), bounds)
    elif corpus.dtype is not dt.float64:
        bounds = {"clip_value_min": -1e300, "clip_value_max": 1e300}
        yield Case("bounds beyond the dtype", (corpus.edges(),), bounds)
    for name, low, high in (("turned round", 3, 1), ("not a number", np.nan, 1)):
        bounds = {"clip_value_min": low, "clip_value_max": high}
        yield Case(name, (corpus.ordinary((2,)),), bounds, expected=ArgumentError)
    yield Case("no attributes", (corpus.ordinary((LARGE,)),), expected=ArgumentError)


# Gradients --------------------------------------------------------------------------------


@cases.gradients(specs.CLIP_BY_VALUE, "x")
def clip_points(corpus: Corpus) -> Iterator[Case]:
    bounds = {"clip_value_min": -1.0, "clip_value_max": 2}
    yield from patterns.around(corpus, -2.5, -0.5, 1.5, 3.0, 0.5, -3.0, **bounds)
    passed = (corpus.of([1.0, 1.0]),)
    yield Case("at the bounds", (corpus.of([-1.0, 2.0]),), bounds, expected=passed)


# Of real numbers it is a step; the phase of complex ones turns.
cases.gradients(specs.SIGN, "x")(patterns.near(1, 2))
cases.gradients(specs.COPY_SIGN, "a")(patterns.pairs(0.5, 2.0))


@cases.gradients(specs.NEXT_AFTER, "a")
def nextafter_points(corpus: Corpus) -> Iterator[Case]:
    yield Case("both ways", (corpus.of([0.5, 3.0]), corpus.of(1.0)))
    yield Case("broadcast", (corpus.of([[0.5], [3.0]]), corpus.of([1.0, -2.0, 9.0])))
    yield Case("rank 0", (corpus.of(0.5), corpus.of([1.0, -2.0])))
    yield Case("rank 3", (corpus.of([[[0.5]], [[3.0]]]), corpus.of([1.0, -2.0])))
    yield Case("empty", (corpus.of([[]]), corpus.of([1.0])))
