"""Workloads of whole models: a step of an MLP and of a small CNN, a transformer block and back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Workload
from peers import available, backends, compiling, on, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]
    Shapes = dict[str, tuple[int, ...]]
    Loss = Callable[..., Any]

RATE = 0.01  # learning rate
EPSILON = 1e-5  # epsilon of layer normalization


@dataclass
class Model:
    """One model, written for three libraries: each function maps parameters and data to a loss.

    ``steps``: whether the parameters are updated, or only the gradient is computed.
    ``for_torch`` converts parameters and images to PyTorch's layout, channels first.
    """

    name: str
    shapes: Shapes
    data: tuple[Any, ...]
    ours: Loss
    torch: Loss
    jax: Loss
    steps: bool = True
    for_torch: Callable[[Any], Any] = field(default=lambda x: x)

    def parameters(self) -> dict[str, Any]:
        """Return weights scaled by the root of the number of inputs, and biases."""
        rng = np.random.default_rng(0)
        return {
            name: np.asarray(
                rng.standard_normal(shape) / math.sqrt(math.prod(shape[:-1]) or 1), np.float32
            )
            for name, shape in self.shapes.items()
        }

    def workload(self) -> Workload:
        """Return the workload."""
        contenders = {f"tensorplug {backend}": on(backend, self._ours) for backend in backends()}
        contenders |= {
            f"tensorplug {backend} compiled": on(backend, self._compiled)
            for backend in compiling()
        }
        baseline = "tensorplug cpu"
        if available("jax"):
            eager, jit = self._jax()
            contenders |= {"jax jit": jit}
            if self.name == "MLP step":  # other models are too slow
                contenders |= {"jax eager": eager}
        if available("torch"):
            contenders["torch"] = self._torch()
            baseline = "torch"
        return Workload(self.name, baseline, contenders)

    def _ours(self) -> Call:
        return self._called(self._step())

    def _compiled(self) -> Call:
        return self._called(tp.compile(self._step()))

    def _step(self) -> Loss:
        both = tp.value_and_grad(self.ours)

        def step(parameters: Any, *data: Any) -> Any:
            loss, gradients = both(parameters, *data)
            if not self.steps:
                return gradients
            return loss, {
                name: tp.multiply_add(gradients[name], -RATE, p) for name, p in parameters.items()
            }

        return step

    def _called(self, step: Loss) -> Call:
        parameters = {name: tp.asarray(parameter) for name, parameter in self.parameters().items()}
        data = [tp.asarray(array) for array in self.data]
        return lambda: step(parameters, *data)

    def _torch(self) -> Call:
        import torch

        parameters = {
            name: torch_tensor(self.for_torch(parameter)).requires_grad_()
            for name, parameter in self.parameters().items()
        }
        data = [torch_tensor(self.for_torch(array)) for array in self.data]
        leaves = list(parameters.values())

        def run() -> Any:
            loss = self.torch(parameters, *data)
            gradients = torch.autograd.grad(loss, leaves)
            if not self.steps:
                return gradients
            with torch.no_grad():
                return loss, torch._foreach_add(leaves, list(gradients), alpha=-RATE)

        return run

    def _jax(self) -> tuple[Call, Call]:
        import jax

        parameters = {
            name: jax.numpy.asarray(parameter) for name, parameter in self.parameters().items()
        }
        data = [jax.numpy.asarray(array) for array in self.data]

        def step(parameters: Any, *data: Any) -> Any:
            loss, gradients = jax.value_and_grad(self.jax)(parameters, *data)
            if not self.steps:
                return gradients
            return loss, {name: p - RATE * gradients[name] for name, p in parameters.items()}

        fast = jax.jit(step)
        return (
            lambda: jax.block_until_ready(step(parameters, *data)),
            lambda: jax.block_until_ready(fast(parameters, *data)),
        )


def _labelled(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return inputs and one-hot labels of ten classes."""
    rng = np.random.default_rng(1)
    labels = np.eye(10, dtype=np.float32)[rng.integers(0, 10, shape[0])]
    return rng.standard_normal(shape, dtype=np.float32), labels


