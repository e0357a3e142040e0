"""Special functions: identities, tails, special values, dtypes, gradients, bad calls."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.algorithms import incomplete_gamma_formulas
from tensorplug.errors import ArgumentError, DTypeError, GradientNotFoundError, ShapeError
from tensorplug.testing import check_grads

pytestmark = pytest.mark.usefixtures("on_the_cpu")

special = tp.special
INF, NAN = math.inf, math.nan
EPS = {"float32": 2.0**-23, "float64": 2.0**-52}
GAMMA = 0.57721566490153286


def close(found: tp.Tensor, dtype: str, expected: Any, *, units: float = 8) -> None:
    """Compare shape, dtype, and values to ``units`` epsilons."""
    wanted = np.asarray(expected, float)
    assert (found.dtype.name, found.shape) == (dtype, wanted.shape)
    np.testing.assert_allclose(found.numpy().astype(float), wanted, rtol=units * EPS[dtype])


# Closed forms, and numbers from published tables (NIST's handbook, 2010).
VALUES = {
    "gammaln": ([0.5, 5.0, -0.5, 171.0],
                [0.5 * math.log(math.pi), math.log(24), 1.2655121234846454, 706.5730622457874]),
    "digamma": ([1.0, 0.5, 2.0], [-GAMMA, -GAMMA - 2 * math.log(2), 1 - GAMMA]),
    "erfc": ([0.0, 0.5, 5.0, -1.0], [1.0, 0.47950012218695346, 1.5374597944280349e-12,
                                    1.842700792949715]),
    "erfcx": ([0.0, 1.0, 1e6], [1.0, 0.427583576155807, 5.641895835474742e-07]),
    "erfinv": ([0.5, -0.9], [0.4769362762044699, -1.1630871536766743]),
    "ndtr": ([0.0, 1.0, -10.0], [0.5, 0.8413447460685429, 7.619853024160526e-24]),
    "log_ndtr": ([0.0, -100.0], [-math.log(2), -5005.524208694205]),
    "ndtri": ([0.5, 0.975, 1e-10], [0.0, 1.959963984540054, -6.361340902404056]),
    "i0": ([0.0, 1.0, -2.0], [1.0, 1.2660658777520084, 2.2795853023360673]),
    "i1": ([0.0, 1.0, -2.0], [0.0, 0.5651591039924851, -1.5906368546373291]),
    "i0e": ([0.0, 100.0], [1.0, 0.03994437929909668]),
    "i1e": ([0.0, 100.0], [0.0, 0.03974415302513025]),
    "j0": ([0.0, 1.0, 3.0], [1.0, 0.7651976865579666, -0.2600519549019334]),
    "j1": ([0.0, 1.0, -3.0], [0.0, 0.44005058574493355, -0.3390589585259365]),
    "expit": ([0.0, math.log(3)], [0.5, 0.75]),
    "logit": ([0.5, 0.75, 1e-30], [0.0, math.log(3), -69.07755278982137]),
    "entr": ([0.0, 1.0, 0.5], [0.0, 0.0, 0.5 * math.log(2)]),
    "sinc": ([0.0, 0.5, 3.0, -1.5], [1.0, 2 / math.pi, 0.0, -2 / (3 * math.pi)]),
    "zeta": ([2.0, 4.0, 60.0], [math.pi**2 / 6, math.pi**4 / 90, 1.0]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", VALUES)
def test_values(name: str, dtype: str) -> None:
    x, expected = (np.array(part) for part in VALUES[name])
    given = x.astype(dtype)
    # The float32 nearest to an argument is another one: allow for the slope there.
    units = 8 if dtype == "float64" else 64
    kept = given.astype(float) == x
    found = getattr(special, name)(tp.asarray(given))
    assert (found.dtype.name, found.shape) == (dtype, x.shape)
    close(tp.asarray(found.numpy()[kept]), dtype, expected[kept], units=units)
    close(found, dtype, expected, units=max(units, 1e3 if dtype == "float32" else 0))


SPECIAL_VALUES = {
    "gammaln": ([0.0, -0.0, -1.0, -5.0, INF, -INF, NAN], [INF, INF, INF, INF, INF, INF, NAN]),
    "digamma": ([0.0, -0.0, -1.0, INF, -INF, NAN], [-INF, INF, NAN, INF, NAN, NAN]),
    "erfc": ([INF, -INF, NAN, 30.0], [0.0, 2.0, NAN, 0.0]),
    "erfcx": ([INF, -INF, NAN, -40.0], [0.0, INF, NAN, INF]),
    "erfinv": ([1.0, -1.0, 1.5, NAN, -0.0], [INF, -INF, NAN, NAN, -0.0]),
    "ndtri": ([0.0, 1.0, -0.1, 1.1, NAN], [-INF, INF, NAN, NAN, NAN]),
    "ndtr": ([INF, -INF, NAN], [1.0, 0.0, NAN]),
    "log_ndtr": ([INF, -INF, NAN], [0.0, -INF, NAN]),
    "i0": ([INF, -INF, NAN], [INF, INF, NAN]),
    "i1": ([INF, -INF, NAN], [INF, -INF, NAN]),
    "i0e": ([INF, -INF, NAN], [0.0, 0.0, NAN]),
    "j0": ([INF, -INF, NAN], [0.0, 0.0, NAN]),
    "j1": ([INF, -INF, NAN], [0.0, 0.0, NAN]),
    "logit": ([0.0, 1.0, -0.5, 1.5, NAN], [-INF, INF, NAN, NAN, NAN]),
    "entr": ([-1.0, INF, NAN], [-INF, -INF, NAN]),
    "sinc": ([INF, -INF, NAN, 2.0**60], [0.0, 0.0, NAN, 0.0]),
    "zeta": ([1.0, 0.5, -2.0, NAN, INF], [INF, NAN, NAN, NAN, 1.0]),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", SPECIAL_VALUES)
def test_special_values(name: str, dtype: str) -> None:
    x, expected = SPECIAL_VALUES[name]
    with np.errstate(over="ignore"):
        given = np.array(x).astype(dtype)
    found = getattr(special, name)(tp.asarray(given))
    expect(found, dtype, given.shape, np.array(expected))


def test_polygamma() -> None:
    found = special.polygamma(1, tp.asarray(np.array([1.0, 0.5, 2.0])))
    close(found, "float64", [math.pi**2 / 6, math.pi**2 / 2, math.pi**2 / 6 - 1])
    expect(special.polygamma(0, [1.0, 2.5]), "float32", (2,), special.digamma([1.0, 2.5]).numpy())
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


def test_probabilities_in_both_tails() -> None:
    """In float32 no digits are lost where the exponent is large; the reference is Python's."""
    x = np.linspace(-13, 13, 401).astype(np.float32)
    exact = np.array([math.erfc(-float(v) * math.sqrt(0.5)) / 2 for v in x])
    np.testing.assert_allclose(special.ndtr(x).numpy(), exact, rtol=8 * EPS["float32"])
    wide = [
        math.log1p(-math.erfc(v * math.sqrt(0.5)) / 2)
        if v > 0
        else math.log(math.erfc(-v * math.sqrt(0.5)) / 2)
        for v in x.astype(float).tolist()
    ]
    np.testing.assert_allclose(special.log_ndtr(x).numpy(), wide, rtol=8 * EPS["float32"])
    p = np.array([2.0**-k for k in (1, 2, 10, 60, 120)], np.float32)
    np.testing.assert_allclose(
        special.ndtr(special.ndtri(p)).numpy(), p, rtol=100 * 2 * EPS["float32"]
    )


