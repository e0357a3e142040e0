"""Attention for tensorplug-example-minimal, whose device runs programs of NumPy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import KernelRefusedError, KernelTable, TensorType, specs
from tensorplug_example_minimal.kernels import launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_example_minimal.backend import Box, MinimalBackend

    Array = np.ndarray[Any, Any]

kernels = KernelTable()

_ROWS: Final = 64  # queries whose scores are in memory at the same time


@kernels.prepare(specs.ATTENTION)
def attention(
    q: TensorType,
    k: TensorType,
    v: TensorType,
    bias: TensorType | None,
    mask: TensorType | None,
    lengths: TensorType | None,
    *,
    causal: bool,
    scale: float,
    backend: MinimalBackend,
    out: tuple[TensorType, TensorType],
) -> Callable[..., Box | list[Box]]:
    """Compute plain and causal calls; the core decomposes those that are declined here."""
    if any(operand is not None for operand in (bias, mask, lengths)):
        raise KernelRefusedError("it takes no bias, mask or lengths")
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2] or not k.shape[-2]:
        raise KernelRefusedError("it takes keys of all heads")
    run = partial(launch, _attend, backend=backend, out=out, causal=causal, scale=scale)
    return lambda q, k, v, *_: run(q, k, v)


def _attend(q: Array, k: Array, v: Array, *, causal: bool, scale: float, out: list[Array]) -> None:
    """Write the result, and the logarithm of the sum of each row of scores."""
    y, rows = out
    for first in range(0, y.shape[-2], _ROWS):
        own = slice(first, first + _ROWS)
        scores = (q[..., own, :] * y.dtype.type(scale)) @ k.swapaxes(-1, -2)
        if causal:
            seen = np.tri(scores.shape[-2], scores.shape[-1], first, dtype=bool)
            scores = np.where(seen, scores, -np.inf)
        top = scores.max(axis=-1, keepdims=True)
        parts = np.exp(scores - top)
        total = parts.sum(axis=-1, keepdims=True)
        y[..., own, :] = parts @ v / total
        rows[..., own] = (top + np.log(total))[..., 0]
