"""References for scaled dot-product attention and its gradient, with bounds for rounding."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import finfo

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def attention(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    lengths: Array | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[Bounded, Bounded]:
    """Return y and log_sum_exp, each with its bound."""
    with np.errstate(all="ignore"):
        s = _Scores(q, k, bias, mask, lengths, causal=causal, scale=scale)
        rows = np.logaddexp.reduce(s.value, axis=-1)
        rows = np.where(np.isposinf(rows), np.nan, rows)  # as is the softmax of an infinity
        p = s.probabilities(rows)
        top = np.max(s.value, axis=-1, keepdims=True, initial=-np.inf)
        wrong = p * _finite(s.error + _largest(s.error) + s.eps * (np.abs(s.value - top) + 8))
        v = wide(v)
        spread = p @ np.abs(v)
        total = wrong.sum(axis=-1)
        of_keys = s.eps * (_levels(p.shape[-1]) + 4)
        of_y = wrong @ np.abs(v) + (total[..., None] + of_keys) * spread
        of_rows = total + of_keys + 2 * s.eps * (np.abs(rows) + np.abs(top[..., 0]))
        y = p @ v
        tiny = np.abs(v).sum(axis=-2, keepdims=True) * s.tiny  # where P underflows
        return (
            Bounded(y, _finite(of_y + tiny + s.rounding * np.abs(y))),
            Bounded(rows, _finite(of_rows)),
        )


def attention_grad(
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
    causal: bool = False,
    scale: float | None = None,
) -> tuple[Bounded, Bounded, Bounded]:
    """Return dq, dk and dv for any log_sum_exp and delta, each with its bound."""
    with np.errstate(all="ignore"):
        s = _Scores(q, k, bias, mask, lengths, causal=causal, scale=scale)
        q, k, v = map(wide, (q, k, v))
        above, rows, shift = wide(dy), wide(log_sum_exp), wide(delta)[..., None]
        p = s.probabilities(rows)
        of_p = p * _finite(s.error + s.eps * (np.abs(s.value - rows[..., None]) + 8))
        slope = above @ _turned(v) - shift
        size = np.abs(above) @ np.abs(_turned(v)) + np.abs(shift)
        ds = p * slope * s.scale
        of_ds = of_p * np.abs(slope) + p * size * s.eps * (_levels(v.shape[-1]) + 4)
        of_ds = of_ds * abs(s.scale) + 4 * s.eps * np.abs(ds)
        return (
            s.product(ds, of_ds, k),
            s.shared(s.product(_turned(ds), _turned(of_ds), q), k),
            s.shared(s.product(_turned(p), _turned(of_p), above), v),
        )


class _Scores:
    """The scores, -inf for keys that are not seen, with bounds on their rounding errors."""

    def __init__(
        self,
        q: Array,
        k: Array,
        bias: Array | None,
        mask: Array | None,
        lengths: Array | None,
        *,
        causal: bool,
        scale: float | None,
    ) -> None:
        dtype = q.dtype
        q, k = wide(q), wide(k)
        about = finfo(np.result_type(dtype, np.float32))  # the dtype of the computation
        self.eps, self.tiny = np.longdouble(about.eps), np.longdouble(about.smallest_normal)
        self.rounding = np.longdouble(finfo(dtype).eps)
        width = q.shape[-1]
        default = 1 / np.sqrt(np.longdouble(max(width, 1)))
        self.scale = default if scale is None else np.longdouble(scale)
        value = (q @ _turned(k)) * self.scale
        size = (np.abs(q) @ np.abs(_turned(k))) * np.abs(self.scale) * (_levels(width) + 4)
        if bias is not None:
            value = value + wide(bias)
            size = size + np.abs(wide(bias)) + np.abs(value)
        seen = np.ones(value.shape[-2:], bool) if mask is None else mask
        queries, keys = value.shape[-2:]
        if lengths is not None:
            count = lengths.astype(np.int64)[..., None, None]
            seen = seen & (np.arange(keys) < count)
        if causal:
            own = np.arange(queries)[:, None]  # the places of queries among the keys
            own = own if lengths is None else own + count - queries
            seen = seen & (own >= np.arange(keys))
        self.value = np.where(seen, value, -np.inf)
        self.error = np.where(seen, _finite(size * self.eps), 0)

    def probabilities(self, rows: Array) -> Array:
        """Return each key's share of the sum of its row."""
        return np.where(np.isneginf(self.value), 0, np.exp(self.value - rows[..., None]))

    def product(self, a: Array, of_a: Array, b: Array) -> Bounded:
        """Return a product of matrices with its bound; ``of_a`` bounds the error of the first."""
        value = a @ b
        own = np.abs(a) @ np.abs(b) * self.eps * (_levels(a.shape[-1]) + 4)
        bound = of_a @ np.abs(b) + own + self.rounding * np.abs(value)
        return Bounded(value, _finite(bound))

    def shared(self, found: Bounded, operand: Array) -> Bounded:
        """Return the sum over the leading axes along which an operand is repeated."""
        value, bound = found.value, found.bound
        axes = tuple(a for a, n in enumerate(operand.shape[:-2]) if n == 1 != value.shape[a])
        if not axes:
            return found
        terms = int(np.prod([value.shape[a] for a in axes]))
        size = np.abs(value).sum(axis=axes, keepdims=True) * self.eps * _levels(terms)
        total = value.sum(axis=axes, keepdims=True)
        return Bounded(total, bound.sum(axis=axes, keepdims=True) + _finite(size))


def _turned(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def _levels(terms: int) -> float:
    """Return how many roundings a pairwise sum of so many terms involves."""
    return math.log2(max(terms, 1)) + 1


def _largest(x: Array) -> Array:
    return np.asarray(np.max(x, axis=-1, keepdims=True, initial=0))


def _finite(x: Any) -> Array:
    """Return a bound with 0 in place of NaN and infinity."""
    return np.where(np.isfinite(x), x, 0)
