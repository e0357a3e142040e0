"""Workloads of order: reductions, running sums, sorting, searching, sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Workload
from peers import available, backends, on, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]

SIZE = 1 << 20
ROWS = (1024, 1024)


def _compare(
    name: str,
    shape: tuple[int, ...],
    numpy_op: Callable[[Any], object],
    ours: Callable[[Any], object],
    torch_op: str = "",
    jax_op: str = "",
    **others: Any,
) -> Workload:
    """One op of one float32 tensor. ``others``: further arguments of PyTorch and JAX."""
    x = np.random.default_rng(0).random(shape, dtype=np.float32)
    contenders: dict[str, Call] = {"numpy": lambda: numpy_op(x)}
    for backend in backends():
        contenders[f"tensorplug {backend}"] = on(backend, lambda: _op(ours, x))
    if torch_op and available("torch"):
        import torch

        theirs, tensor = getattr(torch, torch_op), torch_tensor(x)
        renamed = {{"axis": "dim"}.get(key, key): value for key, value in others.items()}
        contenders["torch"] = lambda: theirs(tensor, **renamed)
    if jax_op and available("jax"):
        import jax

        function, passed = getattr(jax.numpy, jax_op), jax.numpy.asarray(x)
        contenders["jax"] = lambda: jax.block_until_ready(function(passed, **others))
    return Workload(name, "numpy", contenders)


def _op(ours: Callable[[Any], object], x: Any) -> Call:
    tensor = tp.asarray(x)
    return lambda: ours(tensor)


def _search() -> Workload:
    """A million values in a sequence of a thousand."""
    rng = np.random.default_rng(1)
    sequence = np.sort(rng.random(1000, dtype=np.float32))
    values = rng.random(SIZE, dtype=np.float32)
    contenders: dict[str, Call] = {"numpy": lambda: np.searchsorted(sequence, values)}
    for backend in backends():
        contenders[f"tensorplug {backend}"] = on(backend, lambda: _places(sequence, values))
    if available("torch"):
        import torch

        a, b = torch_tensor(sequence), torch_tensor(values)
        contenders["torch"] = lambda: torch.searchsorted(a, b)
    return Workload("searchsorted 1M in 1000", "numpy", contenders)


def _places(sequence: Any, values: Any) -> Call:
    x1, x2 = tp.asarray(sequence), tp.asarray(values)
    return lambda: tp.searchsorted(x1, x2)


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload."""
    yield (
        "sum_of_columns",
        lambda: _compare(
            "sum of columns, 4 MB",
            ROWS,
            lambda x: np.sum(x, axis=0),
            lambda x: tp.sum(x, axis=0),
            "sum",
            "sum",
            axis=0,
        ),
    )
    yield (
        "std_rows",
        lambda: _compare(
            "std of rows, 4 MB",
            ROWS,
            lambda x: np.std(x, axis=1),
            lambda x: tp.std(x, axis=1),
            "std",
            "std",
            axis=1,
        ),
    )
    for axis in (0, 1):
        yield (
            f"cumsum_{axis}",
            lambda axis=axis: _compare(
                f"cumsum along axis {axis}, 4 MB",
                ROWS,
                lambda x: np.cumsum(x, axis=axis),
                lambda x: tp.cumsum(x, axis=axis),
                "cumsum",
                "cumsum",
                axis=axis,
            ),
        )
    yield "sort", lambda: _compare("sort 1M", (SIZE,), np.sort, tp.sort)
    yield (
        "argsort",
        lambda: _compare(
            "stable argsort 1M",
            (SIZE,),
            lambda x: np.argsort(x, stable=True),
            tp.argsort,
            "argsort",
            "argsort",
            stable=True,
        ),
    )
    yield (
        "topk",
        lambda: _compare(
            "top 10 of rows, 4 MB",
            ROWS,
            lambda x: np.argpartition(-x, 10, axis=1)[:, :10],
            lambda x: tp.topk(x, 10),
            "topk",
            k=10,
        ),
    )
    yield "searchsorted", _search
    yield (
        "unique",
        lambda: _compare(
            "unique values of 1M", (SIZE,), np.unique_values, tp.unique_values, "unique"
        ),
    )
    yield (
        "unique_all",
        lambda: _compare("unique_all of 1M", (SIZE,), np.unique_all, tp.unique_all),
    )
