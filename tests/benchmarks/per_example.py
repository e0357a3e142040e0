"""Workloads of vmap: the gradient of each of 64 examples through a perceptron of two layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from harness import Workload
from peers import available, backends, compiling, on

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]

SHAPES: Final = {"w1": (784, 128), "b1": (128,), "w2": (128, 10), "b2": (10,)}
EXAMPLES: Final = 64


def _arrays() -> tuple[dict[str, Any], Any, Any]:
    """Return parameters, images and the vectors that stand for their classes."""
    rng = np.random.default_rng(0)
    parameters = {
        name: (rng.standard_normal(shape) / 16).astype(np.float32)
        for name, shape in SHAPES.items()
    }
    images = rng.random((EXAMPLES, 784), np.float32)
    return parameters, images, np.eye(10, dtype=np.float32)[rng.integers(0, 10, EXAMPLES)]


def _loss(library: Any, log_softmax: Any, p: dict[str, Any], x: Any, y: Any) -> Any:
    hidden = library.maximum(x @ p["w1"] + p["b1"], 0)
    return -library.sum(log_softmax(hidden @ p["w2"] + p["b2"]) * y)


def _ours(p: dict[str, Any], x: Any, y: Any) -> Any:
    return _loss(tp, tp.nn.log_softmax, p, x, y)


def _jax(p: dict[str, Any], x: Any, y: Any) -> Any:
    import jax

    return _loss(jax.numpy, jax.nn.log_softmax, p, x, y)


def per_example_gradient() -> Workload:
    """All gradients of all examples: 26 MB of results."""
    parameters, images, classes = _arrays()
    of_each = tp.vmap(tp.grad(_ours), (None, 0, 0))

    def called(gradients: Any) -> Callable[[], Call]:
        def call() -> Call:
            p = {name: tp.asarray(array) for name, array in parameters.items()}
            x, y = tp.asarray(images), tp.asarray(classes)
            return lambda: gradients(p, x, y)

        return call

    contenders = {f"tensorplug {name}": on(name, called(of_each)) for name in backends()}
    contenders |= {
        f"tensorplug {name} compiled": on(name, called(tp.compile(of_each)))
        for name in compiling()
    }
    if available("jax"):
        import jax

        p = {name: jax.numpy.asarray(array) for name, array in parameters.items()}
        x, y = jax.numpy.asarray(images), jax.numpy.asarray(classes)
        jitted = jax.jit(jax.vmap(jax.grad(_jax), (None, 0, 0)))
        contenders["jax jit"] = lambda: jax.block_until_ready(jitted(p, x, y))
    baseline = "jax jit" if available("jax") else "tensorplug cpu compiled"
    return Workload("gradients of 64 examples through an MLP", baseline, contenders)


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload."""
    yield "per_example_gradient", per_example_gradient
