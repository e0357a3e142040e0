"""Distributions of drawn numbers: fixed keys, and wide bounds.

Kolmogorov's statistic is compared with 1.95, which one draw in a thousand exceeds; Pearson's with
four deviations above its mean; means and the like with four of theirs.
"""

from __future__ import annotations

from math import erf, exp, inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("on_the_cpu")

random = tp.random
COUNT = 200_000


def key(number: int = 0) -> tp.Tensor:
    return random.fold_in(random.key(2024), number)


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


def phi(x: float) -> float:
    return (1 + erf(x / sqrt(2))) / 2


def between(low: float, high: float) -> Callable[[float], float]:
    return lambda x: (phi(x) - phi(low)) / (phi(high) - phi(low))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("draw", "below"),
    [
        pytest.param(random.uniform, lambda x: x, id="uniform"),
        pytest.param(random.normal, phi, id="normal"),
        pytest.param(random.exponential, lambda x: 1 - exp(-x), id="exponential"),
        pytest.param(random.gumbel, lambda x: exp(-exp(-x)), id="gumbel"),
        pytest.param(random.truncated_normal, between(-2, 2), id="truncated"),
        pytest.param(
            lambda *a: random.truncated_normal(*a, lower=1.5, upper=inf),
            between(1.5, inf),
            id="tail",
        ),
        pytest.param(
            lambda *a: random.truncated_normal(*a, lower=-0.1, upper=3.0),
            between(-0.1, 3.0),
            id="lopsided",
        ),
        pytest.param(
            lambda *k: random.gamma(*k, concentration=1.0), lambda x: 1 - exp(-x), id="gamma 1"
        ),
        pytest.param(
            lambda *k: random.gamma(*k, concentration=3.0),
            lambda x: 1 - exp(-x) * (1 + x + x * x / 2),
            id="gamma 3",
        ),
        pytest.param(
            lambda *k: random.gamma(*k, concentration=0.5), lambda x: erf(sqrt(x)), id="gamma ½"
        ),
    ],
)
def test_distribution_functions(draw: Any, below: Any, dtype: str) -> None:
    assert kolmogorov(draw(key(), (COUNT,), dtype), below) < 1.95


def test_the_check_sees_what_is_slightly_wrong() -> None:
    assert kolmogorov(random.normal(key(), (COUNT,), loc=0.02), phi) > 1.95
    assert kolmogorov(random.normal(key(), (COUNT,), scale=1.02), phi) > 1.95
    skewed = random.integers(key(), (COUNT,), high=256).numpy() // 8 * 8 % 250
    assert pearson(np.bincount(skewed, minlength=256), COUNT / 256) > 4


def test_keys_of_one_parent_are_independent() -> None:
    """The same place of many keys' draws, split and folded."""
    parent, count = key(3), 2000
    split = [random.uniform(part, (2,)).numpy() for part in random.split(parent, count)]
    folded = [random.uniform(random.fold_in(parent, n), (2,)).numpy() for n in range(count)]
    seeds = [random.uniform(random.key(n), (2,)).numpy() for n in range(count)]
    for drawn in (split, folded, seeds):
        cells = (np.array(drawn) * 8).astype(int)
        assert pearson(np.bincount(cells[:, 0] * 8 + cells[:, 1], minlength=64), count / 64) < 4
        following = cells[:-1, 0] * 8 + cells[1:, 0]
        assert pearson(np.bincount(following, minlength=64), (count - 1) / 64) < 4


@pytest.mark.parametrize("p", [0.0, 0.25, 0.9, 1.0])
def test_bernoulli(p: float) -> None:
    drawn = random.bernoulli(key(5), (COUNT,), p=p)
    assert drawn.dtype is tp.bool
    off = float(drawn.numpy().mean()) - p
    assert abs(off) <= 4 * sqrt(p * (1 - p) / COUNT)


@pytest.mark.parametrize("concentration", [0.01, 0.3, 1.0, 2.5, 100.0, 1e4, 1e7])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_moments(concentration: float, dtype: str) -> None:
    x = random.gamma(key(6), (COUNT,), dtype, concentration=concentration).numpy().astype(float)
    error = sqrt(concentration / COUNT)
    assert abs(x.mean() - concentration) < 4 * error
    kurtosis = 3 + 6 / concentration
    spread = concentration * sqrt((kurtosis - 1) / COUNT)
    assert abs(((x - concentration) ** 2).mean() - concentration) < 4 * spread
    assert (x >= 0).all()


def test_categorical() -> None:
    logits = np.log([[0.1, 0.2, 0.7], [0.5, 1.0, 0.5]])
    logits[1, 1] = -inf
    drawn = random.categorical(key(7), logits + 3.0, (COUNT // 2, 2)).numpy()
    assert drawn.dtype == np.int32
    counts = [np.bincount(column, minlength=3) for column in drawn.T]
    assert pearson(counts[0], np.array([0.1, 0.2, 0.7]) * COUNT / 2) < 4
    assert counts[1][1] == 0
    assert pearson(counts[1][[0, 2]], COUNT / 4) < 4


def test_every_order_is_as_likely() -> None:
    orders = [random.permutation(part, 4).numpy() for part in random.split(key(8), 2400)]
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert counts.size == 24
    assert pearson(counts, 100) < 4


def test_choice_without_repetition_by_weight() -> None:
    """P(first is i) = p_i, P(second is j | first is i) = p_j / (1 - p_i)."""
    p = np.array([0.5, 0.3, 0.2])
    picked = [
        random.choice(part, 3, (2,), replace=False, p=p).numpy()
        for part in random.split(key(9), 3000)
    ]
    counts = np.bincount(np.array(picked) @ [3, 1], minlength=9).reshape(3, 3)
    expected = np.array(
        [[0 if i == j else p[i] * p[j] / (1 - p[i]) for j in range(3)] for i in range(3)]
    )
    assert (counts[expected == 0] == 0).all()
    off = ~np.eye(3, dtype=bool)
    assert pearson(counts[off], 3000 * expected[off]) < 4
