"""Regularization of networks in training. It lives in ``tensorplug.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.plugin import arguments, as_key, as_tensor, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Shape, Tensor
    from tensorplug.typing import ArrayLike, KeyLike

__all__ = ["dropout"]


def dropout(
    key: KeyLike,
    x: ArrayLike,
    rate: float,
    *,
    noise_shape: int | Sequence[int | None] | None = None,
) -> Tensor:
    """Return ``x`` with random elements set to 0, and the others divided by ``1 - rate``.

    This preserves the expectation of every element.

    Args:
        key: a key of ``tensorplug.random``; the same key drops the same elements.
        x: a floating tensor.
        rate: the probability of dropping an element, in [0, 1).
        noise_shape: a shape that broadcasts to that of x; elements along broadcast axes are
            dropped together, as with ``(batch, 1, 1, channels)``. None in it stands for the
            size of x.

    Raises:
        ArgumentError: ``rate`` is out of range, or ``key`` is not a key.
        DTypeError: x is not floating.
        ShapeError: ``noise_shape`` does not broadcast to the shape of x.

    Source: "Dropout: a simple way to prevent neural networks from overfitting" (Srivastava et
    al., 2014), with the scaling at training time.

    Examples:
        >>> key = tp.random.key(0)
        >>> tp.nn.dropout(key, tp.ones(6), 0.5)
        Tensor([2., 0., 0., 0., 0., 2.], dtype=float32, device='cpu')
        >>> tp.nn.dropout(key, tp.ones((3, 2)), 0.5, noise_shape=(3, 1))  # rows
        Tensor([[2., 2.],
                [0., 0.],
                [0., 0.]], dtype=float32, device='cpu')

    """
    checked = as_key(key, "dropout")
    tensor = as_tensor(x, what="dropout: x")
    if tensor.dtype not in dt.INEXACT:
        raise DTypeError(f"dropout: x must have a floating dtype, got {tensor.type}")
    number: Any = dt.as_number(rate)
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < 1:
        raise ArgumentError(
            f"dropout: rate must be a number in [0, 1), got {arguments.quoted(number)}"
        )
    shape = _read_noise_shape(tensor.shape, noise_shape)
    if not number:
        return tensor
    kept = tp.random.bernoulli(checked, shape, p=1.0 - number)
    return tp.where(kept, tensor / (1.0 - number), 0.0)


def _read_noise_shape(x: Shape, noise_shape: Any) -> Shape:
    if noise_shape is None:
        return x
    listed = list(noise_shape) if isinstance(noise_shape, list | tuple) else [noise_shape]
    offset = len(x) - len(listed)
    if offset < 0:
        raise ShapeError(f"dropout: noise_shape must broadcast to {list(x)}, got {listed}")
    shape = shapes.as_shape(
        [x[offset + at] if size is None else size for at, size in enumerate(listed)]
    )
    if shapes.broadcast(x, shape) != x:
        raise ShapeError(f"dropout: noise_shape must broadcast to {list(x)}, got {listed}")
    return shape
