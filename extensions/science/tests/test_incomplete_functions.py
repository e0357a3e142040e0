"""The incomplete gamma and beta functions against sums of probabilities; their edges."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import GradientNotFoundError
from tensorplug_science.special import incomplete_gamma_formulas

from .expecting import close, expect

special = tp.special
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("position", [0, 1])
def test_a_gradient_of_betainc_in_its_concentrations_is_refused(position: int) -> None:
    def f(x: Any) -> Any:
        operands = [2.0, 3.0, 0.5]
        operands[position] = x
        return special.betainc(*operands) + x  # or the gradient would be 1, without a word

    with pytest.raises(GradientNotFoundError, match="stop_gradient"):
        tp.grad(f)(tp.asarray(1.5))
    gradient = tp.grad(lambda x: f(tp.stop_gradient(x)) + x)(tp.asarray(1.5))
    assert gradient.item() == 1.0


def test_incomplete_gamma_functions() -> None:
    """For whole a they are sums of Poisson probabilities; for 1/2 the error function."""
    x = np.array([1e-3, 0.3, 0.9, 2.0, 7.5, 30.0, 100.0])
    for a in (1, 2, 5, 14, 15, 40):
        terms = [[k * math.log(v) - v - math.lgamma(k + 1) for k in range(a)] for v in x]
        upper = np.exp(terms).sum(axis=1)
        found = special.gammaincc(float(a), tp.asarray(x))
        np.testing.assert_allclose(found.numpy(), upper, rtol=2e-13)
        total = found + special.gammainc(float(a), tp.asarray(x))
        np.testing.assert_allclose(total.numpy(), 1.0, rtol=1e-15)
    root = np.sqrt(x)
    close(special.gammainc(0.5, tp.asarray(x)), "float64", [math.erf(v) for v in root], units=32)
    with np.errstate(under="ignore"):
        tail = [math.erfc(v) for v in root]
    np.testing.assert_allclose(special.gammaincc(0.5, tp.asarray(x)).numpy(), tail, rtol=1e-13)
    a, at = (
        tp.asarray([0.0, 0.0, 3.0, 3.0, -1.0, 2.0]),
        tp.asarray([0.0, 1.0, 0.0, INF, 1.0, -1.0]),
    )
    expect(special.gammainc(a, at), "float32", (6,), [NAN, 1.0, 0.0, 1.0, NAN, NAN])
    expect(special.gammaincc(a, at), "float32", (6,), [NAN, 0.0, 1.0, 0.0, NAN, NAN])


BETA = np.array([1e-9, 0.01, 0.3, 0.5, 0.9, 0.99, 1 - 2.0**-30])


@pytest.mark.parametrize("shape", [(), (3,), (40, 50)], ids=str)
def test_integrals_of_few_and_of_many_elements(shape: tuple[int, ...]) -> None:
    end = np.linspace(0.25, 3.0, math.prod(shape)).reshape(shape)
    found = incomplete_gamma_formulas.integrals(np, lambda s: [np.exp(-s), s * s], end)
    assert [np.shape(one) for one in found] == [shape, shape]
    np.testing.assert_allclose(found[0], -np.expm1(-end), rtol=1e-14)
    np.testing.assert_allclose(found[1], end**3 / 3, rtol=1e-14)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 7), (14, 15), (40, 3), (60, 80), (90, 60)])
def test_incomplete_beta_function_of_whole_numbers(a: int, b: int) -> None:
    """They are sums of binomial probabilities, in exact arithmetic."""
    n = a + b - 1
    for x in [*BETA, a / n]:
        p = Fraction(float(x))
        terms = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        found = special.betainc(tp.asarray(np.array([a, b, 1.0])), np.array([b, a, 1.0]),
                                np.array([x, 1 - x, x]))  # fmt: skip
        lower, upper = sum(terms[a:]), None
        exact = np.array([float(lower), np.nan, x])
        # 1 - x is rounded: that moves the result by the density times the error.
        q = Fraction(float(1 - x))
        upper = sum(math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(b, n + 1))
        exact[1] = float(upper)
        some = exact > 1e-290  # smaller numbers have few digits
        room = 4e-15 * (10 - np.log(np.maximum(exact, 1e-290)))
        assert (np.abs(found.numpy() - exact) <= exact * room)[some].all()
        assert (found.numpy() < 1e-289)[~some].all()


@pytest.mark.parametrize("a", [1e-9, 1e-3, 0.4, 3.0, 50.0, 1e4, 1e7])
def test_incomplete_beta_function_beside_1(a: float) -> None:
    """I(a, 1, x) is x**a, I(1, b, x) is 1 - (1 - x)**b; I(a, a, 1/2) is 1/2."""
    x = np.array([1e-5, 0.25, 0.5, 0.96875, 1 - 2.0**-12, 1 - 2.0**-40])
    with np.errstate(under="ignore"):
        power = x**a
        rest = -np.expm1(a * np.log1p(-x))
    some = power > 1e-290
    found = special.betainc(np.array(a), 1.0, tp.asarray(x))
    np.testing.assert_allclose(found.numpy()[some], power[some], rtol=2e-13)
    found = special.betainc(1.0, np.array(a), tp.asarray(x))
    np.testing.assert_allclose(found.numpy(), rest, rtol=1e-13)
    close(special.betainc(np.array(a), np.array(a), 0.5), "float64", 0.5)


def test_incomplete_beta_function_at_edges() -> None:
    places = (
        (0.0, 1.0, 0.5, 1.0), (1.0, 0.0, 0.5, 0.0), (0.0, 0.0, 0.5, NAN), (INF, 1.0, 0.5, 0.0),
        (1.0, INF, 0.5, 1.0), (INF, INF, 0.5, NAN), (0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 1.0, 1.0),
        (2.0, 3.0, 0.0, 0.0), (2.0, 3.0, 1.0, 1.0), (-1.0, 1.0, 0.5, NAN), (1.0, -1.0, 0.5, NAN),
        (1.0, 1.0, -0.5, NAN), (1.0, 1.0, 1.5, NAN), (NAN, 1.0, 0.5, NAN), (1.0, 1.0, NAN, NAN),
        (0.0, INF, 0.5, 1.0), (INF, 0.0, 0.5, 0.0),
    )  # fmt: skip
    a, b, x, exact = np.array(places).T
    expect(special.betainc(a, b, x), "float64", (len(places),), exact)
    found = special.betainc(tp.asarray([[1.0], [2.0]]), 1, tp.asarray([0.25, 0.5]))
    close(found, "float32", [[0.25, 0.5], [0.0625, 0.25]])
