"""Scaled dot-product attention: the kernel specs.

The scores are S = scale * q k^T plus a bias, and -inf where a query does not see a key. With
``lengths``, so many keys count, from the first on; if it is causal, the last query sees them all,
the one before it one less, and so on. k and v may have 1 in the place of a leading axis of q: so
heads share keys. Attention is y = P v with P = softmax(S) along the keys. The kernel also returns
log(sum(exp(S))) of the rows, from which the gradient kernel recomputes P, so that a fused kernel
never stores P.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes


def _read_scale(value: Any, known: InputTypes) -> float:
    """Return the factor rounded to the computing dtype; by default ``1 / sqrt(d)``."""
    q = known["q"]
    if value is None:
        value = 1.0 / math.sqrt(max(q.shape[-1], 1)) if q.rank else 1.0
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ArgumentError(f"must be a number or None, got {quoted(value)}")
    dtype = q.dtype.compute if q.dtype in dt.FLOATING else dt.float64  # others are refused later
    if not abs(number) <= dtype.max:
        raise ArgumentError(f"must be a finite {dtype}, got {quoted(value)}")
    return float(np.array(number, dtype.numpy))


def _check_sizes(
    q: TensorType,
    k: TensorType,
    v: TensorType,
    bias: TensorType | None,
    mask: TensorType | None,
    lengths: TensorType | None,
) -> tuple[Shape, int]:
    """Check the shapes; return the shape of the scores and the width of v."""
    if min(q.rank, k.rank, v.rank) < 2:
        raise ShapeError("q, k and v must have at least rank 2")
    batch = q.shape[:-2]
    for own in (k.shape[:-2], v.shape[:-2]):
        if len(own) != len(batch) or shapes.broadcast(batch, own) != batch:
            raise ShapeError("k and v must have the leading axes of q, or 1 in their places")
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"q has {q.shape[-1]} features, but k has {k.shape[-1]}")
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"k has {k.shape[-2]} rows, but v has {v.shape[-2]}")
    scores = (*q.shape[:-1], k.shape[-2])
    for name, operand in (("bias", bias), ("mask", mask)):
        if operand is not None and shapes.broadcast(scores, operand.shape) != scores:
            raise ShapeError(f"{name} must broadcast to the scores' shape {list(scores)}")
    if lengths is not None and shapes.broadcast(batch, lengths.shape) != batch:
        raise ShapeError(f"lengths must broadcast to the leading axes {list(batch)}")
    return scores, v.shape[-1]


def _infer_attention(
    q: TensorType,
    k: TensorType,
    v: TensorType,
    bias: TensorType | None,
    mask: TensorType | None,
    lengths: TensorType | None,
) -> tuple[TensorType, TensorType]:
    scores, width = _check_sizes(q, k, v, bias, mask, lengths)
    rows = scores[:-1]
    return TensorType(q.dtype, (*rows, width)), TensorType(q.dtype.compute, rows)


def _infer_attention_grad(
    dy: TensorType,
    q: TensorType,
    k: TensorType,
    v: TensorType,
    bias: TensorType | None,
    mask: TensorType | None,
    lengths: TensorType | None,
    log_sum_exp: TensorType,
    delta: TensorType,
) -> tuple[TensorType, ...]:
    y, rows = _infer_attention(q, k, v, bias, mask, lengths)
    for name, operand, expected in (
        ("dy", dy, y),
        ("log_sum_exp", log_sum_exp, rows),
        ("delta", delta, rows),
    ):
        if operand.shape != expected.shape:
            raise ShapeError(f"{name} must have shape {list(expected.shape)}")
        if operand.dtype is not expected.dtype:
            raise DTypeError(f"{name} must be {expected.dtype}")
    return q, k, v


_ATTRIBUTES = {
    "causal": attributes.flag(default=False),
    "scale": Attribute(_read_scale, None, "float"),
}

ATTENTION = KernelSpec(
    "ScaledDotProductAttention",
    ("q", "k", "v", "bias?", "mask?", "lengths?"),
    _infer_attention,
    attributes=_ATTRIBUTES,
    outputs=("y", "log_sum_exp"),
    accepts={
        **dict.fromkeys(("q", "k", "v", "bias"), dt.REAL),
        "mask": dt.BOOL,
        "lengths": dt.INTEGER,
    },
    promote=("q", "k", "v", "bias"),
    inexact=True,
)
ATTENTION_GRAD = KernelSpec(
    "ScaledDotProductAttentionGrad",
    ("dy", "q", "k", "v", "bias?", "mask?", "lengths?", "log_sum_exp", "delta"),
    _infer_attention_grad,
    attributes=_ATTRIBUTES,
    outputs=("dq", "dk", "dv"),
    accepts={
        **dict.fromkeys(("dy", "q", "k", "v", "bias", "log_sum_exp", "delta"), dt.FLOATING),
        "mask": dt.BOOL,
        "lengths": dt.INTEGER,
    },
    promote=("dy", "q", "k", "v", "bias"),
)
