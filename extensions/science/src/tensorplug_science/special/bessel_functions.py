"""Bessel functions of orders 0 and 1. They live in ``tensorplug.special``."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug.plugin import dispatch, kinds
from tensorplug_science.special.specs import BESSEL_I0E, BESSEL_I1E, BESSEL_J0, BESSEL_J1

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["i0", "i0e", "i1", "i1e", "j0", "j1"]


def i0e(x: ArrayLike, /) -> Tensor:
    """Return ``exp(-|x|) * i0(x)`` elementwise; integers become the default float first.

    Its gradient at 0, where it has a kink, is 0.

    Raises:
        DTypeError: complex numbers or strings.

    Source: SciPy's i0e.

    Examples:
        >>> tp.special.i0e([0.0, 1.0, -1.0]).numpy().round(4)
        array([1.    , 0.4658, 0.4658], dtype=float32)
        >>> tp.special.i0(1000.0), round(float(tp.special.i0e(1000.0)), 6)  # i0 overflows
        (Tensor(inf, dtype=float32, device='cpu'), 0.012617)

    """
    return dispatch(BESSEL_I0E, x)


def i1e(x: ArrayLike, /) -> Tensor:
    """Return ``exp(-|x|) * i1(x)`` elementwise; integers become the default float first.

    Raises:
        DTypeError: complex numbers or strings.

    Source: SciPy's i1e.

    Examples:
        >>> tp.special.i1e([0.0, 1.0, -1.0]).numpy().round(4)
        array([ 0.    ,  0.2079, -0.2079], dtype=float32)

    """
    return dispatch(BESSEL_I1E, x)


def i0(x: ArrayLike, /) -> Tensor:
    """Return the modified Bessel function of the first kind and order 0 elementwise.

    Integers become the default float first.

    ``x``: numbers of any shape.

    Raises:
        DTypeError: complex numbers or strings.

    Source: DLMF 10.25.2.

    Examples:
        >>> tp.special.i0([0.0, 1.0, -1.0]).numpy().round(4)
        array([1.    , 1.2661, 1.2661], dtype=float32)

    """
    return kinds.compute("i0", lambda x: _unscaled(x, i0e(x), tp.abs(x)), x=x)


def i1(x: ArrayLike, /) -> Tensor:
    """Return the modified Bessel function of the first kind and order 1 elementwise.

    Integers become the default float first.

    ``x``: numbers of any shape.

    Raises:
        DTypeError: complex numbers or strings.

    Source: DLMF 10.25.2.

    Examples:
        >>> tp.special.i1([0.0, 1.0, -1.0]).numpy().round(4)
        array([ 0.    ,  0.5652, -0.5652], dtype=float32)

    """
    return kinds.compute("i1", lambda x: _unscaled(x, i1e(x), x), x=x)


def _unscaled(x: Tensor, scaled: Tensor, limit: Tensor) -> Tensor:
    """Return ``exp(|x|) * scaled``, which may be finite even if ``exp(|x|)`` is not.

    It is ``limit`` at infinity.
    """
    size = tp.abs(x)
    endless = size == inf
    root = tp.exp(0.5 * tp.where(endless, 0.0, size))
    return tp.where(endless, limit, root * scaled * root)


def j0(x: ArrayLike, /) -> Tensor:
    """Return the Bessel function of the first kind and order 0 elementwise; 0 at infinity.

    Integers become the default float first. From 5 on, its error is relative to ``sqrt(1 / x)``:
    near zeros other than the first two, fewer digits are correct.

    Raises:
        DTypeError: complex numbers or strings.

    Source: DLMF 10.2.2.

    Examples:
        >>> tp.special.j0([0.0, 1.0, 10.0]).numpy().round(4)
        array([ 1.    ,  0.7652, -0.2459], dtype=float32)

    """
    return dispatch(BESSEL_J0, x)


def j1(x: ArrayLike, /) -> Tensor:
    """Return the Bessel function of the first kind and order 1 elementwise; 0 at infinity.

    Integers become the default float first. For its error see ``j0``.

    ``x``: numbers of any shape.

    Raises:
        DTypeError: complex numbers or strings.

    Source: DLMF 10.2.2.

    Examples:
        >>> tp.special.j1([0.0, 1.0, -1.0]).numpy().round(4)
        array([ 0.    ,  0.4401, -0.4401], dtype=float32)

    """
    return dispatch(BESSEL_J1, x)
