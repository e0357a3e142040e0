"""The rules that are tried: ours, the definition in float64, and what PyTorch calls it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tensorplug as tp

STEPS = 12


class Rule(NamedTuple):
    """An optimizer, how far it moves after gradients g[0], ..., g[t - 1], and PyTorch's name.

    ``moved``: a function of the gradients so far, and of the parameter if ``sized``.
    """

    optimizer: object
    rate: float
    moved: object
    torch: str = ""  # where the formula is the same
    options: dict[str, object] | None = None
    weight_decay: float = 0.0
    shrinks: bool = False  # the parameter itself decays
    sized: bool = False


def decaying(values, share):
    """Return the sum of all values, each weighted with ``share`` to the power of its age."""
    return sum(share**age * value for age, value in enumerate(reversed(values)))


def mean(values, share):
    """Return the running mean with its bias corrected: the weights' sum is 1 - share**t."""
    return (1 - share) * decaying(values, share) / (1 - share ** len(values))


def squares(g):
    return [gradient**2 for gradient in g]


def adam(g):
    return mean(g, 0.9) / (np.sqrt(mean(squares(g), 0.999)) + 1e-8)


def adamax(g):
    norms = [0.999**age * np.abs(gradient) for age, gradient in enumerate(reversed(g))]
    return mean(g, 0.9) / (np.max(norms, axis=0) + 1e-7)


def rmsprop(g, decay=0.9, *, centered=False):
    variance = (1 - decay) * decaying(squares(g), decay)
    if centered:
        variance = variance - ((1 - decay) * decaying(g, decay)) ** 2
    return g[-1] / np.sqrt(variance + 1e-7)


def rmsprop_all(g):
    steps = [rmsprop(g[: t + 1], 0.9, centered=True) for t in range(len(g))]
    return decaying(steps, 0.8)


def ahead(g):
    """Return where Nesterov's momentum points: by the next velocity, should the gradient stay."""
    return g[-1] + 0.9 * decaying(g, 0.9)


def adadelta(g):
    steps, accumulated = [], 0.0
    for t in range(1, len(g) + 1):
        scale = np.sqrt(accumulated + 1e-7) / np.sqrt(0.05 * decaying(squares(g[:t]), 0.95) + 1e-7)
        steps.append(scale * g[t - 1])
        accumulated = 0.05 * decaying(squares(steps), 0.95)
    return steps[-1]


def lion(g):
    earlier = 0.01 * decaying(g[:-1], 0.99) if len(g) > 1 else 0.0
    return np.sign(0.9 * earlier + 0.1 * g[-1])


def lamb(g, p):
    u = mean(g, 0.9) / (np.sqrt(mean(squares(g), 0.999)) + 1e-6) + 0.5 * p
    sizes = np.linalg.norm(np.ravel(p)), np.linalg.norm(np.ravel(u))
    return u * (sizes[0] / sizes[1] if all(sizes) else 1.0)


def adafactor(g, p):
    """Return the change without the learning rate of 1, which is more than t**-0.5."""
    v = 0.0
    for t, gradient in enumerate(g, 1):
        keep = 1 - t**-0.8
        v = keep * v + (1 - keep) * (gradient**2 + 1e-30)
    if p.ndim > 1:  # the best product of a row and a column, by the divergence of the paper
        v = v.sum(-1, keepdims=True) * v.sum(-2, keepdims=True) / v.sum((-1, -2), keepdims=True)
    u = g[-1] / np.sqrt(v)
    u = u / max(1.0, rms(u))
    return u * max(rms(p), 1e-3) * len(g) ** -0.5


def rms(x):
    return np.sqrt(np.mean(x**2)) if x.size else 0.0


RULES = {
    "sgd": Rule(tp.train.sgd(0.1), 0.1, lambda g: g[-1], "SGD"),
    "sgd, decay": Rule(
        tp.train.sgd(0.1, weight_decay=0.5),
        0.1,
        lambda g: g[-1],
        "SGD",
        weight_decay=0.5,
    ),
    "momentum": Rule(
        tp.train.momentum(0.1),
        0.1,
        lambda g: decaying(g, 0.9),
        "SGD",
        {"momentum": 0.9},
    ),
    "nesterov, decay": Rule(
        tp.train.momentum(0.1, nesterov=True, weight_decay=0.5),
        0.1,
        ahead,
        "SGD",
        {"momentum": 0.9, "nesterov": True},
        weight_decay=0.5,
    ),
    "adam": Rule(tp.train.adam(epsilon=1e-8), 1e-3, adam, "Adam"),
    "adam, decay": Rule(
        tp.train.adam(0.1, epsilon=1e-8, weight_decay=0.5),
        0.1,
        adam,
        "Adam",
        weight_decay=0.5,
    ),
    "adamw": Rule(tp.train.adamw(0.1), 0.1, adam, "AdamW", weight_decay=0.01, shrinks=True),
    "adamax": Rule(tp.train.adamax(), 2e-3, adamax),
    "adagrad": Rule(
        tp.train.adagrad(initial_accumulator_value=2.0, weight_decay=0.5),
        1e-2,
        lambda g: g[-1] / np.sqrt(2.0 + sum(squares(g)) + 1e-7),
        weight_decay=0.5,
    ),
    "rmsprop": Rule(tp.train.rmsprop(), 1e-2, rmsprop),
    "rmsprop, all": Rule(
        tp.train.rmsprop(0.05, 0.9, 0.8, centered=True, weight_decay=0.5),
        0.05,
        rmsprop_all,
        weight_decay=0.5,
    ),
    "adadelta": Rule(tp.train.adadelta(0.3), 0.3, adadelta),
    "lion": Rule(
        tp.train.lion(0.01, weight_decay=0.5), 0.01, lion, weight_decay=0.5, shrinks=True
    ),
    "lamb": Rule(tp.train.lamb(0.1, weight_decay=0.5), 0.1, lamb, sized=True),
    "adafactor": Rule(
        tp.train.adafactor(1.0),
        1.0,
        adafactor,
        "Adafactor",
        {"eps": (None, 1e-3)},
        sized=True,
    ),
}


def gradients(shape, dtype="float64", steps=STEPS):
    """Return one gradient for each step, in which an element is 0 at first."""
    rng = np.random.default_rng(int(np.prod(shape)))
    made = rng.normal(size=(steps, *shape))
    if dtype.startswith("complex"):
        made = made + 1j * rng.normal(size=made.shape)
    elif made[0].size > 1:
        made[0].flat[0] = 0.0
    return list(made.astype(dtype))


def expected(rule, start, gradients):
    """Return the parameter after each step, in float64, from the whole history of gradients."""
    p, history, found = start.astype(np.float64), [], []
    for gradient in gradients:
        before = p
        history.append(gradient + (0.0 if rule.shrinks else rule.weight_decay) * p)
        p = p * (1 - rule.rate * rule.weight_decay) if rule.shrinks else p
        p = p - rule.rate * rule.moved(history, *([before] if rule.sized else []))
        found.append(p)
    return found
