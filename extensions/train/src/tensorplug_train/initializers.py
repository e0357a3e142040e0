"""Initializers: functions ``(key, shape, dtype) -> tensor`` that draw the weights of layers.

Options are keywords: ``functools.partial(initializers.normal, scale=0.02)`` is an initializer,
too. The *fans* of a shape are the numbers of inputs and outputs of one unit: for the shape
``[*window, inputs, outputs]`` they are ``inputs`` and ``outputs``, each times the taps of the
window.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, TypeAlias

import tensorplug as tp
from tensorplug.errors import ShapeError
from tensorplug.plugin import shapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug import Tensor
    from tensorplug.typing import DTypeLike, KeyLike, ShapeLike

    Initializer: TypeAlias = Callable[[KeyLike, ShapeLike, DTypeLike | None], Tensor]

    class _Drawing(Protocol):
        def __call__(
            self, key: KeyLike, shape: ShapeLike, dtype: DTypeLike | None = None, *, scale: float
        ) -> Tensor: ...

    class _Scaled(Protocol):
        def __call__(
            self, key: KeyLike, shape: ShapeLike, dtype: DTypeLike | None = None
        ) -> Tensor: ...


__all__ = [
    "constant",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "zeros",
]


def zeros(key: KeyLike, shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:  # noqa: ARG001  # every initializer takes a key
    """Return zeros.

    ``key``: not used; ``shape``: of the result; ``dtype``: of the result, None for float32.

    Examples:
        >>> tp.train.initializers.zeros(tp.random.key(0), (2,))
        Tensor([0., 0.], dtype=float32, device='cpu')

    """
    return tp.zeros(shape, dtype=dtype)


def ones(key: KeyLike, shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:  # noqa: ARG001  # every initializer takes a key
    """Return ones.

    ``key``: not used; ``shape``: of the result; ``dtype``: of the result, None for float32.

    Examples:
        >>> tp.train.initializers.ones(tp.random.key(0), (2,))
        Tensor([1., 1.], dtype=float32, device='cpu')

    """
    return tp.ones(shape, dtype=dtype)


def constant(
    key: KeyLike,  # noqa: ARG001  # every initializer takes a key
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    value: float,
) -> Tensor:
    """Return a tensor whose elements are ``value``.

    ``key``: not used; ``shape``: of the result; ``dtype``: of the result, None for float32.

    Examples:
        >>> tp.train.initializers.constant(tp.random.key(0), (2,), value=0.25)
        Tensor([0.25, 0.25], dtype=float32, device='cpu')

    """
    return tp.full(shape, float(value), dtype=dtype or tp.float32)


def normal(
    key: KeyLike, shape: ShapeLike, dtype: DTypeLike | None = None, *, scale: float = 0.05
) -> Tensor:
    """Return numbers of the normal distribution with mean 0.

    ``key``: of ``tensorplug.random``; ``shape`` and ``dtype``: of the result, which is floating,
    None for float32; ``scale``: the standard deviation.

    Examples:
        >>> x = tp.train.initializers.normal(tp.random.key(0), (200, 200), scale=0.5)
        >>> round(float(tp.std(x)), 2)
        0.5

    """
    return tp.random.normal(key, shape, dtype, scale=scale)


def uniform(
    key: KeyLike, shape: ShapeLike, dtype: DTypeLike | None = None, *, scale: float = 0.05
) -> Tensor:
    """Return numbers drawn uniformly from [-scale, scale).

    ``key``, ``shape``, ``dtype``: see ``normal``; ``scale``: the bound.

    Examples:
        >>> x = tp.train.initializers.uniform(tp.random.key(0), (100, 100))
        >>> bool(tp.all(tp.abs(x) <= 0.05))
        True

    """
    return tp.random.uniform(key, shape, dtype, low=-scale, high=scale)


def truncated_normal(
    key: KeyLike,
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    scale: float = 0.05,
    bound: float = 2.0,
) -> Tensor:
    """Return numbers of the normal distribution with mean 0, cut off on both sides.

    The cut makes the deviation smaller, so that of the uncut distribution is larger than
    ``scale``: the standard deviation of the results is ``scale``, as in Keras and JAX.

    ``key``, ``shape``, ``dtype``, ``scale``: see ``normal``; ``bound``: where the uncut
    distribution is cut off, in its standard deviations.

    Examples:
        >>> x = tp.train.initializers.truncated_normal(tp.random.key(0), (200, 200), scale=0.5)
        >>> round(float(tp.std(x)), 2)
        0.5

    """
    # The variance of a standard normal distribution that is cut off at -b and b is
    # 1 - 2 b p(b) / P, with its density p, and the probability P of what is left.
    density = math.exp(-bound * bound / 2) / math.sqrt(2 * math.pi)
    left = math.erf(bound / math.sqrt(2))
    uncut = scale / math.sqrt(1 - 2 * bound * density / left)
    return tp.random.truncated_normal(key, shape, dtype, lower=-bound, upper=bound, scale=uncut)


def _fans(who: str, shape: ShapeLike) -> dict[str, int]:
    sizes = shapes.as_shape(shape)
    if len(sizes) < 2:
        raise ShapeError(f"{who}: the shape must have two axes or more, got {sizes}")
    taps = math.prod(sizes[:-2])
    return {"fan_in": max(1, taps * sizes[-2]), "fan_out": max(1, taps * sizes[-1])}


def _scaled(name: str, scale: int, fans: tuple[str, ...], draw: _Drawing, source: str) -> _Scaled:
    """Return an initializer of variance ``scale`` over the sum of the fans."""

    def initializer(key: KeyLike, shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
        found = _fans(name, shape)
        variance = scale / sum(found[fan] for fan in fans)
        # Numbers that are uniform in [-b, b) have the variance b**2 / 3.
        width = math.sqrt(3 * variance if draw is uniform else variance)
        return draw(key, shape, dtype, scale=width)

    kind = "uniform" if draw is uniform else "truncated normal"
    fan = f"({' + '.join(fans)})" if len(fans) > 1 else fans[0]
    initializer.__name__ = initializer.__qualname__ = name
    initializer.__doc__ = f"""Return {kind} numbers of variance ``{scale} / {fan}``.

    Args:
        key: a key of ``tensorplug.random``.
        shape: [..., inputs, outputs].
        dtype: a floating dtype; None for float32.

    Raises:
        ShapeError: the shape has fewer than two axes.

    Source: {source}.

    Examples:
        >>> x = tp.train.initializers.{name}(tp.random.key(0), (200, 200))
        >>> round(float(tp.std(x)), 2)
        {round(math.sqrt(scale / (200 * len(fans))), 2)}

    """
    return initializer


_HE = '"Delving deep into rectifiers" (He et al., 2015), for layers before a ReLU'
_GLOROT = (
    '"Understanding the difficulty of training deep feedforward neural networks" (Glorot and '
    "Bengio, 2010)"
)
_LECUN = '"Efficient BackProp" (LeCun et al., 1998)'
_IN: tuple[str, ...] = ("fan_in",)
_BOTH = ("fan_in", "fan_out")

he_normal = _scaled("he_normal", 2, _IN, truncated_normal, _HE)
he_uniform = _scaled("he_uniform", 2, _IN, uniform, _HE)
glorot_normal = _scaled("glorot_normal", 2, _BOTH, truncated_normal, _GLOROT)
glorot_uniform = _scaled("glorot_uniform", 2, _BOTH, uniform, _GLOROT)
lecun_normal = _scaled("lecun_normal", 1, _IN, truncated_normal, _LECUN)
lecun_uniform = _scaled("lecun_uniform", 1, _IN, uniform, _LECUN)


def orthogonal(
    key: KeyLike, shape: ShapeLike, dtype: DTypeLike | None = None, *, scale: float = 1.0
) -> Tensor:
    """Return a random matrix with orthonormal columns, or rows if there are fewer of these.

    Args:
        key: a key of ``tensorplug.random``.
        shape: [..., columns]; all axes but the last count as rows together.
        dtype: a floating dtype; None for float32. float16 and bfloat16 are computed in float32.
        scale: the factor of the matrix.

    Raises:
        ShapeError: the shape has fewer than two axes.

    Source: "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks"
    (Saxe et al., 2013), uniformly distributed as in Mezzadri, 2006.

    Examples:
        >>> x = tp.train.initializers.orthogonal(tp.random.key(0), (4, 3))
        >>> bool(tp.allclose(x.T @ x, tp.eye(3), atol=1e-6))
        True

    """
    _fans("orthogonal", shape)
    sizes = shapes.as_shape(shape)
    rows, columns = math.prod(sizes[:-1]), sizes[-1]
    wide = tp.zeros((), dtype=dtype or tp.float32).dtype
    drawn = tp.random.normal(key, (max(rows, columns), min(rows, columns)), wide.compute)
    q, r = tp.linalg.qr(drawn)
    # The signs make the result independent of those that the algorithm chooses.
    q = q * tp.where(tp.diagonal(r) < 0, -scale, scale)
    return tp.astype(tp.reshape(q if rows >= columns else q.T, sizes), wide, copy=False)
