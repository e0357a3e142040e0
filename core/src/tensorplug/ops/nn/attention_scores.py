"""The whole scores of attention and their softmax, which rules and decompositions use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import less_equal
from tensorplug.ops.elementwise.unary import exp
from tensorplug.ops.kinds import widen_half
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import expand_dims
from tensorplug.ops.ranges import arange
from tensorplug.ops.reduction import max as largest
from tensorplug.ops.reduction import sum as total

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

_INFINITE = float("inf")


def wide(x: Any) -> Any:
    """Return a tensor in the dtype to compute in; None stays None."""
    return x if x is None else widen_half(x)


def column(x: Tensor) -> Tensor:
    """Return one number per query, to be broadcast along the keys."""
    return expand_dims(x, axis=-1)


def times_transposed(a: Tensor, b: Tensor) -> Tensor:
    """Return the products of each row of ``a`` with each row of ``b``."""
    return matmul(a, b, transpose_b=True)


def transposed_times(a: Tensor, b: Tensor) -> Tensor:
    """Return the sums of the rows of ``b``, weighted by each column of ``a``."""
    return matmul(a, b, transpose_a=True)


def scores(
    q: Tensor,
    k: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None = None,
    *,
    causal: bool,
    scale: float,
) -> Tensor:
    """Return the scores ``[..., n_q, n_k]`` in float32 at least, -inf where nothing is seen."""
    product = times_transposed(wide(q) * scale, wide(k))
    if bias is not None:
        product = product + wide(bias)
    if mask is not None:
        product = where(mask, product, -_INFINITE)
    if causal or lengths is not None:
        queries, keys = product.shape[-2:]
        product = where(_is_seen(queries, keys, lengths, causal=causal), product, -_INFINITE)
    return product


def _is_seen(queries: int, keys: int, lengths: Tensor | None, *, causal: bool) -> Tensor:
    """Return which keys queries see, ``[..., n_q or 1, n_k]``: see ``ops.nn.attention``."""
    own, last = arange(keys), column(arange(queries))
    if lengths is not None:
        count = column(column(astype(lengths, own.dtype)))
        last = (last + (count - queries)) if causal else count - 1
    return less_equal(own, last)


def exponentials(of: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``exp(of - top)`` and ``top``, the largest score of each row.

    ``top`` is 0 where a row has nothing above -inf, so that nothing overflows and no row is NaN.
    """
    top = largest(of, axis=-1, keepdims=True)
    top = where(top == -_INFINITE, 0.0, top)
    return exp(of - top), top


def softmax(of: Tensor) -> Tensor:
    """Return the softmax of the rows: zeros where a row has no key."""
    if not of.shape[-1]:
        return of
    parts, _ = exponentials(of)
    sums = total(parts, axis=-1, keepdims=True)
    return parts / where(sums == 0.0, 1.0, sums)


def probabilities(of: Tensor, log_sum_exp: Tensor) -> Tensor:
    """Return ``softmax(of)`` from the log-sum-exp of its rows: zeros where a row has no key."""
    safe = where(log_sum_exp == -_INFINITE, _INFINITE, log_sum_exp)
    return exp(of - column(safe))
