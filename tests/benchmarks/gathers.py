"""Workloads of indexing: embeddings and their gradients, masks, rows, assignment."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Workload
from peers import available, backends, on, torch_device, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]

WORDS, WIDTH, TOKENS = 10_000, 128, 4096  # a vocabulary, and a batch of 64 times 64 words


def _text(*, natural: bool) -> tuple[Any, Any, Any]:
    """Return a table, the words of a text and gradients for them."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, WORDS, TOKENS)
    if natural:  # a few words are frequent, most are rare
        ids = np.minimum(rng.zipf(1.3, TOKENS) - 1, WORDS - 1)
    table = rng.standard_normal((WORDS, WIDTH), dtype=np.float32)
    return table, ids.astype(np.int32), rng.standard_normal((TOKENS, WIDTH), dtype=np.float32)


def embedding() -> Workload:
    """Rows of a table."""
    table, ids, _ = _text(natural=False)
    contenders: dict[str, Call] = {"numpy": lambda: table.take(ids, axis=0)}
    for backend in backends():
        contenders[f"tensorplug {backend}"] = on(backend, lambda: _gather(table, ids))
    if available("torch"):
        import torch

        rows, at = torch_tensor(table), torch_tensor(ids)
        contenders["torch"] = lambda: torch.nn.functional.embedding(at, rows)
    if available("jax"):
        import jax

        take = jax.jit(lambda x, at: jax.numpy.take(x, at, axis=0))
        x, places = jax.numpy.asarray(table), jax.numpy.asarray(ids)
        contenders["jax jit"] = lambda: take(x, places).block_until_ready()
    return Workload("embedding of 4096 words", "numpy", contenders)


def _gather(table: Any, ids: Any) -> Call:
    shared = tp.get_backend() == "cpu"  # in the same memory as NumPy's, cached or not
    x, at = (tp.asarray(array, copy=False if shared else None) for array in (table, ids))
    return lambda: tp.gather(x, at)


def embedding_gradient(name: str, *, natural: bool) -> Workload:
    """Gradients of the words' rows, added up in a table of zeros."""
    _, ids, rows = _text(natural=natural)

    def added() -> object:
        result = np.zeros((WORDS, WIDTH), np.float32)
        np.add.at(result, ids, rows)
        return result

    contenders: dict[str, Call] = {"numpy add.at": added}
    for backend in backends():
        contenders[f"tensorplug {backend}"] = on(backend, lambda: _scatter(ids, rows))
    baseline = "numpy add.at"
    if available("torch"):
        import torch

        tensor, at = torch_tensor(rows), torch_tensor(ids.astype(np.int64))
        contenders["torch"] = lambda: torch.ops.aten.embedding_dense_backward(
            tensor, at, WORDS, -1, False
        )
        contenders["torch index_add"] = lambda: _summed(at, tensor)
    if available("jax"):
        import jax

        zeros = jax.numpy.zeros
        add = jax.jit(lambda at, dy: zeros((WORDS, WIDTH), dy.dtype).at[at].add(dy))
        places, dy = jax.numpy.asarray(ids), jax.numpy.asarray(rows)
        contenders["jax jit"] = lambda: add(places, dy).block_until_ready()
        baseline = "jax jit"
    return Workload(name, baseline, contenders)


def _summed(at: Any, tensor: Any) -> Any:
    import torch

    return torch.zeros(WORDS, WIDTH, device=torch_device()).index_add_(0, at, tensor)


def _scatter(ids: Any, rows: Any) -> Call:
    at, updates = tp.asarray(ids.reshape(-1, 1)), tp.asarray(rows)
    return lambda: tp.scatter_nd(at, updates, (WORDS, WIDTH))


def mask() -> Workload:
    """The elements of a matrix that are positive."""
    x = np.random.default_rng(0).standard_normal((1024, 1024), dtype=np.float32)
    contenders: dict[str, Call] = {"numpy": lambda: x[x > 0]}
    for backend in backends():
        contenders[f"tensorplug {backend}"] = on(backend, lambda: _positive(x))
    if available("torch"):
        tensor = torch_tensor(x)
        contenders["torch"] = lambda: tensor[tensor > 0]
    if available("jax"):
        import jax

        passed = jax.numpy.asarray(x)
        contenders["jax"] = lambda: passed[passed > 0].block_until_ready()  # noqa: PLW0108  # evaluated
    return Workload("mask of a million", "numpy", contenders)


def _positive(x: Any) -> Call:
    tensor = tp.asarray(x)
    return lambda: tensor[tensor > 0]


SUBSCRIPTS: dict[str, tuple[str, Callable[[Any], list[Any]]]] = {
    "rows": ("64 times x[i]", lambda x: [x[row] for row in range(64)]),
    "elements": ("64 times x[i, 3]", lambda x: [x[row, 3] for row in range(64)]),
    "columns": ("16 times x[:, i]", lambda x: [x[:, at] for at in range(16)]),
    "blocks": ("60 times x[i : i + 4]", lambda x: [x[row : row + 4] for row in range(60)]),
    "slices": (
        "five other subscripts",
        lambda x: [x[2:5], x[..., None], x[1:3, 2:4], x[:, ::2], x[...]],
    ),
    "iteration": ("64 rows by iteration", list),
}


def subscripts(name: str, take: Callable[[Any], list[Any]]) -> Workload:
    """Slices of a small matrix, one after the other."""
    x = np.random.default_rng(0).standard_normal((64, 16), dtype=np.float32)
    contenders: dict[str, Call] = {"numpy": lambda: take(x)}
    for backend in backends():
        contenders[f"tensorplug {backend}"] = on(backend, lambda: _parts(x, take))
    if available("torch"):
        tensor = torch_tensor(x)
        contenders["torch"] = lambda: take(tensor)
    return Workload(name, "numpy", contenders)


def _parts(x: Any, take: Callable[[Any], list[Any]]) -> Call:
    tensor = tp.asarray(x)
    return lambda: take(tensor)


def assignment() -> Workload:
    """A block and a row of a small matrix get other values."""
    x = np.zeros((64, 16), np.float32)
    contenders: dict[str, Call] = {"numpy": _assign(x)}
    for backend in backends():
        contenders[f"tensorplug {backend}"] = on(backend, lambda: _assign(tp.asarray(x)))
    if available("torch"):
        import torch

        contenders["torch"] = _assign(torch.zeros(64, 16, device=torch_device()))
    if available("jax"):
        import jax

        passed = jax.numpy.asarray(x)
        contenders["jax"] = lambda: passed.at[8:16, ::2].set(1).at[3].set(2).block_until_ready()
    return Workload("two assignments to 64 x 16", "numpy", contenders)


def _assign(x: Any) -> Call:
    def assign() -> object:
        x[8:16, ::2] = 1
        x[3] = 2
        return x

    return assign


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload."""
    yield "embedding", embedding
    name = "embedding's gradient"
    yield "embedding_grad", lambda: embedding_gradient(name, natural=False)
    yield "embedding_grad_text", lambda: embedding_gradient(f"{name}, text", natural=True)
    yield "mask", mask
    for key, subscript in SUBSCRIPTS.items():
        yield key, partial(subscripts, *subscript)
    yield "assignment", assignment
