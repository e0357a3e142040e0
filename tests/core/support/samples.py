"""Calls of kernels at sample points, which are the same at every run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One call of one kernel; ``wrt`` names the inputs to differentiate."""

    kernel: str
    what: str
    inputs: dict[str, Any]
    wrt: tuple[str, ...]
    attributes: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kernel}-{self.what}".replace(" ", "_")


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
