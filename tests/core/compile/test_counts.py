"""Numbers of elements are inputs of groups: training steps of all sizes share their code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.compile.fusion.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, Any]

pytestmark = [
    pytest.mark.usefixtures("on_the_cpu"),
    pytest.mark.filterwarnings("ignore::tensorplug.errors.RecompileWarning"),
]

WIDTH = 7
SIZES = [3, 5, 4, 64, 7, 1, 30, 2, 11, 300]


def rows(n: int) -> Array:
    return np.random.default_rng(n).standard_normal((n, WIDTH)).astype(np.float32)


def softmax(x: Array) -> Array:
    exponentials = np.exp(x - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def standardized(x: Array) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def standardized_slope(x: Array) -> Array:
    """Return the gradient of the mean of ``standardized(x) * WEIGHTS``."""
    y, dy = standardized(x), WEIGHTS / x.size
    centred = dy - dy.mean(-1, keepdims=True) - y * (dy * y).mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


WEIGHTS = np.linspace(-1, 2, WIDTH)
CLASSES = [0, 6, 3]


def classes(n: int) -> Array:
    return np.resize(CLASSES, n).astype(np.int32)


def entropy(x: Any) -> Any:
    labels = tp.asarray(classes(x.shape[0]))
    return tp.losses.sparse_softmax_cross_entropy(labels, x)


def one_hot(x: Array) -> Array:
    return np.eye(WIDTH)[classes(len(x))]


def layer_norm(x: Any) -> Any:
    centred = x - tp.mean(x, axis=-1, keepdims=True)
    variance = tp.mean(centred * centred, axis=-1, keepdims=True)
    return centred / tp.sqrt(variance + 1e-5)


def weighted(x: Any) -> Any:
    return tp.mean(layer_norm(x) * tp.asarray(WEIGHTS.astype(np.float32)))


# The function, NumPy's formula of it, and that of its gradient (of its sum, if it is an array).
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "mean": (
        lambda x: tp.mean(tp.tanh(x) * x),
        lambda x: np.mean(np.tanh(x) * x),
        lambda x: (np.tanh(x) + x * (1 - np.tanh(x) ** 2)) / x.size,
    ),
    "mean of columns": (
        lambda x: tp.mean(tp.exp(x), axis=0),
        lambda x: np.exp(x).mean(0),
        lambda x: np.exp(x) / len(x),
    ),
    "sum over a size": (
        lambda x: tp.sum(x * x) / x.shape[0],
        lambda x: (x * x).sum() / len(x),
        lambda x: 2 * x / len(x),
    ),
    "variance": (
        lambda x: tp.mean(tp.var(x * 2, axis=0)),
        lambda x: (2 * x).var(0).mean(),
        lambda x: 8 * (x - x.mean(0)) / x.size,
    ),
    "cross-entropy": (
        entropy,
        lambda x: -np.log((softmax(x) * one_hot(x)).sum(-1)).mean(),
        lambda x: (softmax(x) - one_hot(x)) / len(x),
    ),
    "layer norm": (
        weighted,
        lambda x: (standardized(x) * WEIGHTS).mean(),
        standardized_slope,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_sizes_have_their_own_numbers(name: str) -> None:
    f, formula, slope = FUNCTIONS[name]
    gradient = tp.grad(lambda x: tp.sum(f(x)))
    compiled, compiled_gradient = tp.compile(f), tp.compile(gradient)
    for n in SIZES:
        x = rows(n)
        wide, given = x.astype(np.float64), tp.asarray(x)
        for run, eager, expected in (
            (compiled, f, formula(wide)),
            (compiled_gradient, gradient, slope(wide)),
        ):
            for way in (run, eager, run):
                result = way(given).numpy()
                assert (result.dtype, result.shape) == (np.float32, np.shape(expected))
                np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-6, err_msg=str(n))


def step(weights: Any, x: Any, target: Any) -> Any:
    """Return a training step of two layers, with a layer norm and a mean of squares."""

    def loss(weights: Any) -> Any:
        hidden = layer_norm(tp.nn.gelu(x @ weights[0] + weights[1]))
        return tp.mean((hidden @ weights[2] - target) ** 2)

    value, gradients = tp.value_and_grad(loss)(weights)
    return value, [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)]


def batch(n: int) -> list[Any]:
    generator = np.random.default_rng(n)
    return [tp.asarray(generator.standard_normal((n, k)).astype(np.float32)) for k in (8, 3)]


def test_training_steps_of_other_sizes_have_known_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [(8, 12), (12,), (12, 3)]
    generator = np.random.default_rng(0)
    weights = [tp.asarray(generator.standard_normal(s).astype(np.float32)) for s in shapes]
    f = tp.compile(step)
    f(weights, *batch(20))
    with monkeypatch.context() as patched:
        patched.setattr(Steps, "find", None)  # must not be called
        known = f(weights, *batch(23))
    expected = step(weights, *batch(23))
    for ours, other in zip([known[0], *known[1]], [expected[0], *expected[1]], strict=True):
        np.testing.assert_allclose(ours.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)
