"""TensorFlow's Multinomial: the kernel that TensorFlow.js's op calls by name."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.testing import isolated_engine

CHANCES = np.array([[0.1, 0.2, 0.7, 0.0], [0.5, 0.0, 0.5, 0.0]], np.float32)


def drawn(logits, num_samples=20000, seed=7, **options):
    attributes = {"num_samples": num_samples, "seed": seed, **options}
    found = tp.run_kernel("Multinomial", {"logits": logits}, attributes)
    assert found.dtype is tp.int32
    assert found.shape == (*np.shape(logits)[:-1], num_samples)
    return np.array(found.numpy())


@pytest.fixture(params=["cpu", "minimal"])
def backend(request):
    """Run natively and decomposed."""
    with isolated_engine(request.param):
        yield request.param


def test_outcomes_are_as_frequent_as_they_are_likely(backend):
    for row, chances in zip(drawn(CHANCES, normalized=True), CHANCES, strict=True):
        frequency = np.bincount(row, minlength=4) / row.size
        assert not frequency[chances == 0].any()
        # Six deviations of a binomial distribution: less than one in 10**8 fail.
        room = 6 * np.sqrt(chances * (1 - chances) / row.size)
        assert (np.abs(frequency - chances) <= room + 1e-12).all()


def test_logits_and_weights_give_what_their_probabilities_give(backend):
    expected = drawn(CHANCES, normalized=True)
    with np.errstate(divide="ignore"):
        logits = np.log(CHANCES.astype(np.float64)).astype(np.float32) + 3
    assert (drawn(logits) != expected).mean() < 1e-3
    assert (drawn(CHANCES * 8, normalized=True) == expected).all()


def test_rows_are_independent(backend):
    """TensorFlow.js draws the same numbers for every row."""
    one, two = drawn(np.zeros((2, 1000), np.float32), 1000)
    assert (one == two).mean() < 0.02
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.2


def test_seeds(backend):
    logits = np.zeros(100, np.float32)
    assert (drawn(logits, 50) == drawn(logits, 50, 7.0)).all()
    seeds = (0, 7, 2**64 - 1, 0.5)
    assert len({tuple(drawn(logits, 50, seed).tolist()) for seed in seeds}) == len(seeds)
    assert (drawn(logits, 50)[:20] == drawn(logits, 20)).all()


@pytest.mark.usefixtures("on_the_cpu")
def test_bad_input():
    for logits, options, error, message in (
        (np.zeros((1, 2, 3)), {}, ShapeError, "logits must have rank 1 or 2"),
        (np.zeros((2, 0)), {}, ShapeError, "a nonempty last axis"),
        (np.zeros(3), {"seed": -1}, ArgumentError, "attribute 'seed': must be in"),
        (np.zeros(3), {"num_samples": -1}, ArgumentError, "must be at least 0"),
    ):
        with pytest.raises(error, match=message):
            drawn(logits, **options)
    with pytest.raises(AttributeError, match=r"here it is tensorplug.random.categorical"):
        tp.multinomial  # noqa: B018  # the hint
