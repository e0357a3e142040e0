"""The whole scores and the probabilities, written with ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug_attention.op import wider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug import Tensor

__all__ = ["column", "probabilities", "scores", "times_transposed", "transposed_times", "wide"]

_INFINITE = float("inf")


def wide(x: Any) -> Any:
    """Return a tensor in float32 if it is float16, as it is otherwise; None stays None."""
    return x if x is None or x.dtype is wider(x.dtype) else tp.astype(x, wider(x.dtype))


def column(x: Tensor) -> Tensor:
    """Return one number per query as what is broadcast along the keys."""
    return tp.expand_dims(x, axis=-1)


def times_transposed(a: Tensor, b: Tensor) -> Tensor:
    """Return the products of each row of ``a`` with each row of ``b``."""
    return tp.matmul(a, b, transpose_b=True)


def transposed_times(a: Tensor, b: Tensor) -> Tensor:
    """Return the sums of the rows of ``b``, weighted by each column of ``a``."""
    return tp.matmul(a, b, transpose_a=True)


def scores(
    qkv: Sequence[Tensor], bias: Tensor | None, mask: Tensor | None, *, causal: bool, scale: float
) -> Tensor:
    """Return the scores ``[..., n_q, n_k]`` in float32 at least, -inf where nothing is seen."""
    q, k, _ = map(wide, qkv)
    found = times_transposed(q * scale, k)
    if bias is not None:
        found = found + wide(bias)
    if mask is not None:
        found = tp.where(mask, found, -_INFINITE)
    if causal:
        queries, keys = found.shape[-2:]
        seen = tp.greater_equal(column(tp.arange(queries)), tp.arange(keys))
        found = tp.where(seen, found, -_INFINITE)
    return found


def probabilities(of: Tensor, log_sum_exp: Tensor) -> Tensor:
    """Return ``softmax(of)`` from the log-sum-exp of its rows: zeros where a row has no key."""
    safe = tp.where(log_sum_exp == -_INFINITE, _INFINITE, log_sum_exp)
    return tp.exp(of - column(safe))
