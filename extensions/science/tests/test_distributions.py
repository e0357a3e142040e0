"""Distributions of drawn numbers: fixed keys, and wide bounds.

Kolmogorov's statistic is compared with 1.95, which one draw in a thousand exceeds; Pearson's with
four deviations above its mean; means and the like with four of theirs.
"""

from __future__ import annotations

from math import asin, exp, floor, lgamma, log, log1p, pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 200_000


def key(number: int = 0) -> tp.Tensor:
    return tp.random.fold_in(tp.random.key(2024), number)


def kolmogorov(drawn: tp.Tensor, below: Callable[[Any], Any]) -> float:
    """Return sqrt(n) times the largest distance from the distribution function ``below``."""
    x = np.sort(drawn.numpy().ravel().astype(float))
    expected, rank = np.vectorize(below)(x), np.arange(x.size)
    off = np.maximum((rank + 1) / x.size - expected, expected - rank / x.size)
    return float(off.max() * sqrt(x.size))


def pearson(counts: np.ndarray, expected: Any) -> float:
    """Return how many deviations the chi-square statistic lies above its mean."""
    wanted = np.broadcast_to(expected, counts.shape)
    freedom = counts.size - 1
    return float((((counts - wanted) ** 2 / wanted).sum() - freedom) / sqrt(2 * freedom))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("draw", "below"),
    [
        pytest.param(
            tp.random.laplace,
            lambda x: 1 - exp(-x) / 2 if x > 0 else exp(x) / 2,
            id="laplace",
        ),
        pytest.param(
            lambda *k: tp.random.beta(*k, a=0.5, b=0.5),
            lambda x: 2 / pi * asin(sqrt(x)),
            id="beta ½ ½",
        ),
        pytest.param(
            lambda *k: tp.random.beta(*k, a=2.0, b=3.0),
            lambda x: x * x * (6 - 8 * x + 3 * x * x),
            id="beta 2 3",
        ),
        pytest.param(
            lambda *k: tp.random.beta(*k, a=0.3, b=1.0), lambda x: x**0.3, id="beta 0.3 1"
        ),
    ],
)
def test_distribution_functions(draw: Any, below: Any, dtype: str) -> None:
    assert kolmogorov(draw(key(), (COUNT,), dtype), below) < 1.95


def log_binomial(n: int, p: float, k: int) -> float:
    ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return ways + k * log(p) + (n - k) * log1p(-p)


def poisson_masses(mean: float, low: int, high: int) -> np.ndarray:
    """Return the probabilities of low, ..., high - 1, by their ratios from the mode on."""
    mode = floor(mean)
    up = np.cumprod(mean / np.arange(mode + 1, high, dtype=float))
    down = np.cumprod(np.arange(mode, low, -1, dtype=float) / mean)
    relative = np.concatenate([down[::-1], [1.0], up])
    return relative / relative.sum()


def grouped(drawn: np.ndarray, masses: np.ndarray, low: int) -> float:
    """Return Pearson's statistic of whole numbers, in groups that 50 or more are expected in."""
    assert low <= drawn.min() <= drawn.max() < low + masses.size
    counts = np.bincount(drawn - low, minlength=masses.size)
    cells = np.floor(np.cumsum(masses) * min(200.0, drawn.size / 50)).astype(int)
    expected = np.bincount(cells, weights=masses) * drawn.size
    found = np.bincount(cells, weights=counts)
    return pearson(found[expected > 20], expected[expected > 20])


@pytest.mark.parametrize("mean", [0.25, 3.0, 9.75, 10.0, 10.5, 47.5, 1000.25, 1e5, 4194304.5])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_poisson(mean: float, dtype: str) -> None:
    drawn = tp.random.poisson(key(11), (COUNT,), dtype, rate=mean).numpy()
    assert drawn.dtype.name == dtype
    spread = sqrt(mean)
    low, high = max(0, floor(mean - 9 * spread)), floor(mean + 9 * spread + 12)
    assert abs(drawn.mean() - mean) < 4 * sqrt(mean / COUNT)
    assert abs(drawn.var() / mean - 1) < 4 * sqrt((2 + 1 / mean) / COUNT)
    assert grouped(drawn, poisson_masses(mean, low, high), low) < 4


@pytest.mark.parametrize(
    ("n", "p"),
    [(1, 0.5), (7, 0.25), (7, 0.875), (100, 0.0625), (90, 0.125), (100, 0.5), (300, 0.96875),
     (100_000, 0.25), (4_000_000, 2.0**-20), (4_000_000, 0.625)],
)  # fmt: skip
def test_binomial(n: int, p: float) -> None:
    drawn = tp.random.binomial(key(12), (COUNT,), n=n, p=p).numpy()
    assert drawn.dtype == np.int32
    mean, variance = n * p, n * p * (1 - p)
    low = max(0, floor(mean - 9 * sqrt(variance) - 12))
    high = min(n + 1, floor(mean + 9 * sqrt(variance) + 12))
    masses = np.array([exp(log_binomial(n, p, k)) for k in range(low, high)])
    assert abs(drawn.mean() - mean) < 4 * sqrt(variance / COUNT)
    assert grouped(drawn, masses / masses.sum(), low) < 4


def test_the_check_of_counts_sees_what_is_slightly_wrong() -> None:
    drawn = tp.random.poisson(key(13), (COUNT,), rate=47.5).numpy()
    assert grouped(drawn, poisson_masses(47.75, 0, 120), 0) > 4
    skewed = np.where(drawn % 16 == 0, drawn + 1, drawn)
    assert grouped(skewed, poisson_masses(47.5, 0, 120), 0) > 4


def test_beta_of_small_concentrations() -> None:
    """Nearly all mass lies at both ends, where quotients of what vanishes would be NaN."""
    x = tp.random.beta(key(14), (COUNT,), a=0.01, b=0.03).numpy()
    assert ((x >= 0) & (x <= 1)).all()
    assert abs(x.mean() - 0.25) < 4 * sqrt(0.25 * 0.75 / 1.04 / COUNT)


def test_dirichlet() -> None:
    alpha = np.array([0.5, 2.0, 1.5])
    x = tp.random.dirichlet(key(15), (COUNT,), alpha=alpha).numpy()
    total, mean = alpha.sum(), alpha / alpha.sum()
    np.testing.assert_allclose(x.sum(axis=1), 1.0, rtol=1e-12)
    wanted = (np.diag(mean) - np.outer(mean, mean)) / (total + 1)
    deviation = np.sqrt(np.diag(wanted) / COUNT)
    assert (np.abs(x.mean(axis=0) - mean) < 4 * deviation).all()
    np.testing.assert_allclose(np.cov(x.T), wanted, rtol=0, atol=0.001)
    # A component is of the beta distribution, here of 2 and 2.
    assert kolmogorov(tp.asarray(x[:, 1]), lambda t: t * t * (3 - 2 * t)) < 1.95


def test_multivariate_normal() -> None:
    mean, cov = np.array([1.0, -2.0, 0.5]), np.array([[2, 0.5, 0], [0.5, 1, -0.3], [0, -0.3, 3]])
    x = tp.random.multivariate_normal(key(16), (COUNT,), mean=mean, cov=cov).numpy()
    assert x.shape == (COUNT, 3)
    assert (np.abs(x.mean(axis=0) - mean) < 4 * np.sqrt(np.diag(cov) / COUNT)).all()
    spread = np.sqrt((np.outer(np.diag(cov), np.diag(cov)) + cov**2) / COUNT)
    assert (np.abs(np.cov(x.T) - cov) < 4 * spread).all()
