"""Gamma, beta and zeta functions: identities, poles, slopes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.testing import check_grads

from .expecting import EPS, close, expect

special = tp.special
INF, NAN = math.inf, math.nan


def test_polygamma() -> None:
    found = special.polygamma(1, tp.asarray(np.array([1.0, 0.5, 2.0])))
    close(found, "float64", [math.pi**2 / 6, math.pi**2 / 2, math.pi**2 / 6 - 1])
    expect(
        special.polygamma(0, [1.0, 2.5]),
        "float32",
        (2,),
        special.digamma([1.0, 2.5]).numpy(),
    )
    expect(special.polygamma(1, [0.0, -1.0]), "float32", (2,), [INF, INF])
    expect(special.polygamma(2, [0.0, -1.0]), "float32", (2,), [-INF, -INF])
    # psi_n(x + 1) - psi_n(x) = (-1)**n n! / x**(n + 1), also below 0 and for a large n
    x = np.array([-3.7, -0.3, 0.4, 2.5, 11.0])
    for n in (1, 2, 5, 20, 40):
        step = special.polygamma(n, tp.asarray(x + 1)) - special.polygamma(n, tp.asarray(x))
        size = np.abs(special.polygamma(n, tp.asarray(x)).numpy())
        exact = (-1.0) ** n * math.factorial(n) / x ** (n + 1)
        assert (
            np.abs(step.numpy() - exact) <= 200 * n * EPS["float64"] * (size + abs(exact))
        ).all()


def test_polygamma_of_many_orders() -> None:
    """Each order gives what it gives alone; the sum over all whole numbers serves below 0."""
    orders = np.array([[0], [1], [2], [5], [20], [40]])
    x = np.array([-7.75, -3.7, -1.0, -0.3, 0.0, 0.4, 2.5, 11.0, 1e3, INF, -INF, NAN])
    for dtype, units in (("float64", 400.0), ("float32", 400.0)):
        given = tp.asarray(x.astype(dtype))
        found = special.polygamma(tp.asarray(orders), given)
        assert (found.dtype.name, found.shape) == (dtype, (6, 12))
        alone = [special.polygamma(int(n), given).numpy() for n in orders[:, 0]]
        tiny = np.finfo(dtype).tiny  # digits below are few
        np.testing.assert_allclose(
            found.numpy(), np.stack(alone), rtol=units * EPS[dtype], atol=tiny
        )
    expect(special.polygamma([-12, 1], INF), "float32", (2,), [NAN, 0.0])
    expect(special.polygamma(np.array(3), [0.0]), "float32", (1,), [INF])
    expect(special.polygamma(np.zeros(0, np.int32), 2.0), "float32", (0,), np.zeros(0))
    n = tp.asarray([0, 1, 2, 3])
    for at in (-1.75, 0.5, 3.0):
        check_grads(lambda x: special.polygamma(n, x), [np.full(4, at)], order=2)


POLES = (  # a, b, ln |B(a, b)|: what remains of two poles that cancel, and infinities
    (-3.0, 2.0, math.log(1 / 6)),
    (-7.0, 3.0, math.log(math.gamma(5) * math.gamma(3) / math.gamma(8))),
    (-100.0, 1.0, -math.log(100)),
    (-3.0, 5.0, INF),
    (-3.0, -2.0, INF),
    (0.0, 0.0, INF),
    (-3.0, 2.5, INF),
    (-3.0, INF, INF),
    (-2.5, 1.5, -INF),
    (2.0, INF, -INF),
    (INF, INF, -INF),
    (-2.5, INF, INF),
    (-(2.0**40), 3.0, INF),
    (-(2.0**62), 2.0**61, INF),
    (-(2.0**62), -(2.0**61), INF),
    (-(2.0**62), 0.4, INF),
    (NAN, -1.0, NAN),
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_betaln_at_poles(dtype: str) -> None:
    a, b, exact = np.array(POLES).T
    for left, right in ((a, b), (b, a)):
        close(special.betaln(*map(tp.asarray, (left.astype(dtype), right.astype(dtype)))),
              dtype, exact, units=32)  # fmt: skip
    found = special.beta(tp.asarray([-3.0, -7.0, -2.5]), tp.asarray([2.0, 3.0, 1.5]))
    close(found, "float32", [1 / 6, -2 * 24 / 5040, 0.0], units=64)


def test_betaln_has_the_slope_of_its_limit_at_a_pole() -> None:
    """ln B(a, 2) is -ln |a (a + 1)|."""
    slope = tp.grad(lambda a: special.betaln(a, 2.0))(tp.asarray(np.array(-3.0)))
    close(slope, "float64", 1 / 3 + 1 / 2)


@pytest.mark.parametrize("a", [0.25, 1.0, 7.5, 8.0, 30.0, 1e3, 1e6, 1e30])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_betaln_against_closed_forms(a: float, dtype: str) -> None:
    """B(a, 1) = 1 / a and B(a, 2) = 1 / (a (a + 1)), however large a is."""
    a = float(np.asarray(a, dtype))
    given = tp.asarray(np.array([a, 1.0], dtype)), tp.asarray(np.array([1.0, a], dtype))
    scale = max(1.0, abs(math.log(a)))
    for found, exact in (
        (special.betaln(*given), -math.log(a)),
        (special.betaln(given[0][:1], 2.0), -math.log(a) - math.log1p(a)),
    ):
        assert found.dtype.name == dtype
        assert np.abs(found.numpy().astype(float) - exact).max() <= 16 * EPS[dtype] * scale


def test_betaln_of_two_large_numbers() -> None:
    """B(n, n) is 2 / (n C(2n, n)), exact in integers."""
    for n in (9, 50, 400):
        exact = math.log(2) - math.log(n) - math.log(math.comb(2 * n, n))
        close(special.betaln(float(n), tp.asarray(np.array(float(n)))), "float64", exact, units=16)


def test_beta_has_the_sign_of_its_gammas() -> None:
    a, b = np.array([0.5, -0.5, -1.5, -2.25]), np.array([0.5, 0.75, 0.25, 0.75])
    exact = [math.gamma(x) * math.gamma(y) / math.gamma(x + y) for x, y in zip(a, b, strict=True)]
    close(special.beta(a, tp.asarray(b)), "float64", exact, units=32)
    expect(special.beta([-1.0, 0.0], 0.5), "float32", (2,), [NAN, NAN])


def test_hurwitz_zeta() -> None:
    """zeta(s, q) = zeta(s, q + 1) + q**-s, and halves give the sum over odd numbers."""
    s, q = np.array([[1.125], [2.0], [30.0], [400.0]]), np.array([0.01, 0.5, 1.0, 12.5, 1e6])
    one, two = special.zeta(s, q).numpy(), special.zeta(s, q + 1).numpy()
    with np.errstate(over="ignore"):
        power = q**-s
    np.testing.assert_allclose(one, two + power, rtol=1e-13)
    close(special.zeta(2.0, 0.5), "float32", math.pi**2 / 2)
    expect(special.zeta(2.0, [0.0, -3.0, -0.5]), "float32", (3,), [INF, INF, NAN])
    expect(special.zeta([2.0], INF), "float32", (1,), [0.0])
