"""Rotary position embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.plugin import arguments, as_tensor
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["rotary"]


def rotary(
    x: ArrayLike,
    positions: ArrayLike | None = None,
    *,
    base: float = 10_000.0,
    frequencies: ArrayLike | None = None,
    interleaved: bool = False,
) -> Tensor:
    """Return queries or keys with each pair of features rotated by an angle of their position.

    So the product of a query and a key depends on how far apart they are, not on where.

    Args:
        x: queries or keys, [..., n, d], with d even.
        positions: of the rows; broadcasts to [..., n]. None for 0 to n - 1. They may be traced.
        base: pair i of position p is rotated by ``p * base ** (-2 i / d)`` radians.
        frequencies: radians for each position, [d / 2]: given, they take the place of those of
            the base. Models for long texts scale some of them.
        interleaved: whether neighbouring features are pairs, as in the paper and in GGUF files of
            Llama; otherwise, features i and ``i + d / 2`` are, as in GPT-NeoX and in
            Hugging Face's Llama.

    x and frequencies are differentiable. Narrow floats are computed in float32.

    Returns:
        Like x; integers become floats.

    Raises:
        ShapeError: d is odd, or the positions or frequencies do not fit.
        DTypeError: something is complex, bool or text.

    Source: "RoFormer: enhanced transformer with rotary position embedding" (Su et al., 2021).

    Examples:
        >>> x = tp.asarray([[1.0, 0.0], [1.0, 0.0]])
        >>> tp.nn.rotary(x, [0, 1])  # the second row turns by one radian
        Tensor([[1.       , 0.       ],
                [0.5403023, 0.841471 ]], dtype=float32, device='cpu')
        >>> k = tp.ones((2, 8, 1, 64))  # one new key of each head, in a text at position 17
        >>> tp.nn.rotary(k, [17]).shape
        (2, 8, 1, 64)

    """
    who = "rotary"
    arguments.flag(interleaved, f"{who}: interleaved")
    own = _real(x, f"{who}: x")
    if own.ndim < 2 or own.shape[-1] % 2:
        raise ShapeError(f"{who}: x must be [..., n, d] with an even d, got {own.type}")
    dtype = own.dtype if own.dtype in dt.FLOATING else dt.default_float
    wide, half = dtype.compute, own.shape[-1] // 2
    rows = own.shape[:-1]
    if positions is None:
        at = tp.arange(rows[-1], dtype=wide)
    else:
        at = tp.astype(_real(positions, f"{who}: positions"), wide, copy=False)
        sizes = zip(reversed(at.shape), reversed(rows), strict=False)
        if at.ndim > len(rows) or any(n not in (1, length) for n, length in sizes):
            raise ShapeError(f"{who}: positions {at.type} do not broadcast to {list(rows)}")
    if frequencies is None:
        speed = tp.pow(base, tp.arange(half, dtype=wide) / -half)
    else:
        speed = tp.astype(_real(frequencies, f"{who}: frequencies"), wide, copy=False)
        if speed.shape != (half,):
            raise ShapeError(f"{who}: frequencies must have shape [{half}], got {speed.type}")
    angles = at[..., None] * speed
    x, cosines, sines = tp.astype(own, wide, copy=False), tp.cos(angles), tp.sin(angles)
    if interleaved:
        partners = tp.reshape(tp.flip(tp.reshape(x, (*rows, half, 2)), axis=-1), own.shape)
    else:
        partners = tp.concat([x[..., half:], x[..., :half]], axis=-1)
    # Programs share these two: only what depends on x is computed for each of a model's layers.
    kept, crossed = (
        tp.reshape(tp.stack(pair, axis=-1), (*angles.shape[:-1], 2 * half))
        if interleaved
        else tp.concat(pair, axis=-1)
        for pair in ([cosines, cosines], [-sines, sines])
    )
    return tp.astype(x * kept + partners * crossed, dtype, copy=False)


def _real(x: ArrayLike, what: str) -> Tensor:
    tensor = as_tensor(x, what=what)
    if tensor.dtype not in dt.REAL:
        raise DTypeError(f"{what} must be integers or floats, got {tensor.type}")
    return tensor
