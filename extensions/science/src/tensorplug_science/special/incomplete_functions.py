"""The incomplete gamma and beta functions. They live in ``tensorplug.special``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import dispatch
from tensorplug_science.special.specs import BETAINC, IGAMMA, IGAMMAC

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["betainc", "gammainc", "gammaincc"]


def gammainc(a: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Return P(a, x), the regularized lower incomplete gamma function, elementwise.

    It is the probability that a gamma-distributed variable of concentration ``a`` is
    below ``x``: the integral of ``t**(a - 1) * exp(-t)`` from 0 to x, divided by ``gamma(a)``.
    The arguments broadcast; integers become the default float first. The result is NaN where
    one is negative, and where both are 0 or both infinite.

    It is differentiable in both.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers or strings.

    Source: DLMF 8.2.4.

    Examples:
        >>> round(float(tp.special.gammainc(1.0, 2.0)), 4)  # 1 - exp(-2)
        0.8647

    """
    return dispatch(IGAMMA, a, x)


def gammaincc(a: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Return Q(a, x) = 1 - P(a, x) elementwise, also accurate where it is small.

    Arguments, special values and derivatives are as for ``gammainc``.

    ``a``: positive numbers of any shape; ``x``: numbers that are not negative; both broadcast.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers or strings.

    Source: DLMF 8.2.4.

    Examples:
        >>> round(float(tp.special.gammaincc(1.0, 2.0)), 4)  # exp(-2)
        0.1353
        >>> f"{tp.special.gammaincc(1.0, 80.0):.4e}"  # exp(-80)
        '1.8049e-35'

    """
    return dispatch(IGAMMAC, a, x)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """Return the regularized incomplete beta function elementwise.

    It is the probability that a beta-distributed variable with the concentrations ``a``
    and ``b`` is below ``x``: the integral of ``t**(a - 1) * (1 - t)**(b - 1)`` from 0 to x,
    divided by ``beta(a, b)``. The arguments broadcast; integers become the default float first.
    The result is NaN where ``a`` or ``b`` is negative or ``x`` is not in [0, 1], and where both
    concentrations are 0 or both infinite. It is differentiable in ``x`` only.

    Raises:
        GradientNotFoundError: a derivative in ``a`` or ``b`` is asked for. Pass
            ``stop_gradient(a)`` where it is a constant.

    ``betainc(b, a, 1 - x)`` is 1 minus this function, also accurate where that is small.

    Source: DLMF 8.17.2.

    Examples:
        >>> round(float(tp.special.betainc(2.0, 1.0, 0.5)), 4)  # 0.5**2
        0.25
        >>> tp.special.betainc(2.0, 1.0, [0.0, 0.25, 1.0]).numpy().round(4)
        array([0.    , 0.0625, 1.    ], dtype=float32)

    """
    return dispatch(BETAINC, a, b, x)
