"""Small models on small data: what level 4 trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_conformance.checks.programs import references

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


Parameters = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Model:
    """A loss of named parameters and one batch, and the same loss in NumPy.

    ``loss`` takes parameters, x and y as tensors; ``reference`` takes them as float64 arrays
    and returns the loss and its gradients, worked out by hand. ``data`` are x and y.
    """

    name: str
    shapes: Mapping[str, tuple[int, ...]]
    data: Callable[[], tuple[Array, Array]]
    loss: Callable[[Parameters, Any, Any], Any]
    reference: Callable[[Mapping[str, Array], Array, Array], tuple[float, dict[str, Array]]]

    def start(self, dtype: str = "float32", seed: int = 0) -> dict[str, Array]:
        """Return the parameters before the first step: uneven, and exact in every float."""
        random = np.random.default_rng([seed, len(self.name)])
        return {
            name: (random.integers(-32, 33, shape) / 64).astype(dtype)
            for name, shape in self.shapes.items()
        }

    def batch(self, dtype: str = "float32") -> tuple[Array, Array]:
        """Return x and y."""
        x, y = self.data()
        return x.astype(dtype), y.astype(dtype)


def _grid(shape: tuple[int, ...], seed: int) -> Array:
    """Return numbers between -2 and 2 that are exact in every floating dtype."""
    return np.asarray(np.random.default_rng(seed).integers(-32, 33, shape) / 16)


def _two_classes() -> tuple[Array, Array]:
    x = _grid((24, 5), 1)
    return x, (x @ np.array([1.0, -2.0, 0.5, 0.25, -1.0]) > _grid((24,), 2) / 4).astype(float)


def _logistic(p: Parameters, x: Any, y: Any) -> Any:
    return tp.losses.sigmoid_cross_entropy(y, tp.sum(x * p["weights"], axis=1) + p["bias"])


def _three_classes() -> tuple[Array, Array]:
    x = _grid((20, 6), 3)
    classes = np.argmax(x[:, :3] + 0.5 * x[:, 3:] ** 2, axis=1)
    return x, np.eye(3)[classes]


def _perceptron(p: Parameters, x: Any, y: Any) -> Any:
    hidden = tp.tanh(x @ p["w1"] + p["b1"])
    return tp.losses.softmax_cross_entropy(y, hidden @ p["w2"] + p["b2"])


def _images() -> tuple[Array, Array]:
    x = _grid((6, 6, 6, 2), 5)
    brighter = x[:, :3].sum(axis=(1, 2, 3)) > x[:, 3:].sum(axis=(1, 2, 3))
    return x, np.eye(2)[brighter.astype(int)]


def _convolutional(p: Parameters, x: Any, y: Any) -> Any:
    seen = tp.nn.relu(tp.nn.conv2d(x, p["filter"], 1, "same") + p["shift"])
    pooled = tp.nn.max_pool(seen, 2, 2)
    logits = tp.reshape(pooled, (6, 27)) @ p["dense"]
    return tp.losses.softmax_cross_entropy(y, logits)


LOGISTIC: Final = Model(
    "logistic regression",
    {"weights": (5,), "bias": ()},
    _two_classes,
    _logistic,
    references.logistic,
)
PERCEPTRON: Final = Model(
    "perceptron",
    {"w1": (6, 8), "b1": (8,), "w2": (8, 3), "b2": (3,)},
    _three_classes,
    _perceptron,
    references.perceptron,
)
CONVOLUTIONAL: Final = Model(
    "convolutional network",
    {"filter": (3, 3, 2, 3), "shift": (3,), "dense": (27, 2)},
    _images,
    _convolutional,
    references.convolutional,
)