@pytest.mark.parametrize("y", [0.0, -1.0, INF, 3.0])
def test_nothing_times_a_logarithm(y: float) -> None:
    for function, at in ((special.xlogy, y), (special.xlog1py, y - 1)):
        expect(function(0.0, at), "float32", (), np.zeros(()))
        found = function([0.0, 2.0], NAN)
        expect(found, "float32", (2,), [NAN, NAN])
    close(special.xlogy(2.0, [3.0]), "float32", [2 * math.log(3)])
    close(special.xlog1py([2.0], 2.0), "float32", [2 * math.log(3)])


def test_gradients_where_x_is_0() -> None:
    x, y = tp.asarray([0.0, 0.0, 0.0, 0.0]), tp.asarray([0.0, 2.0, INF, -1.0])
    for function, at in ((special.xlogy, y), (special.xlog1py, y - 1.0)):
        dx, dy = tp.grad(lambda x, y, function=function: tp.sum(function(x, y)), argnums=(0, 1))(
            x, at
        )
        close(dx, "float32", [0.0, math.log(2), 0.0, 0.0])
        expect(dy, "float32", (4,), np.zeros(4))
    slope = tp.grad(lambda x: tp.sum(special.entr(x)))(tp.asarray([0.0, 1.0]))
    expect(slope, "float32", (2,), [0.0, -1.0])


