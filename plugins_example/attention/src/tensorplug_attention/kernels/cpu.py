"""Attention for tensorplug-cpu, whose buffers are NumPy arrays: block by block of queries.

A block's scores stay in the cache from the product that makes them to the one that uses them up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.tables import KernelTable
from tensorplug_attention.op import ATTENTION, ATTENTION_GRAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.spec import TensorType

Array = np.ndarray[Any, Any]

kernels = KernelTable()

_BLOCK: Final = 1 << 16  # scores at once: a quarter megabyte of float32, which a cache holds
_ROWS: Final = 16  # queries at least, so that a product of matrices is worth its name


@kernels.register(ATTENTION)
def attention(
    qkv: Sequence[Array],
    bias: Array | None,
    mask: Array | None,
    *,
    causal: bool,
    scale: float,
    out: tuple[TensorType, TensorType],
) -> list[Array]:
    """Softmax needs two passes over a block's scores, for the largest and for the sum."""
    of_y, of_rows = out
    call = _Call.of(qkv, bias, mask, scale, causal=causal)
    y = np.empty((call.batches, *of_y.shape[-2:]), call.dtype)
    rows = np.empty((call.batches, of_rows.shape[-1]), call.dtype)
    with np.errstate(all="ignore"):  # infinities are values here, whatever np.seterr says
        for batch, queries, keys in call.blocks():
            scores = call.scores(batch, queries, keys)
            top = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
            top[top == -np.inf] = 0  # -inf - -inf would be NaN
            scores -= top
            np.exp(scores, out=scores)
            total = np.sum(scores, axis=-1, keepdims=True)
            part = np.matmul(scores, call.v[batch, keys], out=y[batch, queries])
            part /= np.where(total == 0, 1, total)
            rows[batch, queries] = (top + np.log(total))[..., 0]
    return [
        y.astype(of_y.dtype.numpy, copy=False).reshape(of_y.shape),
        rows.reshape(of_rows.shape),
    ]


@kernels.register(ATTENTION_GRAD)
def attention_grad(
    dy: Array,
    qkv: Sequence[Array],
    bias: Array | None,
    mask: Array | None,
    log_sum_exp: Array,
    delta: Array,
    *,
    causal: bool,
    scale: float,
    out: tuple[TensorType, ...],
) -> list[Array]:
    """Make each block's probabilities again; dk and dv are sums over the blocks."""
    call = _Call.of(qkv, bias, mask, scale, causal=causal)
    dy = call.flat(dy)
    rows = call.flat(np.where(np.isneginf(log_sum_exp), np.inf, log_sum_exp)[..., None])
    delta = call.flat(delta[..., None])
    dq, dk, dv = np.empty_like(call.q), np.zeros_like(call.k), np.zeros_like(call.v)
    with np.errstate(all="ignore"):  # as above
        for batch, queries, keys in call.blocks():
            p = call.scores(batch, queries, keys)
            p -= rows[batch, queries]
            np.exp(p, out=p)
            dv[batch, keys] += _transposed(p) @ dy[batch, queries]
            ds = dy[batch, queries] @ _transposed(call.v[batch, keys])
            ds -= delta[batch, queries]
            ds *= p
            np.matmul(ds, call.k[batch, keys], out=dq[batch, queries])
            dk[batch, keys] += _transposed(ds) @ call.q[batch, queries]
    dq *= scale  # q itself is scaled already
    return [
        each.astype(type_.dtype.numpy, copy=False).reshape(type_.shape)
        for each, type_ in zip((dq, dk, dv), out, strict=True)
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
        qkv: Sequence[Array],
        bias: Array | None,
        mask: Array | None,
        scale: float,
        *,
        causal: bool,
    ) -> _Call:
        """Take a kernel's inputs; float16 is computed in float32."""
        dtype = np.result_type(qkv[0].dtype, np.float32)
        batch = qkv[0].shape[:-2]
        several = math.prod(batch)
        q, k, v = (x.reshape(several, *x.shape[-2:]).astype(dtype, copy=False) for x in qkv)
        added, seen = (None if x is None else _Operand.of(x, batch) for x in (bias, mask))
        return cls(q * dtype.type(scale), k, v, added, seen, causal)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What is computed in."""
        found: np.dtype[Any] = self.q.dtype
        return found

    @property
    def batches(self) -> int:
        """How many pairs of queries and keys there are."""
        return len(self.q)

    def flat(self, x: Array) -> Array:
        """Return ``x`` with its leading axes as one, in the dtype computed in."""
        return x.reshape(self.batches, *x.shape[-2:]).astype(self.dtype, copy=False)

    def blocks(self) -> Iterator[tuple[slice, slice, slice]]:
        """Yield batches, queries, and the keys that one of these may see."""
        queries, keys = self.q.shape[-2], self.k.shape[-2]
        rows = min(queries, max(_ROWS, _BLOCK // max(keys, 1)))
        several = max(1, _BLOCK // max(queries * keys, 1)) if rows == queries else 1
        for batch in range(0, self.batches, several):
            for first in range(0, queries, max(rows, 1)):
                end = min(first + rows, queries)
                seen = min(end, keys) if self.causal else keys
                yield slice(batch, batch + several), slice(first, end), slice(0, seen)

    def scores(self, batch: slice, queries: slice, keys: slice) -> Array:
        """Return the scores of one block, -inf where nothing is seen."""
        found: Array = self.q[batch, queries] @ _transposed(self.k[batch, keys])
        if self.bias is not None:
            found += self.bias.part(batch, queries, keys)
        if self.mask is not None:
            np.copyto(found, -np.inf, where=~self.mask.part(batch, queries, keys))
        if self.causal:
            corner = found[..., queries.start : keys.stop]  # all queries see what is before it
            hidden = np.arange(corner.shape[-1]) > np.arange(corner.shape[-2])[:, None]
            np.copyto(corner, -np.inf, where=hidden)
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
