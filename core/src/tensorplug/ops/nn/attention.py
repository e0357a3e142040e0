"""Scaled dot-product attention. It lives in ``tensorplug.nn``.

The scores are S = scale * q k^T plus a bias, and -inf where a query must not see a key. Attention
is y = P v with P = softmax(S) along the keys. The kernel also returns log(sum(exp(S))) of the
rows, from which the gradient kernel recomputes P, so that a fused kernel never stores P.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import flag, quoted
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch_multiple
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops.elementwise import astype
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import broadcast_to, reshape
from tensorplug.ops.nn import attention_scores
from tensorplug.ops.nn.attention_scores import wide
from tensorplug.ops.nn.regularization import dropout as drop_out

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, KeyLike

__all__ = ["scaled_dot_product_attention"]

_WHO = "scaled_dot_product_attention"


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
) -> tuple[Shape, int]:
    """Check the shapes; return the shape of the scores and the width of v."""
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


def _infer_attention(
    q: TensorType,
    k: TensorType,
    v: TensorType,
    bias: TensorType | None,
    mask: TensorType | None,
) -> tuple[TensorType, TensorType]:
    scores, width = _check_sizes(q, k, v, bias, mask)
    rows = scores[:-1]
    return TensorType(q.dtype, (*rows, width)), TensorType(q.dtype.compute, rows)


def _infer_attention_grad(
    dy: TensorType,
    q: TensorType,
    k: TensorType,
    v: TensorType,
    bias: TensorType | None,
    mask: TensorType | None,
    log_sum_exp: TensorType,
    delta: TensorType,
) -> tuple[TensorType, ...]:
    y, rows = _infer_attention(q, k, v, bias, mask)
    for name, operand, wanted in (
        ("dy", dy, y),
        ("log_sum_exp", log_sum_exp, rows),
        ("delta", delta, rows),
    ):
        if operand.shape != wanted.shape:
            raise ShapeError(f"{name} must have shape {list(wanted.shape)}")
        if operand.dtype is not wanted.dtype:
            raise DTypeError(f"{name} must be {wanted.dtype}")
    return q, k, v


_ATTRIBUTES = {
    "causal": attributes.flag(default=False),
    "scale": Attribute(_read_scale, None, "float"),
}

ATTENTION = KernelSpec(
    "ScaledDotProductAttention",
    ("q", "k", "v", "bias?", "mask?"),
    _infer_attention,
    attributes=_ATTRIBUTES,
    outputs=("y", "log_sum_exp"),
    accepts={**dict.fromkeys(("q", "k", "v", "bias"), dt.REAL), "mask": dt.BOOL},
    promote=("q", "k", "v", "bias"),
    inexact=True,
)
ATTENTION_GRAD = KernelSpec(
    "ScaledDotProductAttentionGrad",
    ("dy", "q", "k", "v", "bias?", "mask?", "log_sum_exp", "delta"),
    _infer_attention_grad,
    attributes=_ATTRIBUTES,
    outputs=("dq", "dk", "dv"),
    accepts={
        **dict.fromkeys(("dy", "q", "k", "v", "bias", "log_sum_exp", "delta"), dt.FLOATING),
        "mask": dt.BOOL,
    },
    promote=("dy", "q", "k", "v", "bias"),
)


@chained
def scaled_dot_product_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    grouped_query: bool = False,
    dropout: float = 0.0,
    dropout_key: KeyLike | None = None,
) -> Tensor:
    """Return ``softmax(scale * q k^T + mask) v``: for each query a weighted mean of the values.

    If a backend has a fused kernel (the distribution tensorplug-attention provides them for cpu
    and opencl), the memory used is proportional to ``n_q + n_k``, in the backward pass too. On
    other backends, and for dropout, the gradient of an additive mask and second derivatives,
    other ops compute all scores at once.

    Args:
        q: queries, [..., n_q, d].
        k: keys, [..., n_k, d].
        v: values, [..., n_k, d_v].
        mask: broadcasts to [..., n_q, n_k]. Boolean: True where the query sees the key.
            Floating: added to the scores; -inf where the query does not see the key.
        is_causal: query i sees keys 0 to i only, counted from the start of both, as in PyTorch.
            It can be combined with a mask.
        scale: the factor of the scores; None for ``1 / sqrt(d)``.
        grouped_query: axis -3 holds heads, and q has a multiple of the number of heads of k and v:
            ``heads / key_heads`` neighbouring heads of q share one head of k and v.
        dropout: the probability, in [0, 1), that the weight of a value is set to 0; the
            other weights are divided by ``1 - dropout``.
        dropout_key: a key of ``tensorplug.random``; required for dropout.

    Leading axes broadcast. The result for a query that sees no key is zero, and its gradient is
    zero too. Finite elements of k and v that no query sees make no difference.

    q, k, v and a floating mask are differentiable, to any order. Integers among q, k and v
    become floats first; float16 is computed in float32.

    Returns:
        [..., n_q, d_v], in the common dtype of q, k, v and a floating mask.

    Raises:
        ShapeError: rank below 2, sizes that differ, or shapes that do not broadcast.
        DTypeError: q, k or v is complex or text, or the mask is neither boolean nor floating.
        ArgumentError: ``scale`` is not a finite number, ``dropout`` is out of range, or its key
            is missing.

    Sources: "Attention is all you need" (Vaswani et al., 2017); groups: "GQA: training generalized
    multi-query transformer models" (Ainslie et al., 2023).

    Examples:
        >>> q, k = [[0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]
        >>> v = [[2.0], [6.0]]
        >>> tp.nn.scaled_dot_product_attention(q, k, v)  # equal scores: the mean
        Tensor([[4.]], dtype=float32, device='cpu')
        >>> tp.nn.scaled_dot_product_attention(q, k, v, [[True, False]])
        Tensor([[2.]], dtype=float32, device='cpu')
        >>> q = tp.ones((2, 8, 16, 64))  # batch, heads, queries, features
        >>> k = v = tp.ones((2, 2, 20, 64))  # four heads of q share one of k and v
        >>> tp.nn.scaled_dot_product_attention(q, k, v, grouped_query=True).shape
        (2, 8, 16, 64)

    """
    tensors = [
        as_tensor(x, what=f"{_WHO}: {name}") for name, x in zip("qkv", (q, k, v), strict=True)
    ]
    low = [tensor.type for tensor in tensors if tensor.ndim < 2]
    if low:
        raise ShapeError(f"{_WHO}: q, k and v must have at least rank 2, got {low[0]}")
    given = None if mask is None else as_tensor(mask, what=f"{_WHO}: mask")
    flag(is_causal, f"{_WHO}: is_causal")
    flag(grouped_query, f"{_WHO}: grouped_query")
    heads = None
    if grouped_query:
        heads = _count_heads(tensors)
        tensors, given = _split_heads(tensors, given)
    q, k, v = _broadcast(tensors)
    bias, seen = _split_mask(given)
    if _drops(dropout, dropout_key):
        options = {"causal": is_causal, "scale": scale}
        y = _attend_with_dropout((q, k, v, bias, seen), dropout, dropout_key, options)
    else:
        y, _ = dispatch_multiple(ATTENTION, q, k, v, bias, seen, causal=is_causal, scale=scale)
    return y if heads is None else reshape(y, (*y.shape[:-4], heads, *y.shape[-2:]))


def _broadcast(tensors: list[Tensor]) -> list[Tensor]:
    """Return q, k and v with the same leading axes."""
    try:
        batch = shapes.broadcast(*[tensor.shape[:-2] for tensor in tensors])
    except ShapeError:
        listed = ", ".join(str(tensor.type) for tensor in tensors)
        raise ShapeError(
            f"{_WHO}: the leading axes of q, k and v do not broadcast: {listed}"
        ) from None
    full = [(*batch, *tensor.shape[-2:]) for tensor in tensors]
    return [
        tensor if tensor.shape == shape else broadcast_to(tensor, shape)
        for tensor, shape in zip(tensors, full, strict=True)
    ]


def _count_heads(tensors: list[Tensor]) -> int:
    """Return the number of heads of q, after checking those of k and v."""
    q, k, v = tensors
    types = f"{q.type}, {k.type} and {v.type}"
    if min(tensor.ndim for tensor in tensors) < 3:
        raise ShapeError(f"{_WHO}: grouped_query requires axis -3 for the heads, got {types}")
    own, shared = q.shape[-3], k.shape[-3]
    if v.shape[-3] != shared or (own % shared if shared else own):
        raise ShapeError(
            f"{_WHO}: for grouped_query the heads (axis -3) of k and v must be the same number, "
            f"which divides that of q, got {types}"
        )
    return own


def _split_heads(tensors: list[Tensor], mask: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
    """Split the axis of heads in two, heads of k and heads of q that share one."""
    q, k, v = tensors
    shared = k.shape[-3]
    group = q.shape[-3] // max(shared, 1)

    def split(x: Tensor, *heads: int) -> Tensor:
        return reshape(x, (*x.shape[:-3], *heads, *x.shape[-2:]))

    if mask is not None and mask.ndim >= 3:
        if mask.shape[-3] not in (1, q.shape[-3]):
            raise ShapeError(
                f"{_WHO}: mask {mask.type} does not broadcast to {q.shape[-3]} heads of q"
            )
        mask = split(mask, *((1, 1) if mask.shape[-3] == 1 else (shared, group)))
    return [split(q, shared, group), split(k, shared, 1), split(v, shared, 1)], mask


def _split_mask(mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Return a mask as a bias or as a boolean mask; the other one is None."""
    if mask is None:
        return None, None
    if mask.dtype is dt.bool_:
        return None, mask
    if mask.dtype in dt.FLOATING:
        return mask, None
    raise DTypeError(
        f"{_WHO}: mask is {mask.type}, but must be boolean (True: the query sees the key) or "
        "floating (added to the scores)"
    )


def _drops(rate: Any, key: Any) -> bool:
    """Return whether weights are dropped, after checking the rate."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise ArgumentError(f"{_WHO}: dropout must be a number in [0, 1), got {quoted(rate)}")
    if rate and key is None:
        raise ArgumentError(f"{_WHO}: dropout {rate!r} requires dropout_key")
    return bool(rate)


def _attend_with_dropout(
    operands: tuple[Any, ...], rate: float, key: Any, given: dict[str, Any]
) -> Tensor:
    """Return attention whose weights, all of them at once in memory, are dropped at random.

    ``operands``: q, k, v, bias and mask; the last two may be None.
    """
    dtype = ATTENTION.promoted([_type(operand) for operand in operands])
    assert dtype is not None  # q, k and v are promoted
    *inexact, mask = operands
    cast: list[Any] = [None if x is None else astype(x, dtype) for x in inexact]
    q, k, v, bias = cast
    types = [_type(operand) for operand in (q, k, v, bias, mask)]
    options, (of_y, _) = ATTENTION.resolve(types, given)
    weights = attention_scores.softmax(attention_scores.scores(q, k, bias, mask, **options))
    return astype(matmul(drop_out(key, weights, rate), wide(v)), of_y.dtype)


def _type(operand: Tensor | None) -> TensorType | None:
    return None if operand is None else operand.type
