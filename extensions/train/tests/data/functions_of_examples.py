"""Functions that batches call in other processes, which import them by the name of this module."""

from __future__ import annotations

import time

import numpy as np


def noisy(example, key):
    """Add a random number to an example."""
    return {"x": example + np.random.default_rng(key).integers(1000), "key": key}


def fail_at_7(example):
    return 1 // (example - 7)


def late(example):
    """Take longer for smaller numbers, so that later batches are made first."""
    time.sleep((12 - example) / 1000)
    return example
