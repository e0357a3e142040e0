"""Exponentials, logarithms, reciprocals and roots, accurate where composed formulas are not.

Integers and booleans become the default float first. The source is the array API standard
2025.12 unless a docstring says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import chained, dispatch_binary, dispatch_unary

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = [
    "expm1",
    "hypot",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "reciprocal",
    "rsqrt",
]


def _define_unary(name: str, expression: str | None = None) -> KernelSpec:
    return KernelSpec(
        name,
        ("x",),
        inference.same,
        accepts=dt.NUMERIC,
        promote=("x",),
        inexact=True,
        expression=expression,
        elementwise=True,
    )


def _define_binary(name: str) -> KernelSpec:
    return KernelSpec(
        name,
        ("a", "b"),
        inference.broadcast,
        accepts=dt.REAL,
        promote=("a", "b"),
        inexact=True,
        elementwise=True,
    )


EXPM1 = _define_unary("Expm1", "expm1")
LOG1P = _define_unary("Log1p", "log1p")
LOG2 = _define_unary("Log2", "log2")
LOG10 = _define_unary("Log10", "log10")
RECIPROCAL = _define_unary("Reciprocal")
RSQRT = _define_unary("Rsqrt")
HYPOT = _define_binary("Hypot")
LOG_ADD_EXP = _define_binary("LogAddExp")


@chained
def expm1(x: ArrayLike, /) -> Tensor:
    """Return ``e**x - 1`` elementwise. Accurate near 0 too; -0.0 stays -0.0.

    Integers become float32; complex numbers stay complex. (The array API standard's ``expm1``.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.expm1(0.0)
        Tensor(0., dtype=float32, device='cpu')
        >>> tp.expm1(1e-10), tp.exp(1e-10) - 1
        (Tensor(1.e-10, dtype=float32, device='cpu'), Tensor(0., dtype=float32, device='cpu'))

    """
    return dispatch_unary(EXPM1, x)


@chained
def log1p(x: ArrayLike, /) -> Tensor:
    """Return ``ln(1 + x)`` elementwise.

    Accurate near 0 too; -0.0 stays -0.0; -inf at -1, NaN below. Integers become float32; complex
    numbers stay complex. (The array API standard's ``log1p``.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.log1p([-1.0, 0.0, 1e-10])
        Tensor([  -inf, 0.e+00, 1.e-10], dtype=float32, device='cpu')

    """
    return dispatch_unary(LOG1P, x)


@chained
def log2(x: ArrayLike, /) -> Tensor:
    """Return the logarithm of ``x`` to base 2 elementwise: -inf at 0, NaN below.

    Integers become float32; complex numbers stay complex. (The array API standard's ``log2``.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.log2([1, 8, 0.25, 0]).numpy().round(4)
        array([  0.,   3.,  -2., -inf], dtype=float32)

    """
    return dispatch_unary(LOG2, x)


@chained
def log10(x: ArrayLike, /) -> Tensor:
    """Return the logarithm of ``x`` to base 10 elementwise: -inf at 0, NaN below.

    Integers become float32; complex numbers stay complex. (The array API standard's ``log10``.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.log10([1, 100, 0]).numpy().round(4)
        array([  0.,   2., -inf], dtype=float32)

    """
    return dispatch_unary(LOG10, x)


@chained
def reciprocal(x: ArrayLike, /) -> Tensor:
    """Return ``1 / x`` elementwise. Infinite at zeros, with their sign.

    Integers become float32; complex numbers stay complex. (The array API standard's
    ``reciprocal``, which does not specify integers.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.reciprocal([2, 4])
        Tensor([0.5 , 0.25], dtype=float32, device='cpu')
        >>> tp.reciprocal([0.0, -0.0])
        Tensor([ inf, -inf], dtype=float32, device='cpu')

    """
    return dispatch_unary(RECIPROCAL, x)


@chained
def rsqrt(x: ArrayLike, /) -> Tensor:
    """Return ``1 / sqrt(x)`` elementwise: infinite at 0, NaN below. This is TensorFlow's Rsqrt.

    Integers become float32; complex numbers stay complex.

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.rsqrt([4, 0.25, 0])
        Tensor([0.5, 2. , inf], dtype=float32, device='cpu')

    """
    return dispatch_unary(RSQRT, x)


@chained
def hypot(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``sqrt(a**2 + b**2)`` elementwise, without intermediate overflow; real operands.

    Infinite if either is, even if the other is NaN. The gradient at the origin is 0. The operands
    broadcast; integers become float32. (The array API standard's ``hypot``.)

    Raises:
        DTypeError: complex numbers or strings.
        ShapeError: the operands do not broadcast.

    Examples:
        >>> tp.hypot(3, 4)
        Tensor(5., dtype=float32, device='cpu')
        >>> tp.hypot([tp.inf, 5.0], [tp.nan, 12.0])
        Tensor([inf, 13.], dtype=float32, device='cpu')

    """
    return dispatch_binary(HYPOT, a, b)


@chained
def logaddexp(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``ln(e**a + e**b)`` elementwise, without intermediate overflow; real operands.

    It adds probabilities that are given by their logarithms. The operands broadcast; integers
    become float32. (The array API standard's ``logaddexp``.)

    Raises:
        DTypeError: complex numbers or strings.
        ShapeError: the operands do not broadcast.

    Examples:
        >>> a, b = tp.log([0.25, 0.5]), tp.log([0.5, 0.25])
        >>> tp.exp(tp.logaddexp(a, b)).numpy().round(4)
        array([0.75, 0.75], dtype=float32)
        >>> tp.logaddexp(1000.0, -1000.0)
        Tensor(1000., dtype=float32, device='cpu')

    """
    return dispatch_binary(LOG_ADD_EXP, a, b)
