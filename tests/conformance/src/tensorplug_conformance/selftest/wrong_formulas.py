"""Formulas with typical mistakes: narrow sums, lost ties, NaN that is skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def without_a_half(x: Array) -> Array:
    """Return the result if the thread for the first half never ran."""
    out = x.copy()
    half = out.reshape(-1)[: out.size // 2]
    half[...] = np.zeros((), x.dtype) if x.dtype.kind != "b" else ~half
    return out


def half_sum(x: Array, *, axis: Any, keep_dims: bool) -> Array:
    return np.asarray(x.astype(np.float16).sum(axis=axis, keepdims=keep_dims, dtype=np.float16))


def narrow_sum(x: Array, *, axis: Any, keep_dims: bool) -> Array:
    return np.asarray(x.sum(axis=axis, keepdims=keep_dims, dtype=x.dtype))


def narrow_mean(x: Array, *, axis: Any, keep_dims: bool) -> Array:
    total = narrow_sum(x, axis=axis, keep_dims=keep_dims)
    return np.asarray(total / np.asarray(x.size // max(total.size, 1)).astype(x.dtype))


def narrow_product(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
    a, b = a.swapaxes(-1, -2) if transpose_a else a, b.swapaxes(-1, -2) if transpose_b else b
    total = np.zeros((), a.dtype)
    for k in range(a.shape[-1]):
        total = total + a[..., k, None] * b[..., k, None, :]
    return np.asarray(total)


def narrow_softmax(x: Array, *, dim: int) -> Array:
    e = np.exp(x - x.max(axis=dim, keepdims=True, initial=-np.inf))
    return np.asarray(e / e.sum(axis=dim, keepdims=True, dtype=x.dtype))


def narrow_norm(x: Array, scale: Any, offset: Any, *, axis: Any, epsilon: float) -> Array:
    centred = x - narrow_mean(x, axis=axis, keep_dims=True)
    variance = narrow_mean(centred * centred, axis=axis, keep_dims=True).astype(np.float32)
    scores = centred.astype(np.float32) / np.sqrt(variance + epsilon)
    scores = scores if scale is None else scores * scale.astype(np.float32)
    return np.asarray(scores if offset is None else scores + offset.astype(np.float32))


def scatter_assigns(indices: Array, updates: Array, *, shape: Any) -> Array:
    out = np.zeros(shape, dtype=updates.dtype)
    out[tuple(np.moveaxis(indices, -1, 0))] = updates
    return out


def ties_last(x: Array, *, axis: int) -> Array:
    return np.asarray(x.shape[axis] - 1 - np.argmax(np.flip(x, axis), axis=axis))


def max_skips_nan(x: Array, *, reduction_indices: Any, keep_dims: bool) -> Array:
    return np.asarray(np.nanmax(x, axis=reduction_indices, keepdims=keep_dims, initial=-np.inf))


def unstable_softmax(x: Array, *, dim: int) -> Array:
    e = np.exp(x)
    return np.asarray(e / e.sum(axis=dim, keepdims=True))