def mlp() -> Workload:
    """784-256-128-10 with ReLU and cross-entropy, 64 examples, with an update."""

    def forward(x: Any, p: Any, relu: Callable[[Any], Any]) -> Any:
        x = relu(x @ p["w1"] + p["b1"])
        x = relu(x @ p["w2"] + p["b2"])
        return x @ p["w3"] + p["b3"]

    def ours(p: Any, x: Any, y: Any) -> Any:
        return tp.losses.softmax_cross_entropy(y, forward(x, p, tp.nn.relu))

    def torch_loss(p: Any, x: Any, y: Any) -> Any:
        import torch

        return torch.nn.functional.cross_entropy(forward(x, p, torch.relu), y)

    def jax_loss(p: Any, x: Any, y: Any) -> Any:
        import jax

        scores = jax.nn.log_softmax(forward(x, p, jax.nn.relu))
        return -(y * scores).sum(-1).mean()

    shapes: Shapes = {"w1": (784, 256), "b1": (256,), "w2": (256, 128), "b2": (128,)}
    shapes |= {"w3": (128, 10), "b3": (10,)}
    return Model("MLP step", shapes, _labelled((64, 784)), ours, torch_loss, jax_loss).workload()


def cnn() -> Workload:
    """Two convolutions 3x3 with ReLU and max pooling, one dense layer; 32 images of 28x28."""

    def ours(p: Any, x: Any, y: Any) -> Any:
        for at in "12":
            x = tp.nn.relu(tp.nn.conv2d(x, p[f"k{at}"], 1, "same") + p[f"b{at}"])
            x = tp.nn.max_pool(x, 2, 2, "valid")
        scores = tp.reshape(x, (x.shape[0], -1)) @ p["w"] + p["b"]
        return tp.losses.softmax_cross_entropy(y, scores)

    def torch_loss(p: Any, x: Any, y: Any) -> Any:
        from torch.nn import functional

        for at in "12":
            x = functional.conv2d(x, p[f"k{at}"], p[f"b{at}"], padding=1).relu()
            x = functional.max_pool2d(x, 2)
        return functional.cross_entropy(x.flatten(1) @ p["w"] + p["b"], y)

    def jax_loss(p: Any, x: Any, y: Any) -> Any:
        import jax
        from jax import lax

        for at in "12":
            form = ("NHWC", "HWIO", "NHWC")
            x = lax.conv_general_dilated(x, p[f"k{at}"], (1, 1), "SAME", dimension_numbers=form)
            x = jax.nn.relu(x + p[f"b{at}"])
            window = (1, 2, 2, 1)
            x = lax.reduce_window(x, -np.inf, lax.max, window, window, "VALID")
        scores = jax.nn.log_softmax(x.reshape(len(x), -1) @ p["w"] + p["b"])
        return -(y * scores).sum(-1).mean()

    def for_torch(x: Any) -> Any:
        if x.ndim < 4:
            return x
        order = (0, 3, 1, 2) if x.shape[:3] == (32, 28, 28) else (3, 2, 0, 1)
        return np.ascontiguousarray(x.transpose(order))

    shapes: Shapes = {"k1": (3, 3, 1, 16), "b1": (16,), "k2": (3, 3, 16, 32), "b2": (32,)}
    shapes |= {"w": (7 * 7 * 32, 10), "b": (10,)}
    data = _labelled((32, 28, 28, 1))
    return Model(
        "CNN step", shapes, data, ours, torch_loss, jax_loss, for_torch=for_torch
    ).workload()


DEPTH, HEADS, LENGTH, BATCH = 128, 4, 64, 16


