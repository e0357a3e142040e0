"""Attention for tensorplug-example-minimal, whose buffers are boxes of NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import KernelRefusedError, KernelTable, TensorType, specs
from tensorplug_example_minimal.backend import Box

if TYPE_CHECKING:
    from collections.abc import Callable

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
    out: tuple[TensorType, TensorType],
) -> Callable[..., list[Box]]:
    """Compute plain and causal calls; the core decomposes those that are declined here."""
    if any(operand is not None for operand in (bias, mask, lengths)):
        raise KernelRefusedError("it takes no bias, mask or lengths")
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2] or not k.shape[-2]:
        raise KernelRefusedError("it takes keys of all heads")
    of_y, of_rows = out

    def run(q: Box, k: Box, v: Box, *_: None) -> list[Box]:
        y, rows = (np.empty(type_.shape, type_.dtype.numpy) for type_ in (of_y, of_rows))
        for first in range(0, of_y.shape[-2], _ROWS):
            own = slice(first, first + _ROWS)
            scores = (q.array[..., own, :] * y.dtype.type(scale)) @ k.array.swapaxes(-1, -2)
            if causal:
                seen = np.tri(scores.shape[-2], scores.shape[-1], first, dtype=bool)
                scores = np.where(seen, scores, -np.inf)
            top = scores.max(axis=-1, keepdims=True)
            parts = np.exp(scores - top)
            total = parts.sum(axis=-1, keepdims=True)
            y[..., own, :] = parts @ v.array / total
            rows[..., own] = (top + np.log(total))[..., 0]
        return [Box(y), Box(rows)]

    return run
