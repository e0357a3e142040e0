"""The exponential of matrices."""

from __future__ import annotations

from math import factorial, nan
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.plugin import as_tensor, kinds, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["expm"]


class _Approximation(NamedTuple):
    """Padé's, exact to the dtype for matrices whose columns have sums of moduli up to ``most``."""

    degree: int
    most: float


# Higham, The scaling and squaring method for the matrix exponential revisited (2005), table 2.3.
_OF_DTYPE: Final = {
    dt.float32: _Approximation(7, 3.925724783138660),
    dt.float64: _Approximation(13, 5.371920351148152),
}
_MOST_SQUARINGS: Final = 100  # float32 has no larger norms to be halved more often


def expm(x: ArrayLike, /, *, max_squarings: int = 16) -> Tensor:
    """Return the exponentials of the matrices [..., n, n]: ``1 + x + x @ x / 2 + ...``.

    A matrix is halved s times, its exponential is approximated by Padé's quotient of degree 13
    (7 in float32), and squared s times. s is the least that makes the greatest sum of ``|x|`` in
    a column at most 5.37 (3.93 in float32).

    Args:
        x: integers become float32.
        max_squarings: the greatest s. A matrix that needs more, of a norm above about 250,000,
            gives NaN, as do infinities and NaN. All matrices cost so many products, because
            shapes and programs do not depend on the data: pass less if the norms are small.

    Raises:
        ShapeError: x does not hold square matrices.
        ArgumentError: ``max_squarings`` is not an integer from 0 to 100.
        DTypeError: strings.

    Source: SciPy's expm; ``max_squarings`` is JAX's.

    Examples:
        >>> tp.linalg.expm([[0.0, 1.0], [0.0, 0.0]])
        Tensor([[1., 1.],
                [0., 1.]], dtype=float32, device='cpu')
        >>> turn = tp.asarray([[0.0, -1.0], [1.0, 0.0]])  # pi / 2 of it: by 90 degrees
        >>> (tp.abs(tp.linalg.expm(turn * (tp.pi / 2)) - turn) < 1e-6).tolist()
        [[True, True], [True, True]]

    """
    given = kinds.inexact(x, "expm: x")
    if given.ndim < 2 or given.shape[-2] != given.shape[-1]:
        raise ShapeError(f"expm: x must hold square matrices, got {given.type}")
    most = shapes.index(max_squarings, "expm: max_squarings")
    if not 0 <= most <= _MOST_SQUARINGS:
        raise ArgumentError(f"expm: max_squarings must be from 0 to {_MOST_SQUARINGS}, got {most}")
    if not given.size:
        return given
    matrix = tp.astype(given, given.dtype.compute, copy=False)
    approximation = _OF_DTYPE[dt.real_part(matrix.dtype)]
    # Comparisons end gradients: the number of squarings is a constant.
    norms = tp.max(tp.sum(tp.abs(matrix), axis=-2), axis=-1)
    limits = approximation.most * 2.0 ** np.arange(most + 1)
    known = tp.less_equal(norms, limits[-1])
    exceeded = tp.greater(tp.expand_dims(norms, axis=-1), as_tensor(limits[:-1], norms.dtype))
    halvings = tp.sum(tp.astype(exceeded, dt.int32), axis=-1)
    factors = tp.gather(as_tensor(0.5 ** np.arange(most + 1), norms.dtype), halvings)
    scaled = tp.where(_spread(known), matrix * _spread(factors), 0.0)
    result = _approximate(scaled, approximation.degree)
    for number in range(most):
        more = tp.greater(halvings, number)
        result = tp.where(_spread(more), tp.matmul(result, result), result)
    return tp.astype(tp.where(_spread(known), result, nan), given.dtype, copy=False)


def _spread(x: Tensor) -> Tensor:
    """Return numbers of matrices as [..., 1, 1]."""
    return tp.expand_dims(x, axis=(-2, -1))


def _approximate(x: Tensor, degree: int) -> Tensor:
    """Return ``q(-x)^-1 q(x)``, the quotient nearest to the exponential at 0.

    Its even powers are the same above and below.
    """
    ends = [
        factorial(2 * degree - k) / factorial(degree - k) / factorial(k) for k in range(degree + 1)
    ]
    weights = [end / ends[0] for end in ends]  # at most 1: no power overflows
    one, second = tp.eye(x.shape[-1], dtype=x.dtype), tp.matmul(x, x)
    fourth = tp.matmul(second, second)
    sixth = tp.matmul(fourth, second)

    def combine(zeroth: float, *others: float) -> Tensor:
        """Return a polynomial of ``second``, of degree 3 or 6."""
        low, high = others[:3], others[3:]
        result = one * zeroth + second * low[0] + fourth * low[1] + sixth * low[2]
        if high:
            result = result + tp.matmul(
                sixth, second * high[0] + fourth * high[1] + sixth * high[2]
            )
        return result

    even, odd = combine(*weights[::2]), tp.matmul(x, combine(*weights[1::2]))
    return tp.linalg.solve(even - odd, even + odd)