def transformer_block() -> Workload:
    """Attention of 4 heads and an MLP with GELU, each after layer normalization; and back."""

    def ours(p: Any, x: Any) -> Any:
        def norm(x: Any, at: str) -> Any:
            return tp.nn.layer_norm(x, p["o" + at], p["s" + at], epsilon=EPSILON)

        def heads(x: Any) -> Any:
            return tp.permute_dims(tp.reshape(x, (BATCH, LENGTH, HEADS, -1)), (0, 2, 1, 3))

        y = norm(x, "1")
        q, k, v = (heads(y @ p[name]) for name in ("wq", "wk", "wv"))
        scores = tp.matmul(q, k, transpose_b=True) * (1 / math.sqrt(DEPTH // HEADS))
        seen = tp.permute_dims(tp.nn.softmax(scores) @ v, (0, 2, 1, 3))
        x = x + tp.reshape(seen, x.shape) @ p["wo"]
        x = x + (tp.nn.gelu(norm(x, "2") @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"])
        return tp.mean(tp.square(x))

    def torch_loss(p: Any, x: Any) -> Any:
        import torch
        from torch.nn import functional

        def norm(x: Any, at: str) -> Any:
            return functional.layer_norm(x, (DEPTH,), p["s" + at], p["o" + at], EPSILON)

        def heads(x: Any) -> Any:
            return x.reshape(BATCH, LENGTH, HEADS, -1).transpose(1, 2)

        y = norm(x, "1")
        q, k, v = (heads(y @ p[name]) for name in ("wq", "wk", "wv"))
        scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(DEPTH // HEADS))
        seen = (torch.softmax(scores, -1) @ v).transpose(1, 2)
        x = x + seen.reshape(x.shape) @ p["wo"]
        x = x + (functional.gelu(norm(x, "2") @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"])
        return x.square().mean()

    def jax_loss(p: Any, x: Any) -> Any:
        import jax
        from jax import numpy as jnp

        def norm(x: Any, at: str) -> Any:
            centred = x - x.mean(-1, keepdims=True)
            variance = jnp.square(centred).mean(-1, keepdims=True)
            return centred / jnp.sqrt(variance + EPSILON) * p["s" + at] + p["o" + at]

        def heads(x: Any) -> Any:
            return x.reshape(BATCH, LENGTH, HEADS, -1).transpose(0, 2, 1, 3)

        y = norm(x, "1")
        q, k, v = (heads(y @ p[name]) for name in ("wq", "wk", "wv"))
        scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(DEPTH // HEADS))
        seen = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3)
        x = x + seen.reshape(x.shape) @ p["wo"]
        between = jax.nn.gelu(norm(x, "2") @ p["w1"] + p["b1"], approximate=False)
        x = x + (between @ p["w2"] + p["b2"])
        return jnp.square(x).mean()

    square, wide = (DEPTH, DEPTH), 4 * DEPTH
    shapes: Shapes = dict.fromkeys(("wq", "wk", "wv", "wo"), square)
    shapes |= dict.fromkeys(("s1", "o1", "s2", "o2", "b2"), (DEPTH,))
    shapes |= {"w1": (DEPTH, wide), "b1": (wide,), "w2": (wide, DEPTH)}
    x = np.random.default_rng(2).standard_normal((BATCH, LENGTH, DEPTH), dtype=np.float32)
    return Model(
        "transformer block", shapes, (x,), ours, torch_loss, jax_loss, steps=False
    ).workload()


def chain() -> Workload:
    """Ten elementwise kernels one after another on 2**22 elements."""
    array = np.random.default_rng(3).random(1 << 22, dtype=np.float32)
    numbers = [np.float32(number) for number in (2, 1, 0.25, 3, 0.5)]

    def theirs(x: Any, np: Any, two: Any, one: Any, quarter: Any, three: Any, half: Any) -> Any:
        y = np.sqrt(np.abs(x * two + one)) - x
        y = np.maximum(y, quarter) * y
        return y / (x + three) - half

    def ours(x: Any) -> Any:
        return theirs(x, tp, 2, 1, 0.25, 3, 0.5)

    def called(f: Loss) -> Call:
        x = tp.asarray(array)
        return lambda: f(x)

    contenders: dict[str, Call] = {"numpy": lambda: theirs(array, np, *numbers)}
    contenders |= {
        f"tensorplug {backend}": on(backend, lambda: called(ours)) for backend in backends()
    }
    contenders |= {
        f"tensorplug {backend} compiled": on(backend, lambda: called(tp.compile(ours)))
        for backend in compiling()
    }
    if available("jax"):
        import jax

        fast = jax.jit(lambda x: theirs(x, jax.numpy, 2, 1, 0.25, 3, 0.5))
        given = jax.numpy.asarray(array)
        contenders["jax jit"] = lambda: jax.block_until_ready(fast(given))
    return Workload("chain of ten", "numpy", contenders)


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload."""
    yield "mlp", mlp
    yield "cnn", cnn
    yield "transformer", transformer_block
    yield "chain_of_ten", chain
