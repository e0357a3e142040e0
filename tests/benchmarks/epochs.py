"""An epoch of training, beside PyTorch and Keras: ``python tests/benchmarks/epochs.py``.

Each contender trains the same model on the same arrays in a process of its own, one epoch at a
time; the epochs of all contenders take turns. Seconds: the least epoch but for the first one, in
which programs are compiled, then the median; the ratio is of the least ones.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import statistics
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Epoch = Callable[[], object]

BATCH, CLASSES = 128, 10
WIDTH, HEADS, LAYERS, CONTEXT, CHARACTERS = 128, 4, 2, 64, 65
MODELS = ("MLP", "CNN", "transformer")


def arrays(model: str) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and labels: as many as MNIST has for the MLP, fewer for the others."""
    rng = np.random.default_rng(0)
    if model == "transformer":
        text = rng.integers(0, CHARACTERS, (1_600, CONTEXT + 1), dtype=np.int32)
        return text[:, :-1].copy(), text[:, 1:].copy()
    count, shape = (60_000, (784,)) if model == "MLP" else (12_000, (28, 28, 1))
    return rng.random((count, *shape), np.float32), rng.integers(0, CLASSES, count, np.int32)


# Contenders: each returns a function that trains for one epoch ------------------------------


def tensorplug(model: str, backend: str) -> Epoch:
    """Layers of tp.train, by fit."""
    import tensorplug as tp

    tp.set_backend(backend)
    network: Any
    layers, key = tp.train.layers, tp.random.key(0)
    keys = iter(tp.random.split(key, 32))

    def linear(*sizes: int) -> Any:
        return layers.Linear.init(next(keys), *sizes)

    def block() -> Any:
        attention = layers.MultiHeadAttention.init(next(keys), WIDTH, heads=HEADS, causal=True)
        norms = [layers.LayerNorm.init(WIDTH) for _ in range(2)]
        wide = layers.Sequential.of(linear(WIDTH, 4 * WIDTH), tp.nn.gelu, linear(4 * WIDTH, WIDTH))
        return {"attention": attention, "norms": norms, "wide": wide}

    def scores(network: Any, x: Any) -> Any:
        h = network["embedding"](x) + network["positions"]
        for part in network["blocks"]:
            h = h + part["attention"](part["norms"][0](h))
            h = h + part["wide"](part["norms"][1](h))
        return network["out"](h)

    def conv(inputs: int, outputs: int) -> Any:
        return layers.Conv.init(next(keys), inputs, outputs, (3, 3), padding="same")

    cross_entropy = tp.losses.sparse_softmax_cross_entropy
    objective: Any = tp.train.supervised(cross_entropy)
    pool = partial(tp.nn.max_pool, filter_size=2, strides=2)
    if model == "MLP":
        network = layers.Sequential.of(linear(784, 128), tp.nn.relu, linear(128, CLASSES))
    elif model == "CNN":
        network = layers.Sequential.of(
            *(conv(1, 16), tp.nn.relu, pool, conv(16, 32), tp.nn.relu, pool),
            *(lambda x: tp.reshape(x, (x.shape[0], -1)), linear(7 * 7 * 32, CLASSES)),
        )
    else:
        network = {
            "embedding": layers.Embedding.init(next(keys), CHARACTERS, WIDTH),
            "positions": tp.random.normal(next(keys), (CONTEXT, WIDTH)) * 0.02,
            "blocks": [block() for _ in range(LAYERS)],
            "out": linear(WIDTH, CHARACTERS),
        }

        def objective(network: Any, batch: Any) -> Any:
            return cross_entropy(batch[1], scores(network, batch[0]))

    data = tp.train.batches(arrays(model), BATCH, key=key)
    waits = _Waiting()
    fit = partial(tp.train.fit, network, data, objective, tp.train.adam(1e-3), epochs=1 << 20)
    return waits.start(lambda: fit(callbacks=[waits.turn], progress=False))


class _Waiting:
    """Lets a training that runs in a thread go on for one epoch at a time."""

    def __init__(self) -> None:
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)

    def turn(self, _epoch: Any) -> None:
        self._done.release()
        self._go.acquire()

    def start(self, train: Callable[[], object]) -> Epoch:
        failed = []

        def run() -> None:
            self._go.acquire()
            try:
                train()
            except Exception as error:  # noqa: BLE001  # raised in the other thread
                failed.append(error)
                self._done.release()

        def epoch() -> None:
            self._go.release()
            self._done.acquire()
            if failed:
                raise failed[0]

        threading.Thread(target=run, daemon=True).start()
        return epoch


