"""Scaled dot-product attention for any number of axes, with groups of heads and dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.algorithms import attention_scores
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.plugin import arguments, as_tensor, chained, dispatch_multiple, shapes, specs
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Shape, Tensor, TensorType
    from tensorplug.typing import ArrayLike, KeyLike

__all__ = ["scaled_dot_product_attention"]

_WHO = "scaled_dot_product_attention"


@chained
def scaled_dot_product_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    is_causal: bool = False,
    lengths: ArrayLike | None = None,
    scale: float | None = None,
    grouped_query: bool = False,
    dropout: float = 0.0,
    dropout_key: KeyLike | None = None,
) -> Tensor:
    """Return ``softmax(scale * q k^T + mask) v``: for each query a weighted mean of the values.

    On cpu and opencl, the memory used is proportional to ``n_q + n_k``, in the backward pass too,
    and the time to the keys that are seen. On other backends, and for dropout, the gradient of an
    additive mask and second derivatives, other ops compute all scores at once.

    Args:
        q: queries, [..., n_q, d].
        k: keys, [..., n_k, d].
        v: values, [..., n_k, d_v].
        mask: broadcasts to [..., n_q, n_k]. Boolean: True where the query sees the key.
            Floating: added to the scores; -inf where the query does not see the key.
        is_causal: query i sees keys 0 to i only, counted from the start of both, as in PyTorch,
            unless ``lengths`` are given. It can be combined with a mask.
        lengths: how many keys count, from the first on. Integers, of a
            shape with which the leading axes (of a batch, say) begin; they may be traced. With
            ``is_causal``, the queries are the last of these keys: query i sees keys 0 to
            ``lengths - n_q + i``. So k and v may be a cache with room for more.
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
        >>> v = [[2.0], [6.0], [0.0]]  # a cache of three places, of which two are filled
        >>> k = tp.zeros((3, 2))
        >>> tp.nn.scaled_dot_product_attention([[1.0, 1.0]] * 2, k, v, is_causal=True, lengths=2)
        Tensor([[2.],
                [4.]], dtype=float32, device='cpu')

    """
    tensors = [
        as_tensor(x, what=f"{_WHO}: {name}") for name, x in zip("qkv", (q, k, v), strict=True)
    ]
    low = [tensor.type for tensor in tensors if tensor.ndim < 2]
    if low:
        raise ShapeError(f"{_WHO}: q, k and v must have at least rank 2, got {low[0]}")
    masking = None if mask is None else as_tensor(mask, what=f"{_WHO}: mask")
    arguments.flag(is_causal, f"{_WHO}: is_causal")
    arguments.flag(grouped_query, f"{_WHO}: grouped_query")
    heads = None
    if grouped_query:
        heads = _count_heads(tensors)
        tensors, masking = _split_heads(tensors, masking)
    (q, k, v), batch = _align(tensors)
    counts = None if lengths is None else _counts(lengths, batch, heads=2 if grouped_query else 0)
    bias, seen = _split_mask(masking)
    if _drops(dropout, dropout_key):
        options = {"causal": is_causal, "scale": scale}
        y = _attend_with_dropout((q, k, v, bias, seen, counts), dropout, dropout_key, options)
    else:
        y, _ = dispatch_multiple(
            specs.ATTENTION, q, k, v, bias, seen, counts, causal=is_causal, scale=scale
        )
    return y if heads is None else tp.reshape(y, (*y.shape[:-4], heads, *y.shape[-2:]))


def _align(tensors: list[Tensor]) -> tuple[list[Tensor], Shape]:
    """Return q with all leading axes, k and v with 1 in the place of some; and those axes."""
    try:
        batch = shapes.broadcast(*[tensor.shape[:-2] for tensor in tensors])
    except ShapeError:
        listed = ", ".join(str(tensor.type) for tensor in tensors)
        raise ShapeError(
            f"{_WHO}: the leading axes of q, k and v do not broadcast: {listed}"
        ) from None
    q, *rest = tensors
    full = (*batch, *q.shape[-2:])
    aligned = [x if x.ndim == len(full) else _in_rank(x, len(full)) for x in rest]
    return [q if q.shape == full else tp.broadcast_to(q, full), *aligned], batch


def _in_rank(x: Tensor, rank: int) -> Tensor:
    return tp.reshape(x, (1,) * (rank - x.ndim) + x.shape)


def _counts(lengths: ArrayLike, batch: Shape, *, heads: int) -> Tensor:
    """Return lengths that broadcast to all leading axes, of which the last may hold heads."""
    counts = as_tensor(lengths, what=f"{_WHO}: lengths")
    if counts.dtype not in dt.INTEGER:
        raise DTypeError(f"{_WHO}: lengths must be integers, got {counts.type}")
    own = batch[: len(batch) - heads]
    pairs = zip(counts.shape, own, strict=False)
    if counts.ndim > len(own) or any(n not in (1, length) for n, length in pairs):
        raise ShapeError(
            f"{_WHO}: the shape of lengths must be that with which {list(own)}, the leading "
            f"axes{' before the heads' * bool(heads)}, begins, got {counts.type}"
        )
    return tp.reshape(counts, counts.shape + (1,) * (len(batch) - counts.ndim))


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
        return tp.reshape(x, (*x.shape[:-3], *heads, *x.shape[-2:]))

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
        raise ArgumentError(
            f"{_WHO}: dropout must be a number in [0, 1), got {arguments.quoted(rate)}"
        )
    if rate and key is None:
        raise ArgumentError(f"{_WHO}: dropout {rate!r} requires dropout_key")
    return bool(rate)


def _attend_with_dropout(
    operands: tuple[Any, ...], rate: float, key: Any, attributes: dict[str, Any]
) -> Tensor:
    """Return attention whose weights, all of them at once in memory, are dropped at random.

    ``operands``: q, k, v, bias, mask and lengths; the last three may be None.
    """
    dtype = specs.ATTENTION.promoted([_type(operand) for operand in operands])
    assert dtype is not None  # q, k and v are promoted
    *inexact, mask, lengths = operands
    cast: list[Any] = [None if x is None else tp.astype(x, dtype) for x in inexact]
    q, k, v, bias = cast
    types = [_type(operand) for operand in (q, k, v, bias, mask, lengths)]
    options, (of_y, _) = specs.ATTENTION.resolve(types, attributes)
    weights = attention_scores.softmax(
        attention_scores.scores(q, k, bias, mask, lengths, **options)
    )
    return tp.astype(
        tp.matmul(tp.nn.dropout(key, weights, rate), attention_scores.wide(v)), of_y.dtype
    )


def _type(operand: Tensor | None) -> TensorType | None:
    return None if operand is None else operand.type
