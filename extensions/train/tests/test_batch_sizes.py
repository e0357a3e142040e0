"""Compiled training steps are traced once for all batch sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
import tensorplug_train as train

if TYPE_CHECKING:
    from collections.abc import Callable

BATCHES = (5, 8, 17, 1, 9, 16, 32, 33, 64, 20, 5)
"""Ten sizes: among them 1, which broadcasts, and powers of two, by which compilers multiply."""

CLASSES = 10


def numbers(*shape: int) -> Any:
    return tp.asarray(np.random.default_rng(sum(shape)).normal(0, 0.3, shape).astype(np.float32))


def perceptron(p: Any, x: Any) -> Any:
    return tp.nn.gelu(tp.nn.layer_norm(x @ p["w"] + p["b"])) @ p["out"] + p["c"]


def convolution(p: Any, x: Any) -> Any:
    h = tp.nn.relu(tp.nn.conv2d(x, p["w"], 2, pad="same") + p["b"])
    return tp.reshape(h, (-1, 36)) @ p["out"] + p["c"]


def attention(p: Any, x: Any) -> Any:
    q, k, v = x @ p["q"], x @ p["k"], x @ p["v"]
    x = tp.nn.layer_norm(x + tp.nn.softmax(q @ tp.matrix_transpose(k) * 0.3) @ v)
    return tp.mean(x + tp.nn.gelu(x @ p["w"] + p["b"]), axis=1) @ p["out"] + p["c"]


MODELS: dict[
    str, tuple[Callable[[Any, Any], Any], tuple[int, ...], dict[str, tuple[int, ...]]]
] = {
    "perceptron": (perceptron, (6,), {"w": (6, 13), "b": (13,), "out": (13, CLASSES)}),
    "convolution": (
        convolution,
        (6, 6, 1),
        {"w": (3, 3, 1, 4), "b": (4,), "out": (36, CLASSES)},
    ),
    "attention": (
        attention,
        (7, 12),
        {**dict.fromkeys("qkvw", (12, 12)), "b": (12,), "out": (12, CLASSES)},
    ),
}


@pytest.mark.filterwarnings("error::tensorplug.errors.RecompileWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_step_is_traced_once_for_all_batch_sizes(name: str) -> None:
    model, shape, sizes = MODELS[name]
    optimizer = train.adam(0.01)
    traces = []

    def step(p: Any, state: Any, x: Any, labels: Any) -> Any:
        traces.append(name)

        def loss(p: Any) -> Any:
            return tp.mean(tp.losses.sparse_softmax_cross_entropy(labels, model(p, x)))

        value, slopes = tp.value_and_grad(loss)(p)
        updates, state = optimizer.update(slopes, state, p)
        return value, slopes, train.apply_updates(p, updates), state

    p = {key: numbers(*size) for key, size in (sizes | {"c": (CLASSES,)}).items()}
    state, compiled = optimizer.init(p), tp.compile(step)
    count = 0
    for n in BATCHES:
        labels = tp.asarray(np.random.default_rng(n).integers(0, CLASSES, n).astype(np.int32))
        x = numbers(n, *shape)
        before = len(traces)
        value, slopes, mine, after = compiled(p, state, x, labels)
        count += len(traces) - before
        expected, right, theirs, _ = step(p, state, x, labels)
        np.testing.assert_allclose(value.numpy(), expected.numpy(), rtol=1e-5)
        for key in p:
            assert slopes[key].type == right[key].type
            np.testing.assert_allclose(
                slopes[key].numpy(), right[key].numpy(), rtol=2e-4, atol=2e-6
            )
            np.testing.assert_allclose(
                mine[key].numpy(), theirs[key].numpy(), rtol=1e-3, atol=1e-4
            )
        p, state = mine, after
    assert count == 2  # for 5, and for 1
