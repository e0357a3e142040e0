"""Special functions: values, tails, special values, dtypes, gradients, bad calls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import check_grads

from .expecting import EPS, close, expect

special = tp.special
INF, NAN = math.inf, math.nan
GAMMA = 0.57721566490153286


# Closed forms, and numbers from published tables (NIST's handbook, 2010).
VALUES = {
    "gammaln": ([0.5, 5.0, -0.5, 171.0],
                [0.5 * math.log(math.pi), math.log(24), 1.2655121234846454, 706.5730622457874]),
    "digamma": ([1.0, 0.5, 2.0], [-GAMMA, -GAMMA - 2 * math.log(2), 1 - GAMMA]),
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
        (lambda: special.polygamma(164, 2.0), ArgumentError, "must be at most 163, got 164"),
        (lambda: special.polygamma(1.5, 2.0), ArgumentError, "polygamma: n must be an integer"),
        (
            lambda: special.polygamma([1.5], 2.0),
            DTypeError,
            "n must hold integers, got float32",
        ),
        (lambda: special.polygamma([1, 2], [1.0] * 3), ShapeError, "broadcast"),
        (lambda: special.gammaln(1j), DTypeError, "Lgamma"),
        (
            lambda: special.betaln(1j, 2.0),
            DTypeError,
            "betaln: a must hold real numbers, got 1j",
        ),
        (lambda: special.zeta(2.0, ["a"]), DTypeError, "zeta: q must hold real numbers"),
        (lambda: special.xlogy([1.0, 2.0], [1.0, 2.0, 3.0]), ShapeError, "broadcast"),
    ],
)
def test_bad_calls(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def density(x: Any) -> Any:
    return np.exp(-0.5 * x * x) / np.sqrt(2 * np.longdouble(math.pi))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_derivatives_of_ndtr(dtype: str) -> None:
    x = np.array([-0.75, -0.25, -1e-3, 0.0, 0.125, 0.875], dtype)
    exact = x.astype(np.longdouble)
    first = tp.grad(lambda x: tp.sum(special.ndtr(x)))
    second = tp.grad(lambda x: tp.sum(first(x)))
    for found, right in ((first, density(exact)), (second, -exact * density(exact))):
        room = 16 * np.finfo(dtype).eps * np.abs(right) + 16 * np.finfo(dtype).smallest_subnormal
        assert (np.abs(found(tp.asarray(x)).numpy() - right) <= room).all()
