"""What ``tp.train.fit`` adds to a compiled step: ``python tests/benchmarks/fitting.py``.

Epochs of ``fit`` and loops that call a compiled step take turns, in one process. Processor
microseconds of a step: medians and minima of rounds, and the median of the ratios within rounds.
The first two rounds, in which both are compiled, do not count.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

import tensorplug as tp

MODELS = {"tiny 16-16-10, 16": ((16, 16, 10), 16), "MLP 784-128-10, 128": ((784, 128, 10), 128)}


class Repeated:
    """An iterable that has one batch so often, and remembers when it gave the first one."""

    def __init__(self, batch: Any, count: int) -> None:
        self.batch, self.count, self.began = batch, count, 0.0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Any:
        self.began = time.process_time()
        for _ in range(self.count):
            yield self.batch


def network(sizes: tuple[int, ...]) -> list[dict[str, tp.Tensor]]:
    """Return weights of a multilayer perceptron."""
    keys = tp.random.split(tp.random.key(0), len(sizes))
    return [
        {"w": tp.random.normal(key, (n, m), scale=n**-0.5), "b": tp.zeros((m,))}
        for key, n, m in zip(keys, sizes, sizes[1:], strict=False)
    ]


def loss(layers: Any, batch: Any) -> tp.Tensor:
    """Return the mean cross-entropy of a batch."""
    x, labels = batch
    for layer in layers[:-1]:
        x = tp.nn.relu(x @ layer["w"] + layer["b"])
    scores = x @ layers[-1]["w"] + layers[-1]["b"]
    return tp.losses.sparse_softmax_cross_entropy(labels, scores)


def measure(name: str, steps: int, rounds: int, *, noise: bool, progress: bool) -> None:
    """Print a row."""
    sizes, count = MODELS[name]
    rng = np.random.default_rng(0)
    x = tp.asarray(rng.normal(size=(count, sizes[0])).astype(np.float32))
    labels = tp.asarray(rng.integers(0, sizes[-1], count).astype(np.int32))
    optimizer = tp.train.adam(1e-3)

    @tp.compile
    def step(layers: Any, state: Any, batch: Any) -> Any:
        value, gradients = tp.value_and_grad(loss)(layers, batch)
        layers, state = optimizer.step(gradients, state, layers)
        return layers, state, value

    layers = network(sizes)
    bare: list[Any] = [layers, optimizer.init(layers)]
    data = Repeated((x, labels), steps)
    spent: list[tuple[float, float]] = []

    def turn(_epoch: Any) -> None:
        fitted = time.process_time() - data.began
        layers, state = bare
        began = time.process_time()
        for batch in data:
            layers, state, value = step(layers, state, batch)
        value.item()
        spent.append((fitted / steps, (time.process_time() - began) / steps))
        bare[:] = layers, state

    key = tp.random.key(1) if noise else None
    tp.train.fit(
        network(sizes), data, loss, optimizer,
        epochs=rounds + 2, callbacks=[turn], progress=progress, key=key,
    )  # fmt: skip
    pairs = spent[2:]
    fitted, plain = ([1e6 * pair[at] for pair in pairs] for at in (0, 1))
    ratio = statistics.median(own / other for own, other in pairs)
    figures = [pick(times) for times in (plain, fitted) for pick in (statistics.median, min)]
    print(
        f"{name:22}{'with key' if noise else '':10}",
        *(f"{figure:9.1f}" for figure in figures),
        f"{ratio:8.3f}{figures[3] / figures[1]:8.3f}",
    )


def main() -> None:
    """Print a row for each model, without and with keys."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--progress", action="store_true")
    options = parser.parse_args()
    tp.set_backend(options.backend)
    print(f"{'':32}{'bare: median, least':>20}{'fit: median, least':>20}{'ratio':>8}{'least':>8}")
    for name, steps in zip(MODELS, (500, 60), strict=True):
        for noise in (False, True):
            measure(name, steps, options.rounds, noise=noise, progress=options.progress)


if __name__ == "__main__":
    main()
