"""Attention for tensorplug-cpu, whose buffers are NumPy arrays: the scores are computed in blocks.

The scores of a block stay in the cache from the product that computes them to the product that
uses them. Threads share out the blocks. The order of all sums depends on the shapes alone, so the
results are the same bit for bit for any number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import KernelTable, TensorType, specs
from tensorplug_attention.kernels import refuse_lengths
from tensorplug_cpu.extensions import share_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


Array = np.ndarray[Any, Any]

kernels = KernelTable()

_BLOCK: Final = 1 << 17  # scores at once, at most: half a megabyte of float32 for each thread
_LEAST: Final = 1 << 15  # and at least, if there are more: Python has its share of each
_KEYS: Final = 512  # of a block
_HALF: Final = _BLOCK // 2  # scores where there are as many gradients of scores
_OWN_KEYS: Final = 256  # of a block that adds to sums of its keys and of its queries
_PIECES: Final = 8  # of the gradients at least, as many as there may be threads
_FEW: Final = 1 << 18  # multiplications up to which BLAS takes one thread, and so do we


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
) -> Callable[..., list[Array]]:
    refuse_lengths(q, k, v, lengths)
    return lambda q, k, v, bias, mask, _: _attention(
        q, k, v, bias, mask, causal=causal, scale=scale, out=out
    )


def _attention(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    mask: Array | None,
    *,
    causal: bool,
    scale: float,
    out: tuple[TensorType, TensorType],
) -> list[Array]:
    """Keep the largest score of each row so far, and sums relative to it, from block to block."""
    of_y, of_rows = out
    call = _Call.of((q, k, v), bias, mask, scale, causal=causal)
    y = np.zeros((call.batches, *of_y.shape[-2:]), call.dtype)
    rows = np.empty((call.batches, of_rows.shape[-1]), call.dtype)
    strips = list(call.strips())[::-1]  # the last are long: causal queries see all before them

    def work(number: int) -> None:
        batch, queries = strips[number]
        sums = y[batch, queries]
        top = np.full((*sums.shape[:-1], 1), -np.inf, call.dtype)
        total = np.zeros_like(top)
        for keys in call.keys_of(queries):
            part = call.scores(batch, queries, keys)
            higher = np.maximum(top, np.max(part, axis=-1, keepdims=True))
            zero = np.where(higher == -np.inf, 0, higher)  # -inf - -inf would be NaN
            part -= zero
            np.exp(part, out=part)
            if keys.start:
                less = np.exp(top - zero)
                total *= less
                sums *= less
                sums += part @ call.v[batch, keys]
            else:
                np.matmul(part, call.v[batch, keys], out=sums)
            total += np.sum(part, axis=-1, keepdims=True)
            top = higher
        sums /= np.where(total == 0, 1, total)
        rows[batch, queries] = (top + np.log(total))[..., 0]

    call.share_out(work, len(strips))
    return [
        y.astype(of_y.dtype.numpy, copy=False).reshape(of_y.shape),
        rows.reshape(of_rows.shape),
    ]


@kernels.prepare(specs.ATTENTION_GRAD)
def attention_grad(
    dy: TensorType,
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
) -> Callable[..., list[Array]]:
    refuse_lengths(q, k, v, lengths)
    return lambda dy, q, k, v, bias, mask, _, log_sum_exp, delta: _attention_grad(
        dy, q, k, v, bias, mask, log_sum_exp, delta, causal=causal, scale=scale, out=out
    )


def _attention_grad(
    dy: Array,
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    mask: Array | None,
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
    call = _Call.of((q, k, v), bias, mask, scale, causal=causal)
    dy = call.flat(dy)
    rows = call.flat(np.where(np.isneginf(log_sum_exp), np.inf, log_sum_exp)[..., None])
    delta = call.flat(delta[..., None])
    parts = call.parts()
    pieces = [(part, batch) for part in range(len(parts)) for batch in call.batch_slices(_HALF)]
    dq, *others = dqs = [np.zeros_like(call.q) for _ in range(max(len(parts), 1))]
    dk, dv = np.zeros_like(call.k), np.zeros_like(call.v)

    def work(number: int) -> None:
        part, batch = pieces[number]
        for queries, keys in call.blocks(parts[part]):
            p = call.scores(batch, queries, keys)
            p -= rows[batch, queries]
            np.exp(p, out=p)
            dv[batch, keys] += _transposed(p) @ dy[batch, queries]
            ds = dy[batch, queries] @ _transposed(call.v[batch, keys])
            ds -= delta[batch, queries]
            ds *= p
            dqs[part][batch, queries] += ds @ call.k[batch, keys]
            dk[batch, keys] += _transposed(ds) @ call.q[batch, queries]

    call.share_out(work, len(pieces))
    for other in others:
        dq += other
    dq *= scale  # q itself is scaled already
    return [
        gradient.astype(type_.dtype.numpy, copy=False).reshape(type_.shape)
        for gradient, type_ in zip((dq, dk, dv), out, strict=True)
    ]


def _transposed(x: Array) -> Array:
    return x.swapaxes(-1, -2)


@dataclass(frozen=True)
class _Call:
    """One call, with its leading axes as one; ``q`` is scaled."""

    q: Array
    k: Array
    v: Array
    bias: _Operand | None
    mask: _Operand | None
    causal: bool

    @classmethod
    def of(
        cls,
        qkv: tuple[Array, Array, Array],
        bias: Array | None,
        mask: Array | None,
        scale: float,
        *,
        causal: bool,
    ) -> _Call:
        """Convert the inputs of a kernel; float16 is computed in float32."""
        dtype = np.result_type(qkv[0].dtype, np.float32)
        batch = qkv[0].shape[:-2]
        several = math.prod(batch)
        q, k, v = (x.reshape(several, *x.shape[-2:]).astype(dtype, copy=False) for x in qkv)
        added, seen = (None if x is None else _Operand.of(x, batch) for x in (bias, mask))
        return cls(q * dtype.type(scale), k, v, added, seen, causal)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The computing dtype."""
        found: np.dtype[Any] = self.q.dtype
        return found

    @property
    def batches(self) -> int:
        """The number of pairs of queries and keys."""
        return len(self.q)

    def flat(self, x: Array) -> Array:
        """Return ``x`` with its leading axes as one, in the dtype computed in."""
        return x.reshape(self.batches, *x.shape[-2:]).astype(self.dtype, copy=False)

    def share_out(self, work: Callable[[int], None], count: int) -> None:
        """Call ``work(number)`` for each number below ``count``, in threads if that helps."""
        if self.q.size * self.k.shape[-2] > _FEW:
            share_out(work, count)
            return
        with np.errstate(all="ignore"):  # infinities are ordinary values
            for number in range(count):
                work(number)

    def batch_slices(self, size: int) -> list[slice]:
        """Return batches one by one, or as many at once as a block of ``size`` scores holds."""
        scores = self.q.shape[-2] * self.k.shape[-2]
        several = max(1, size // max(scores, 1))
        return [slice(batch, batch + several) for batch in range(0, self.batches, several)]

    def strips(self) -> Iterator[tuple[slice, slice]]:
        """Yield batches and queries, so few that there is a strip for each thread."""
        queries, keys = self.q.shape[-2], self.k.shape[-2]
        size = min(_BLOCK, max(_LEAST, self.batches * queries * keys // (2 * _PIECES)))
        rows = size // max(min(keys, _KEYS), 1)
        for batch in self.batch_slices(size):
            for first in range(0, queries, rows):
                yield batch, slice(first, min(first + rows, queries))

    def keys_of(self, queries: slice) -> Iterator[slice]:
        """Yield the keys of a strip's blocks, as far as anything is seen."""
        keys = self.k.shape[-2]
        end = min(queries.stop, keys) if self.causal else keys
        width = max(_KEYS, _LEAST // (queries.stop - queries.start))
        for first in range(0, end, width):
            yield slice(first, min(first + width, end))

    def parts(self) -> list[range]:
        """Return the first keys of the blocks, in as many parts as make pieces for all threads."""
        queries, keys = self.q.shape[-2], self.k.shape[-2]
        width = max(_OWN_KEYS, _HALF // max(queries, 1))
        first = range(0, keys, width)
        several = min(len(first), -(-_PIECES // max(self.batches, 1)))
        edges = [len(first) * part // several for part in range(several + 1)] if several else []
        return [first[start:stop] for start, stop in pairwise(edges)]

    def blocks(self, part: range) -> Iterator[tuple[slice, slice]]:
        """Yield queries, and keys of a part, of the blocks in which anything is seen."""
        queries, keys = self.q.shape[-2], self.k.shape[-2]
        rows = max(1, _HALF // min(part.step, keys))
        for start in part:
            for first in range(start if self.causal else 0, queries, rows):
                end = min(first + rows, queries)
                stop = min(start + part.step, end if self.causal else keys, keys)
                yield slice(first, end), slice(start, stop)

    def scores(self, batch: slice, queries: slice, keys: slice) -> Array:
        """Return the scores of one block, -inf where nothing is seen."""
        found: Array = self.q[batch, queries] @ _transposed(self.k[batch, keys])
        if self.bias is not None:
            found += self.bias.part(batch, queries, keys)
        if self.mask is not None:
            np.copyto(found, -np.inf, where=~self.mask.part(batch, queries, keys))
        if self.causal:
            first = max(queries.start, keys.start)  # all queries see what is before it
            corner = found[..., first - keys.start :]
            seeing = np.arange(queries.start, queries.stop)[:, None]
            np.copyto(corner, -np.inf, where=np.arange(first, keys.stop) > seeing)
        return found


@dataclass(frozen=True)
class _Operand:
    """A mask or bias, of which no axis is repeated: ``which`` of ``array`` a batch takes."""

    array: Array
    which: Array

    @classmethod
    def of(cls, x: Array, batch: tuple[int, ...]) -> _Operand:
        """Take what broadcasts to ``(*batch, n_q, n_k)``."""
        full = x.reshape((1,) * (2 + len(batch) - x.ndim) + x.shape)
        leading = full.shape[:-2]
        array = full.reshape(math.prod(leading), *full.shape[-2:])
        which = np.broadcast_to(np.arange(len(array)).reshape(leading), batch).ravel()
        return cls(array, which)

    def part(self, batch: slice, queries: slice, keys: slice) -> Array:
        """Return what belongs to a block, or broadcasts to it."""
        chosen = self.which[batch]
        if len(chosen) == 1 or len(self.array) == 1:
            found = self.array[int(chosen[0]) : int(chosen[0]) + 1]
        else:
            found = self.array[chosen]
        if found.shape[-2] != 1:
            found = found[:, queries]
        return found if found.shape[-1] == 1 else found[..., keys]
