"""Elementwise kernels on devices: large arrays, and small ones that are broadcast."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Workload
from peers import backends, on

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]

SIDE = 1024

# NumPy's and our name for an op, and what is added to a square.
UNARY = ("exp", "tanh", "log", "sin", "sqrt")
BINARY = ("add", "multiply", "divide", "less", "remainder")
BROADCAST: dict[str, tuple[int, ...]] = {"row": (SIDE,), "column": (SIDE, 1), "number": ()}


def beside_numpy(name: str, op: str, *arrays: Any) -> Workload:
    """One op on the arrays, including the wait, on each backend that opens."""
    numpy_op, ours = getattr(np, op), getattr(tp, op)

    def prepared() -> Call:
        tensors = [tp.asarray(array) for array in arrays]
        return lambda: ours(*tensors)

    contenders: dict[str, Call] = {"numpy": lambda: numpy_op(*arrays)}
    contenders |= {f"tensorplug {backend}": on(backend, prepared) for backend in backends()}
    return Workload(name, "numpy", contenders)


def _of_shapes(name: str, op: str, *shapes: tuple[int, ...]) -> Workload:
    rng = np.random.default_rng(0)
    arrays = [rng.random(shape, dtype=np.float32) + np.float32(0.5) for shape in shapes]
    return beside_numpy(name, op, *arrays)


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload: 2^20 elements."""
    whole = (SIDE, SIDE)
    for op in UNARY:
        yield f"pointwise_{op}", partial(_of_shapes, op, op, whole)
    for op in BINARY:
        yield f"pointwise_{op}", partial(_of_shapes, op, op, whole, whole)
    for name, shape in BROADCAST.items():
        yield f"pointwise_{name}", partial(_of_shapes, f"add a {name}", "add", whole, shape)