def torch(model: str, feeding: str) -> Epoch:
    """PyTorch, eager, with batches by a DataLoader or by hand."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
            self.inputs, self.joined = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
            )

        def forward(self, x: Any) -> Any:
            parts = self.inputs(self.norms[0](x)).unflatten(-1, (3, HEADS, -1))
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.joined(seen.transpose(1, 2).flatten(2))
            return x + self.wide(self.norms[1](x))

    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(CONTEXT, WIDTH) * 0.02)

        def forward(self, x: Any) -> Any:
            return x + self.table

    networks = {
        "MLP": lambda: [nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, CLASSES)],
        "CNN": lambda: [
            *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(7 * 7 * 32, CLASSES)),
        ],
        "transformer": lambda: [
            *(nn.Embedding(CHARACTERS, WIDTH), Positions(), *(Block() for _ in range(LAYERS))),
            nn.Linear(WIDTH, CHARACTERS),
        ],
    }
    network = nn.Sequential(*networks[model]())
    x, labels = (torch.from_numpy(array) for array in arrays(model))
    x, labels = x.movedim(-1, 1).contiguous() if model == "CNN" else x, labels.long()
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    pairs = torch.utils.data.TensorDataset(x, labels)
    loader = torch.utils.data.DataLoader(pairs, BATCH, shuffle=True)

    def by_hand() -> Any:
        return ((x[rows], labels[rows]) for rows in torch.randperm(len(x)).split(BATCH))

    def epoch() -> None:
        total = torch.zeros(())
        for inputs, wanted in loader if feeding == "DataLoader" else by_hand():
            found = network(inputs).flatten(0, -2)
            loss = nn.functional.cross_entropy(found, wanted.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()

    return epoch


def keras(model: str, backend: str) -> Epoch:
    """Keras on PyTorch or JAX."""
    os.environ["KERAS_BACKEND"] = backend
    import keras
    from keras import layers

    class Positions(layers.Layer):
        def build(self, _shape: Any) -> None:
            self.table = self.add_weight(shape=(CONTEXT, WIDTH))

        def call(self, x: Any) -> Any:
            return x + self.table

    x, labels = arrays(model)
    h = inputs = keras.Input(x.shape[1:], dtype=x.dtype.name)
    if model == "MLP":
        h = layers.Dense(128, "relu")(h)
    elif model == "CNN":
        for filters in (16, 32):
            h = layers.MaxPool2D()(layers.Conv2D(filters, 3, padding="same", activation="relu")(h))
        h = layers.Flatten()(h)
    else:
        h = Positions()(layers.Embedding(CHARACTERS, WIDTH)(h))
        for _ in range(LAYERS):
            seen = layers.LayerNormalization()(h)
            seen = layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(
                seen, seen, use_causal_mask=True
            )
            h = h + seen
            wide = layers.Dense(4 * WIDTH, "gelu")(layers.LayerNormalization()(h))
            h = h + layers.Dense(WIDTH)(wide)
    network = keras.Model(
        inputs, layers.Dense(CHARACTERS if model == "transformer" else CLASSES)(h)
    )
    network.compile(
        keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    return lambda: network.fit(x, labels, batch_size=BATCH, verbose=0)


# Rounds ------------------------------------------------------------------------------------


def contenders(backends: list[str]) -> dict[str, Any]:
    """Return what makes each contender, but for libraries that are not installed."""
    found: dict[str, Any] = {
        f"tensorplug {backend}": partial(tensorplug, backend=backend) for backend in backends
    }
    installed = {name: importlib.util.find_spec(name) for name in ("torch", "keras", "jax")}
    if installed["torch"]:
        for feeding in ("by hand", "DataLoader"):
            found[f"torch, {feeding}"] = partial(torch, feeding=feeding)
    for backend in ("torch", "jax"):
        if installed["keras"] and installed[backend]:
            found[f"keras on {backend}"] = partial(keras, backend=backend)
    return found


def serve(make: Any, model: str, pipe: Any) -> None:
    """Train for one epoch whenever asked; answer with the seconds."""
    epoch = make(model)
    while pipe.recv():
        began = time.perf_counter()
        epoch()
        pipe.send(time.perf_counter() - began)


def measure(model: str, backends: list[str], rounds: int) -> None:
    """Print the rows of a model."""
    context, pipes = multiprocessing.get_context("spawn"), {}
    processes = []
    for name, make in contenders(backends).items():
        pipes[name], theirs = context.Pipe()
        processes.append(context.Process(target=serve, args=(make, model, theirs), daemon=True))
        processes[-1].start()
    spent: dict[str, list[float]] = {name: [] for name in pipes}
    for _ in range(rounds + 1):
        for name, pipe in pipes.items():
            pipe.send(True)
            spent[name].append(pipe.recv())
    for process, pipe in zip(processes, pipes.values(), strict=True):
        pipe.send(False)
        process.join()
    first = min(next(iter(spent.values()))[1:])
    for name, (_, *times) in spent.items():
        least = min(times)
        print(
            f"{model:12} {name:18} {least:7.2f} s {statistics.median(times):7.2f} s"
            f" {first / least:7.2f}",
            flush=True,
        )


def main() -> None:
    """Print a row for each model and contender."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--backend", action="append")
    parser.add_argument("--model", action="append", choices=MODELS)
    options = parser.parse_args()
    print(f"{'':31} {'least':>9} {'median':>9} {'ratio of the first':>19}")
    for model in options.model or MODELS:
        measure(model, options.backend or ["cpu"], options.rounds)


if __name__ == "__main__":
    main()
