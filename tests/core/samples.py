"""Sample points, the same at every run."""

from __future__ import annotations

import numpy as np


def _random(shape: tuple[int, ...], salt: int) -> np.random.Generator:
    return np.random.default_rng([salt, len(shape), *shape])


def real(*shape: int, low: float = -2.0, high: float = 2.0, salt: int = 0) -> np.ndarray:
    """Return smooth ground: uniform numbers in [low, high)."""
    return np.asarray(_random(shape, salt).uniform(low, high, shape))


def apart(*shape: int, salt: int = 0) -> np.ndarray:
    """Return shuffled numbers of both signs: 0.1 or more apart, and at least 0.05 from 0."""
    count = int(np.prod(shape))
    steps = np.arange(count) - count // 2 + 0.5
    return _random(shape, salt).permutation(steps * 0.1).reshape(shape)
