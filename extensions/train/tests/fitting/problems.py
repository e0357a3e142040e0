"""Small problems for ``fit``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorplug as tp

ROWS = 22
SIZE = 5  # the last batch has 2 rows
RNG = np.random.default_rng(3)
X = RNG.normal(size=(ROWS, 3)).astype(np.float32)
CLASSES = (X.sum(axis=1) > 0).astype(np.int32)
FIRST = RNG.normal(size=(3, 2)).astype(np.float32)


def pairs(size=SIZE):
    return [
        (tp.asarray(X[at : at + size]), tp.asarray(CLASSES[at : at + size]))
        for at in range(0, ROWS, size)
    ]


def weights():
    return {"w": tp.asarray(FIRST)}


def scores(model, x):
    return x @ model["w"]


def loss(model, batch):
    x, labels = batch
    return tp.losses.sparse_softmax_cross_entropy(labels, scores(model, x))


def counted(model, batch):
    """Return the same loss, with what metrics need."""
    x, labels = batch
    outcome = tp.train.Outcome(None, labels, scores(model, x), labels.shape[0])
    return loss(model, batch), outcome


@dataclass
class Noisy:
    """A model with noise and with state: the number of calls in training."""

    linear: Any

    def apply(self, x, state, *, key, training):
        if training:
            x = x + tp.random.normal(key, x.shape)
            state = {"calls": state["calls"] + 1}
        return self.linear(x), state


def noisy():
    return Noisy(tp.train.layers.Linear(tp.asarray(FIRST), tp.zeros(2)))


NOISY_STATE = {"calls": 0}


def timeless(history):
    return [{name: row[name] for name in row if name != "seconds"} for row in history]