@pytest.mark.parametrize(
    ("call", "points"),
    [
        (special.betaln, ([0.5, 3.0, 9.0, 20.0], [[2.5], [12.0]])),
        (special.beta, ([0.5, 3.0], [[2.5], [12.0]])),
        (special.zeta, ([2.5, 5.0], [[0.75], [3.0], [20.0]])),
        (special.ndtr, ([-3.0, -0.5, 0.5, 3.0],)),
        (special.log_ndtr, ([-20.0, -3.0, -1.5, -0.5, 3.0],)),
        (special.logit, ([0.1, 0.4, 0.6, 0.9],)),
        (special.entr, ([0.1, 0.5, 2.0],)),
        (special.sinc, ([-2.3, -0.1, 0.0, 1e-4, 0.2, 0.7, 1.0],)),
        (special.i0, ([-3.0, -0.1, 0.5, 20.0],)),
        (special.i1, ([-3.0, -0.1, 0.5, 20.0],)),
        (special.xlogy, ([0.5, 2.0], [[0.5], [3.0]])),
        (special.xlog1py, ([0.5, 2.0], [[0.5], [3.0]])),
        (special.expit, ([-2.0, 0.5],)),
        (lambda x: special.polygamma(3, x), ([0.5, 2.0],)),
        (special.gammainc, ([[0.25], [2.5], [16.0]], [0.125, 0.75, 2.0, 9.0, 30.0])),
        (
            lambda x: special.betainc([[0.5], [3.0], [30.0]], [0.75, 2.0, 25.0], x),
            (np.linspace(0.25, 0.75, 9).reshape(3, 3),),
        ),
        (special.gammaincc, ([[0.25], [2.5], [30.0]], [0.125, 0.75, 2.0, 9.0, 26.0, 40.0])),
    ],
)
def test_gradients_of_what_is_composed(call: Any, points: Any) -> None:
    check_grads(call, [np.array(point) for point in points], order=2)


def test_gradients_where_a_formula_that_is_not_chosen_overflows() -> None:
    x = tp.asarray([-80.0, -1.0, 40.0, 1e30])
    slope = tp.grad(lambda x: tp.sum(special.log_ndtr(x)))(x).numpy()
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(slope[0], 80.0125, rtol=1e-5)
    assert (slope[2:] == 0).all()
    slope = tp.grad(lambda p: tp.sum(special.logit(p)))(tp.asarray([1e-30, 1 - 2.0**-24]))
    np.testing.assert_allclose(slope.numpy(), [1e30, 2.0**24], rtol=1e-5)


def test_dtypes() -> None:
    for name in set(special.__all__) - {
        "beta",
        "betainc",
        "betaln",
        "gammainc",
        "gammaincc",
        "polygamma",
        "xlog1py",
        "xlogy",
    }:
        function = getattr(special, name)
        assert function(tp.asarray([1, 2])).dtype is tp.float32
        assert function(tp.asarray(np.float16([1.0]))).dtype is tp.float16
    half = tp.asarray(np.float16([1.5]))
    assert special.betaln(half, 2.0).dtype is tp.float16
    assert special.xlogy(half, tp.asarray(np.float64([1.0]))).dtype is tp.float64
    assert special.betaln(2, 3).dtype is tp.float32


def test_float16_is_computed_in_float32() -> None:
    x = np.float16([0.3, 1.7, 4.0])
    for name in ("ndtr", "log_ndtr", "sinc", "i0", "entr"):
        wide = getattr(special, name)(x.astype(np.float32)).numpy()
        expect(getattr(special, name)(x), "float16", (3,), wide.astype(np.float16))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: special.polygamma(-1, 2.0), ArgumentError, "polygamma: n must be at least 0"),
        (lambda: special.polygamma(1.5, 2.0), ArgumentError, "polygamma: n must be an integer"),
        (lambda: special.polygamma([1.5], 2.0), DTypeError, "n must hold integers, got float32"),
        (lambda: special.polygamma([1, 2], [1.0] * 3), ShapeError, "broadcast"),
        (lambda: special.gammaln(1j), DTypeError, "Lgamma"),
        (lambda: special.betaln(1j, 2.0), DTypeError, "betaln: a must hold real numbers, got 1j"),
        (lambda: special.zeta(2.0, ["a"]), DTypeError, "zeta: q must hold real numbers"),
        (lambda: special.xlogy([1.0, 2.0], [1.0, 2.0, 3.0]), ShapeError, "broadcast"),
    ],
)
def test_bad_calls(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
