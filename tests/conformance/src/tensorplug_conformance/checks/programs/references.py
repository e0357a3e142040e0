"""The same training in NumPy's float64, with gradients and steps worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorplug_conformance.case import Array

Gradients = dict[str, Array]
Update = Callable[
    [Array, dict[str, Any], int], Array
]  # gradient, state, step from 1 -> what to subtract


def logistic(p: Mapping[str, Array], x: Array, y: Array) -> tuple[float, Gradients]:
    """Return mean(log(1 + e**z) - y z) for z = x w + b, and its gradients."""
    z = x @ p["weights"] + p["bias"]
    dz = (1 / (1 + np.exp(-z)) - y) / len(y)
    return float(np.mean(np.logaddexp(0, z) - y * z)), {"weights": dz @ x, "bias": dz.sum()}


def perceptron(p: Mapping[str, Array], x: Array, y: Array) -> tuple[float, Gradients]:
    """Return the cross entropy of one hidden layer of tanh, and its gradients."""
    hidden = np.tanh(x @ p["w1"] + p["b1"])
    loss, dz = _cross_entropy(hidden @ p["w2"] + p["b2"], y)
    da = (dz @ p["w2"].T) * (1 - hidden**2)
    return loss, {"w1": x.T @ da, "b1": da.sum(0), "w2": hidden.T @ dz, "b2": dz.sum(0)}


def convolutional(p: Mapping[str, Array], x: Array, y: Array) -> tuple[float, Gradients]:
    """Return the cross entropy of conv 3x3, ReLU, max pool 2x2, dense; and its gradients."""
    around = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    patches = np.lib.stride_tricks.sliding_window_view(around, (3, 3), axis=(1, 2))
    seen = np.einsum("nhwcij,ijco->nhwo", patches, p["filter"]) + p["shift"]
    blocks = _blocks(np.maximum(seen, 0))
    first = np.argmax(blocks, axis=-1)
    flat = np.max(blocks, axis=-1).reshape(len(x), -1)
    loss, dz = _cross_entropy(flat @ p["dense"], y)
    taken = np.arange(4) == first[..., None]
    back = taken * (dz @ p["dense"].T).reshape(first.shape)[..., None]
    da = _unblocked(back) * (seen > 0)
    filters = np.einsum("nhwcij,nhwo->ijco", patches, da)
    return loss, {"filter": filters, "shift": da.sum((0, 1, 2)), "dense": flat.T @ dz}


def _blocks(x: Array) -> Array:
    """Return the four elements of each window of 2x2 in a last axis."""
    n, h, w, c = x.shape
    split = x.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 5, 2, 4)
    return split.reshape(n, h // 2, w // 2, c, 4)


def _unblocked(blocks: Array) -> Array:
    n, h, w, c, _ = blocks.shape
    split = blocks.reshape(n, h, w, c, 2, 2).transpose(0, 1, 4, 2, 5, 3)
    return split.reshape(n, 2 * h, 2 * w, c)


def _cross_entropy(z: Array, y: Array) -> tuple[float, Array]:
    """Return the mean loss over the rows, and its gradient in z."""
    shifted = z - z.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(-np.mean((y * logs).sum(1))), (np.exp(logs) - y) / len(y)


def sgd(rate: float) -> Update:
    """Return gradient descent."""
    return lambda g, _state, _step: rate * g


def momentum(rate: float, kept: float) -> Update:
    """Return gradient descent with momentum."""

    def fall(g: Array, state: dict[str, Any], _step: int) -> Array:
        state["v"] = kept * state.get("v", 0.0) + g
        return np.asarray(rate * state["v"])

    return fall


def adam(rate: float) -> Update:
    """Return Adam with the means of Kingma and Ba: 0.9 and 0.999, epsilon 1e-7."""

    def fall(g: Array, state: dict[str, Any], step: int) -> Array:
        state["m"] = 0.9 * state.get("m", 0.0) + 0.1 * g
        state["s"] = 0.999 * state.get("s", 0.0) + 0.001 * g**2
        upright = np.sqrt(state["s"] / (1 - 0.999**step))
        return np.asarray(rate * state["m"] / (1 - 0.9**step) / (upright + 1e-7))

    return fall


def trained(model: Any, update: Update, steps: int) -> tuple[list[float], Gradients]:
    """Return the losses before each step, and the parameters after the last."""
    p = {name: item.astype(np.float64) for name, item in model.start().items()}
    x, y = model.batch("float64")
    states: dict[str, dict[str, Any]] = {name: {} for name in p}
    losses = []
    for step in range(1, steps + 1):
        loss, gradients = model.reference(p, x, y)
        losses.append(loss)
        p = {name: p[name] - update(gradients[name], states[name], step) for name in p}
    return losses, p
