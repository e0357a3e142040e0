"""The blocks of attention: what a call reads of its operands, and in which pieces.

Heads that share keys are rows of one product, and keys behind the lengths are not read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.extensions import share_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.plugin import TensorType
    from tensorplug_cpu.arrays import Array

_BLOCK: Final = 1 << 17  # scores at once, at most: half a megabyte of float32 for each thread
_LEAST: Final = 1 << 15  # and at least, if there are more: Python has its share of each
_KEYS: Final = 512  # of a block
HALF: Final = _BLOCK // 2  # scores where there are as many gradients of scores
_OWN_KEYS: Final = 256  # of a block that adds to sums of its keys and of its queries
_OWN_QUERIES: Final = 64  # of a strip at least, though causal ones see few keys
_PIECES: Final = 8  # of the gradients at least, as many as there may be threads
_FEW: Final = 1 << 18  # multiplications up to which BLAS takes one thread, and so do we


def transposed(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def times(rows: Array, keys: Array) -> Array:
    """Return ``[b, heads, rows, n] @ [b, n, m]``, in one product for the heads of a group."""
    found: Array = _folded(rows) @ keys
    return found.reshape(*rows.shape[:-1], keys.shape[-1])


def times_rows(weights: Array, rows: Array) -> Array:
    """Return the sums of rows, ``[b, heads, n, m]``, over heads, by ``[b, heads, n, k]``."""
    found: Array = transposed(_folded(weights)) @ _folded(rows)
    return found


def _folded(x: Array) -> Array:
    """Return the heads of a group as rows."""
    batches, heads, rows, width = x.shape
    return x.reshape(batches, heads * rows, width)


@dataclass(frozen=True)
class AttentionCall:
    """One call: ``q``, scaled, [batches, heads that share keys, n_q, d]; ``k``, [batches, n_k, d].

    ``lengths``: [batches, heads or 1, 1, 1]. ``batch``: the axes that are one in ``batches``.
    """

    q: Array
    k: Array
    v: Array
    bias: _Operand | None
    mask: _Operand | None
    lengths: Array | None
    batch: tuple[int, ...]
    causal: bool

    @classmethod
    def of(
        cls,
        qkv: tuple[Array, Array, Array],
        bias: Array | None,
        mask: Array | None,
        lengths: Array | None,
        scale: float,
        *,
        causal: bool,
    ) -> AttentionCall:
        """Convert the inputs of a kernel; narrow floats of k and v become float32 by blocks."""
        q, *shared = qkv
        dtype = np.result_type(q.dtype, np.float32)
        *batch, heads = leading = q.shape[:-2] or (1,)
        if any(x.shape[:-2][-1:] not in {(), (1,)} for x in shared):
            batch, heads = [*leading], 1  # they do not share keys
        several = math.prod(batch)
        full = (*batch, 1) if len(batch) < len(leading) else tuple(batch)
        k, v = (
            np.broadcast_to(x, (*full[len(full) - x.ndim + 2 :], *x.shape[-2:])).reshape(
                several, *x.shape[-2:]
            )
            for x in shared
        )
        flat = (several, heads)
        added, seen = (None if x is None else _Operand.of(x, leading, flat) for x in (bias, mask))
        counts = None
        if lengths is not None:
            counts = np.broadcast_to(lengths, leading).reshape(*flat, 1, 1).astype(np.int64)
        scaled = q.reshape(*flat, *q.shape[-2:]).astype(dtype, copy=False) * dtype.type(scale)
        return cls(scaled, k, v, added, seen, counts, tuple(full), causal)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The computing dtype."""
        found: np.dtype[Any] = self.q.dtype
        return found

    def flat(self, x: Array) -> Array:
        """Return an operand of the queries in the axes of q, in the dtype computed in."""
        return x.reshape(*self.q.shape[:2], *x.shape[-2:]).astype(self.dtype, copy=False)

    def block(self, x: Array, batch: slice, keys: slice) -> Array:
        """Return some rows of k or v, in the dtype computed in."""
        return x[batch, keys].astype(self.dtype, copy=False)

    def shared(self, gradient: Array, type_: TensorType) -> Array:
        """Return a gradient, summed over further axes along which the operand is shared."""
        if gradient.size == type_.size:
            return gradient
        whole = gradient.reshape(*self.batch, *gradient.shape[-2:])
        own = (1,) * (whole.ndim - type_.rank) + type_.shape
        axes = tuple(a for a, n in enumerate(own) if n != whole.shape[a])
        total: Array = whole.sum(axis=axes, keepdims=True)
        return total

    def share_out(self, work: Callable[[int], None], count: int) -> None:
        """Call ``work(number)`` for each number below ``count``, in threads if that helps."""
        if self.q.size * self._longest(slice(None)) > _FEW:
            share_out(work, count)
            return
        with np.errstate(all="ignore"):  # infinities are ordinary values
            for number in range(count):
                work(number)

    def _longest(self, batch: slice) -> int:
        """Return how many keys may be seen."""
        keys = int(self.k.shape[-2])
        if self.lengths is None or not self.lengths.size:
            return keys
        return min(keys, max(0, int(self.lengths[batch].max())))

    def _shifts(self, batch: slice) -> tuple[int, int]:
        """Return how far behind a causal query's number the last key that it sees lies."""
        if self.lengths is None:
            return 0, 0
        counts = self.lengths[batch] - self.q.shape[-2]
        return int(counts.min()), int(counts.max())

    def batch_slices(self, size: int) -> list[slice]:
        """Return batches one by one, or as many at once as a block of ``size`` scores holds."""
        scores = math.prod(self.q.shape[1:3]) * self.k.shape[-2]
        several = max(1, size // max(scores, 1))
        return [slice(batch, batch + several) for batch in range(0, len(self.q), several)]

    def strips(self) -> Iterator[tuple[slice, slice]]:
        """Yield batches and queries, so few that there is a strip for each thread."""
        batches, heads, queries = self.q.shape[:3]
        keys = self.k.shape[-2]
        scores = batches * heads * queries * keys
        size = min(_BLOCK, max(_LEAST, scores // (2 * _PIECES)))
        rows = max(1, size // max(min(keys, _KEYS) * heads, 1))
        if self.causal:  # the first queries see few keys
            rows = min(rows, max(_OWN_QUERIES, -(-queries // 4)))
        for batch in self.batch_slices(size):
            for first in range(0, queries, rows):
                yield batch, slice(first, min(first + rows, queries))

    def keys_of(self, batch: slice, queries: slice) -> Iterator[slice]:
        """Yield the keys of a strip's blocks, as far as anything is seen."""
        end = self._longest(batch)
        if self.causal:
            end = min(end, queries.stop + self._shifts(batch)[1])
        rows = (queries.stop - queries.start) * self.q.shape[1]
        width = max(_KEYS, _LEAST // max(rows, 1))
        for first in range(0, end, width):
            yield slice(first, min(first + width, end))

    def parts(self) -> list[range]:
        """Return the first keys of the blocks, in as many parts as make pieces for all threads."""
        batches, heads, queries = self.q.shape[:3]
        width = max(_OWN_KEYS, HALF // max(queries * heads, 1))
        first = range(0, self.k.shape[-2], width)
        several = min(len(first), -(-_PIECES // max(batches, 1)))
        edges = [len(first) * part // several for part in range(several + 1)] if several else []
        return [first[start:stop] for start, stop in pairwise(edges)]

    def blocks(self, batch: slice, part: range) -> Iterator[tuple[slice, slice]]:
        """Yield queries, and keys of a part, of the blocks in which anything is seen."""
        heads, queries = self.q.shape[1:3]
        keys, shift = self._longest(batch), self._shifts(batch)[1]
        rows = max(1, HALF // max(min(part.step, keys) * heads, 1))
        for start in part:
            for first in range(max(0, start - shift) if self.causal else 0, queries, rows):
                end = min(first + rows, queries)
                stop = min(start + part.step, end + shift if self.causal else keys, keys)
                if start < stop:
                    yield slice(first, end), slice(start, stop)

    def scores(self, batch: slice, queries: slice, keys: slice) -> Array:
        """Return the scores of one block, -inf where nothing is seen."""
        found = times(self.q[batch, :, queries], transposed(self.block(self.k, batch, keys)))
        if self.bias is not None:
            found += self.bias.part(batch, queries, keys)
        if self.mask is not None:
            np.copyto(found, -np.inf, where=~self.mask.part(batch, queries, keys))
        if self.causal or self.lengths is not None:
            self._hide(found, batch, queries, keys)
        return found

    def _hide(self, scores: Array, batch: slice, queries: slice, keys: slice) -> None:
        """Set scores to -inf where the key lies behind the last one that the query sees."""
        counts = None if self.lengths is None else self.lengths[batch]
        if self.causal:
            least = queries.start + self._shifts(batch)[0]  # the last key that all queries see
            last = np.arange(queries.start, queries.stop)[:, None]
            last = last if counts is None else last + (counts - self.q.shape[-2])
        else:
            assert counts is not None
            least, last = int(counts.min()) - 1, counts - 1
        first = max(least + 1, keys.start)
        if first < keys.stop:
            corner = scores[..., first - keys.start :]
            np.copyto(corner, -np.inf, where=np.arange(first, keys.stop) > last)


@dataclass(frozen=True)
class _Operand:
    """A mask or bias, of which no axis is repeated: ``which`` of ``array`` each head takes."""

    array: Array
    which: Array

    @classmethod
    def of(cls, x: Array, leading: tuple[int, ...], flat: tuple[int, int]) -> _Operand:
        """Take what broadcasts to ``(*leading, n_q, n_k)``; ``flat``: the axes of ``which``."""
        full = x.reshape((1,) * (2 + len(leading) - x.ndim) + x.shape)
        own = full.shape[:-2]
        array = full.reshape(math.prod(own), *full.shape[-2:])
        which = np.broadcast_to(np.arange(len(array)).reshape(own), leading).reshape(flat)
        return cls(array, which)

    def part(self, batch: slice, queries: slice, keys: slice) -> Array:
        """Return what belongs to a block, or broadcasts to it."""
        chosen = self.which[batch]
        if len(self.array) == 1 or chosen.size == 1:
            found = self.array[None, chosen.flat[:1]]
        else:
            found = self.array[chosen]
        if found.shape[-2] != 1:
            found = found[:, :, queries]
        return found if found.shape[-1] == 1 else found[..., keys]
