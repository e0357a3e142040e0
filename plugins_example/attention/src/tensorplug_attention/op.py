"""The two kernel specs, which define what every kernel must do, and the public function.

The scores are S = scale * q k^T plus a bias, and -inf where a query must not see a key. Attention
is y = P v with P = softmax(S) along the keys. A kernel also returns log(sum(exp(S))) of the rows,
from which the gradient kernel recomputes P, so that P is never stored.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug.plugin import (
    ArgumentError,
    Attribute,
    DType,
    DTypeError,
    InputTypes,
    KernelSpec,
    Shape,
    ShapeError,
    TensorType,
    as_tensor,
    attributes,
    chained,
    dispatch_multiple,
    shapes,
)
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug import Tensor

__all__ = ["ATTENTION", "ATTENTION_GRAD", "scaled_dot_product_attention", "wider"]

WHO = "scaled_dot_product_attention"


def wider(dtype: DType) -> DType:
    """Return the dtype in which a kernel computes and keeps sums of rows."""
    return dt.float32 if dtype is dt.float16 else dtype


def _scale(value: Any, known: InputTypes) -> float:
    """Return the factor rounded to the computing dtype; by default ``1 / sqrt(d)``."""
    q, *_ = known["qkv"] or [TensorType(dt.float32, ())]
    if value is None:
        value = 1.0 / math.sqrt(max(q.shape[-1], 1)) if q.rank else 1.0
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ArgumentError(f"must be a number or None, got {value!r}")
    dtype = wider(q.dtype) if q.dtype in dt.FLOATING else dt.float64  # others are refused later
    if not abs(number) <= float(np.finfo(dtype.name).max):
        raise ArgumentError(f"must be a finite {dtype}, got {value!r}")
    return float(np.array(number, dtype.numpy))


def _sizes(
    qkv: list[TensorType], bias: TensorType | None, mask: TensorType | None
) -> tuple[Shape, int]:
    """Check the shapes; return the shape of the scores and the width of v."""
    if len(qkv) != 3:
        raise ArgumentError(f"qkv must be the list [q, k, v], got {len(qkv)} tensors")
    q, k, v = qkv
    if min(q.rank, k.rank, v.rank) < 2:
        raise ShapeError("q, k and v must have at least rank 2")
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ShapeError("q, k and v must have the same leading axes")
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"q has {q.shape[-1]} features, but k has {k.shape[-1]}")
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"k has {k.shape[-2]} rows, but v has {v.shape[-2]}")
    scores = (*q.shape[:-1], k.shape[-2])
    for name, operand in (("bias", bias), ("mask", mask)):
        if operand is not None and shapes.broadcast(scores, operand.shape) != scores:
            raise ShapeError(f"{name} must broadcast to the scores' shape {list(scores)}")
    return scores, v.shape[-1]


def _attended(
    qkv: list[TensorType], bias: TensorType | None, mask: TensorType | None
) -> tuple[TensorType, TensorType]:
    scores, width = _sizes(qkv, bias, mask)
    rows = scores[:-1]
    dtype = qkv[0].dtype
    return TensorType(dtype, (*rows, width)), TensorType(wider(dtype), rows)


def _pulled(
    dy: TensorType,
    qkv: list[TensorType],
    bias: TensorType | None,
    mask: TensorType | None,
    log_sum_exp: TensorType,
    delta: TensorType,
) -> tuple[TensorType, ...]:
    y, rows = _attended(qkv, bias, mask)
    for name, operand, wanted in (
        ("dy", dy, y),
        ("log_sum_exp", log_sum_exp, rows),
        ("delta", delta, rows),
    ):
        if operand.shape != wanted.shape:
            raise ShapeError(f"{name} must have shape {list(wanted.shape)}")
        if operand.dtype is not wanted.dtype:
            raise DTypeError(f"{name} must be {wanted.dtype}")
    return tuple(qkv)


_ATTRIBUTES = {"causal": attributes.flag(default=False), "scale": Attribute(_scale, None)}

# q, k and v are one input, a list, so that one gradient rule serves all three and calls the
# gradient kernel once. Three rules would call it three times, each for a third of its results.
ATTENTION = KernelSpec(
    "ScaledDotProductAttention",
    ("qkv[]", "bias?", "mask?"),
    _attended,
    attributes=_ATTRIBUTES,
    outputs=("y", "log_sum_exp"),
    accepts={"qkv": dt.REAL, "bias": dt.REAL, "mask": dt.BOOL},
    promote=("qkv", "bias"),
    inexact=True,
)
ATTENTION_GRAD = KernelSpec(
    "ScaledDotProductAttentionGrad",
    ("dy", "qkv[]", "bias?", "mask?", "log_sum_exp", "delta"),
    _pulled,
    attributes=_ATTRIBUTES,
    outputs=("dq", "dk", "dv"),
    accepts={
        "dy": dt.FLOATING,
        "qkv": dt.FLOATING,
        "bias": dt.FLOATING,
        "mask": dt.BOOL,
        "log_sum_exp": dt.FLOATING,
        "delta": dt.FLOATING,
    },
    promote=("dy", "qkv", "bias"),
)


@chained
def scaled_dot_product_attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Return ``softmax(scale * q k^T + mask) v``: for each query a weighted mean of the values.

    On a backend with the kernels of this distribution, memory is proportional to ``n_q + n_k``,
    also in the backward pass: the ``n_q x n_k`` scores are computed block by block, and again for
    the gradient. On other backends, for the gradient of an additive mask and for second
    derivatives, other ops compute the whole scores.

    Args:
        q: queries, of shape ``[..., n_q, d]``.
        k: keys, of shape ``[..., n_k, d]``.
        v: values, of shape ``[..., n_k, d_v]``.
        mask: broadcasts to ``[..., n_q, n_k]``. Boolean: True where the query sees the key.
            Floating: added to the scores; -inf where the query does not see the key.
        causal: query i sees keys 0 to i only, counted from the start of both, as in PyTorch. It
            can be combined with a mask.
        scale: the factor of the scores; None for ``1 / sqrt(d)``.

    Leading axes broadcast. The result for a query that sees no key is zero, and its gradient is
    zero too. Finite elements of k and v that no query sees make no difference.

    q, k, v and a floating mask are differentiable, to any order. Integers among q, k and v
    become floats first; float16 is computed in float32.

    Returns:
        ``[..., n_q, d_v]``, in the common dtype of q, k, v and a floating mask.

    Raises:
        ShapeError: rank below 2, sizes that differ, or shapes that do not broadcast.
        DTypeError: q, k or v is complex or text, or the mask neither boolean nor floating.
        ArgumentError: scale is not a finite number.

    Sources: A. Vaswani et al., "Attention Is All You Need", 2017; the kernels: T. Dao et al.,
    "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", 2022.

    """
    tensors = [as_tensor(x, what=f"{WHO}: {name}") for name, x in (("q", q), ("k", k), ("v", v))]
    low = [tensor.type for tensor in tensors if tensor.ndim < 2]
    if low:
        raise ShapeError(f"{WHO}: q, k and v must have at least rank 2, got {low[0]}")
    batch = shapes.broadcast(*[tensor.shape[:-2] for tensor in tensors])
    full = [(*batch, *tensor.shape[-2:]) for tensor in tensors]
    qkv = [
        tensor if tensor.shape == shape else tp.broadcast_to(tensor, shape)
        for tensor, shape in zip(tensors, full, strict=True)
    ]
    bias, seen = _split_mask(mask)
    return dispatch_multiple(ATTENTION, qkv, bias, seen, causal=causal, scale=scale)[0]


def _split_mask(mask: Any) -> tuple[Tensor | None, Tensor | None]:
    """Return a mask as a bias or as a boolean mask; the other one is None."""
    if mask is None:
        return None, None
    tensor = as_tensor(mask, what=f"{WHO}: mask")
    if tensor.dtype is dt.bool_:
        return None, tensor
    if tensor.dtype in dt.FLOATING:
        return tensor, None
    raise DTypeError(
        f"{WHO}: mask is {tensor.type}, but must be boolean (True: the query sees the key) or "
        "floating (added to the scores)"
    )
