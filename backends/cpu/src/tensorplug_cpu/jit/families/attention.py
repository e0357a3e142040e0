"""Attention of one query for each head, as in decoding, to a cache of keys and values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import TensorType
from tensorplug_cpu.jit.codegen.settings import least_elements
from tensorplug_cpu.jit.groups.kernels import compile_query

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

_MOST_HEADS: Final = 12  # that share keys, whose sums are in registers


def attend_query(
    qkv: tuple[TensorType, TensorType, TensorType],
    lengths: TensorType | None,
    scale: float,
    out: tuple[TensorType, TensorType],
    *,
    causal: bool,
) -> Call | None:
    """Return the kernel of one query for each head; None to decline it.

    It takes q, k, v, two absent inputs and the lengths.
    """
    q, k, v = qkv
    *leading, heads = q.shape[:-2] or (1,)
    keys, full = k.shape[-2], q.shape[:-2]
    shared = k.shape[:-2] != full
    if shared and lengths is not None and lengths.shape[-1:] not in {(), (1,)}:
        return None
    expected = (*leading, 1) if shared else full
    if not shared:
        leading, heads = list(full), 1
    fits = q.shape[-2] == 1 and k.shape[:-2] == v.shape[:-2] == expected and keys
    if not fits or not q.size or heads > _MOST_HEADS or least_elements() is None:
        return None
    batches = math.prod(leading)
    types = [
        TensorType(x.dtype, (batches, n, x.shape[-1]))
        for x, n in zip(qkv, (heads, keys, keys), strict=True)
    ]
    compute = compile_query(types[0], types[2], scale)
    if compute is None:
        return None
    seen = np.full(batches, 1 if causal else keys)
    of_lengths = (*leading, 1) if shared else full

    def run(*inputs: Any) -> list[Array]:
        arrays = [x.reshape(type_.shape) for x, type_ in zip(inputs, types, strict=False)]
        counts = seen
        if inputs[5] is not None:  # ``broadcast_to`` takes 5 us
            counts = np.empty(of_lengths, np.int64)
            counts[...] = inputs[5]
        results = compute(*arrays, counts.reshape(-1))
        return [x.reshape(type_.shape) for x, type_ in zip(results, out, strict=True)]

    return run
