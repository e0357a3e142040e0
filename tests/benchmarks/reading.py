"""Workloads that read memory once and return little: reductions, matrices times vectors.

On an OpenCL device each is measured in two ways: one call and its result, which has the price of
handing work over to the device and back, and several calls in a row before a wait.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from harness import Workload
from peers import available, backends, on, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness import Call

SIZE: Final = 1 << 20
ROW: Final = 8  # calls before a wait
REDUCED: Final = {  # ours, NumPy's, and the name of PyTorch's
    "sum": (tp.sum, np.sum, "sum"),
    "max": (tp.max, np.max, "amax"),
    "mean": (tp.mean, np.mean, "mean"),
    "argmax": (tp.argmax, np.argmax, "argmax"),
}
SHAPES: Final = {"all": ((SIZE,), 0), "rows": ((1024, 1024), 1), "columns": ((1024, 1024), 0)}
MATRICES: Final = ((1024, 1024), (2048, 2048), (8192, 4096))


def _compared(
    title: str,
    arrays: list[Any],
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    torch_op: Callable[..., Any],
    calls: int,
) -> Workload:
    def prepared() -> Call:
        tensors = [tp.asarray(array) for array in arrays]

        def call() -> object:
            results = [ours(*tensors) for _ in range(calls)]
            return results[-1].numpy()

        return call

    contenders: dict[str, Call] = {"numpy": lambda: [theirs(*arrays) for _ in range(calls)]}
    for backend in backends():
        contenders[f"tensorplug {backend}"] = on(backend, prepared)
    if available("torch"):
        tensors = [torch_tensor(array) for array in arrays]

        def theirs_read() -> Any:
            return [torch_op(*tensors) for _ in range(calls)][-1].cpu()

        contenders["torch"] = theirs_read
    return Workload(title + (f", {calls} in a row" if calls > 1 else ""), "numpy", contenders)


def reduction(name: str, where: str, calls: int) -> Workload:
    """One reduction of 2^20 float32."""
    shape, axis = SHAPES[where]
    ours, theirs, torch_name = REDUCED[name]

    def torch_op(tensor: Any) -> Any:
        import torch

        return getattr(torch, torch_name)(tensor, dim=axis)

    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    return _compared(
        f"{name} of 2^20, {where}",
        [x],
        lambda x: ours(x, axis=axis),
        lambda x: theirs(x, axis=axis),
        torch_op,
        calls,
    )


def vector(shape: tuple[int, int], *, first: bool, calls: int) -> Workload:
    """A float32 matrix times a vector; ``first``: the vector comes first."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal(shape, dtype=np.float32)
    v = rng.standard_normal(shape[0 if first else 1], dtype=np.float32)
    title = f"{'v @ A' if first else 'A @ v'}, A of {shape[0]} x {shape[1]}"
    arrays = [v, a] if first else [a, v]
    product = operator.matmul
    return _compared(title, arrays, product, product, product, calls)


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of each workload."""
    for calls in (1, ROW):
        ending = "_in_a_row" if calls > 1 else ""
        for name in REDUCED:
            for where in SHAPES:
                yield (
                    f"{name}_{where}{ending}",
                    lambda name=name, where=where, calls=calls: reduction(name, where, calls),
                )
        for shape in MATRICES:
            for first in (False, True):
                yield (
                    f"{'vector_matrix' if first else 'matrix_vector'}{shape[0]}{ending}",
                    lambda shape=shape, first=first, calls=calls: vector(
                        shape, first=first, calls=calls
                    ),
                )
