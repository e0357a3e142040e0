"""Logistic regression by gradient descent, on whatever backend is installed.

The program, ``fit``, knows nothing of Dask: ``tp.value_and_grad`` differentiates the loss, and
each step is one pass over the data. See ``pca.py`` for ``--backend``, ``--rows``, ``--memory``.

The labels are drawn with planted weights, and the result is checked against them.
"""

from __future__ import annotations

import numpy as np
from outofcore import Table, main

import tensorplug as tp

FEATURES = 63
STEPS, RATE = 5, 5.0


def loss(weights: tp.Tensor, x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
    """Return the mean of -log(probability of the label)."""
    score = tp.matmul(x, weights)
    return tp.mean(tp.nn.softplus(score) - y * score)


def fit(x: tp.Tensor, y: tp.Tensor) -> tuple[tp.Tensor, list[float]]:
    """Return the weights, and the loss before each step."""
    step = tp.value_and_grad(loss)
    weights = tp.zeros(x.shape[1])
    losses = []
    for _ in range(STEPS):
        value, slope = step(weights, x, y)
        weights = weights - RATE * slope
        losses.append(float(value))
    return weights, losses


def planted() -> np.ndarray:
    """Return the weights with which the labels are drawn."""
    return np.random.default_rng(2).uniform(-0.2, 0.2, FEATURES).astype(np.float32)


def block(rows: int, seed: int) -> np.ndarray:
    """Return rows of features, each with its label in the last column."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((rows, FEATURES + 1), dtype=np.float32)
    probability = 1 / (1 + np.exp(-table[:, :-1] @ planted()))
    table[:, -1] = rng.random(rows, dtype=np.float32) < probability
    return table


def run(table: tp.Tensor) -> str:
    """Compare what is found with what was planted; return what to print."""
    weights, losses = fit(table[:, :-1], table[:, -1])
    error = np.abs(weights.numpy() - planted()).max()
    spread = 10 / np.sqrt(table.shape[0])  # a sample's weights are off by about a fifth of this
    assert error < spread, f"weights are off by {error}"
    assert losses[-1] < losses[1] < losses[0], losses
    return f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, weights off by at most {error:.5f}"


if __name__ == "__main__":
    main(run, Table(block, FEATURES + 1))
