"""Scaled dot-product attention and its gradient: the scores are computed in blocks.

The scores of a block stay in the cache from the product that computes them to the product that
uses them. Threads share out the blocks. The order of all sums depends on the shapes alone, so the
results are the same bit for bit for any number of threads. Heads that share keys are rows of one
product, and keys behind the lengths are not read.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import KernelRefusedError, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.jit.families.attention import attend_query
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.kernels.nn.attention_blocks import (
    HALF,
    AttentionCall,
    times,
    times_rows,
    transposed,
)

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.ATTENTION, because="faster", dtypes=dt.FLOATING)
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
) -> Call:
    """Choose loops for one query of each head, as in decoding, and blocks for several."""
    _refuse_whole(q, k, lengths)
    made = None if bias or mask else attend_query((q, k, v), lengths, scale, out, causal=causal)
    if made is not None:
        return made
    return partial(_attend, causal=causal, scale=scale, out=out)


def _refuse_whole(q: TensorType, k: TensorType, lengths: TensorType | None) -> None:
    """Leave short sequences to the decomposition."""
    from tensorplug_loops.schedule.attention import is_short  # dozens of modules

    if is_short(q, k, lengths):
        raise KernelRefusedError("so few scores are computed all at once")


def _attend(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    mask: Array | None,
    lengths: Array | None,
    *,
    causal: bool,
    scale: float,
    out: tuple[TensorType, TensorType],
) -> list[Array]:
    """Keep the largest score of each row so far, and sums relative to it, from block to block."""
    of_y, of_rows = out
    call = AttentionCall.of((q, k, v), bias, mask, lengths, scale, causal=causal)
    y = np.zeros((*call.q.shape[:3], of_y.shape[-1]), call.dtype)
    rows = np.empty(call.q.shape[:3], call.dtype)
    strips = list(call.strips())[::-1]  # the last are long: causal queries see all before them

    def work(number: int) -> None:
        batch, queries = strips[number]
        sums = y[batch, :, queries]
        top = np.full((*sums.shape[:-1], 1), -np.inf, call.dtype)
        total = np.zeros_like(top)
        for keys in call.keys_of(batch, queries):
            part = call.scores(batch, queries, keys)
            higher = np.maximum(top, np.max(part, axis=-1, keepdims=True))
            zero = np.where(higher == -np.inf, 0, higher)  # -inf - -inf would be NaN
            part -= zero
            np.exp(part, out=part)
            found = times(part, call.block(call.v, batch, keys))
            if keys.start:
                less = np.exp(top - zero)
                total *= less
                sums *= less
                sums += found
            else:
                sums[...] = found
            total += np.sum(part, axis=-1, keepdims=True)
            top = higher
        sums /= np.where(total == 0, 1, total)
        rows[batch, :, queries] = (top + np.log(total))[..., 0]

    call.share_out(work, len(strips))
    return [
        y.astype(of_y.dtype.numpy, copy=False).reshape(of_y.shape),
        rows.reshape(of_rows.shape),
    ]


@kernels.prepare(specs.ATTENTION_GRAD, because="faster", dtypes=dt.FLOATING)
def attention_grad(
    dy: TensorType,  # the names of the spec
    q: TensorType,
    k: TensorType,
    v: TensorType,
    bias: TensorType | None,
    mask: TensorType | None,
    lengths: TensorType | None,
    log_sum_exp: TensorType,
    delta: TensorType,
    *,
    causal: bool,
    scale: float,
    out: tuple[TensorType, ...],
) -> Call:
    """Compute gradients in blocks, unless there are few scores."""
    _refuse_whole(q, k, lengths)
    return partial(_attend_back, causal=causal, scale=scale, out=out)


def _attend_back(
    dy: Array,
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    mask: Array | None,
    lengths: Array | None,
    log_sum_exp: Array,
    delta: Array,
    *,
    causal: bool,
    scale: float,
    out: tuple[TensorType, ...],
) -> list[Array]:
    """Make each block's probabilities again; all three gradients are sums over blocks.

    A piece has keys of its own, hence dk and dv; its dq is added to the others' afterwards.
    """
    call = AttentionCall.of((q, k, v), bias, mask, lengths, scale, causal=causal)
    dy = call.flat(dy)
    rows = call.flat(np.where(np.isneginf(log_sum_exp), np.inf, log_sum_exp)[..., None])
    delta = call.flat(delta[..., None])
    parts = call.parts()
    pieces = [(part, batch) for part in range(len(parts)) for batch in call.batch_slices(HALF)]
    dq, *others = dqs = [np.zeros_like(call.q) for _ in range(max(len(parts), 1))]
    dk, dv = (np.zeros(x.shape, call.dtype) for x in (call.k, call.v))

    def work(number: int) -> None:
        part, batch = pieces[number]
        for queries, keys in call.blocks(batch, parts[part]):
            p = call.scores(batch, queries, keys)
            p -= rows[batch, :, queries]
            np.exp(p, out=p)
            above = dy[batch, :, queries]
            dv[batch, keys] += times_rows(p, above)
            ds = times(above, transposed(call.block(call.v, batch, keys)))
            ds -= delta[batch, :, queries]
            ds *= p
            dqs[part][batch, :, queries] += times(ds, call.block(call.k, batch, keys))
            dk[batch, keys] += times_rows(ds, call.q[batch, :, queries])

    call.share_out(work, len(pieces))
    for other in others:
        dq += other
    dq *= scale  # q itself is scaled already
    return [
        call.shared(gradient, type_).astype(type_.dtype.numpy, copy=False).reshape(type_.shape)
        for gradient, type_ in zip((dq, dk, dv), out, strict=True)
    ]
