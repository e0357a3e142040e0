"""Beta, Dirichlet, Laplace and multivariate normal draws, composed of other draws and ops.

The functions live in ``tensorplug.random``.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.algorithms import drawing
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.plugin import arguments, as_key, host_values

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Shape, Tensor
    from tensorplug.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike

__all__ = ["beta", "dirichlet", "laplace", "multivariate_normal"]


def laplace(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
) -> Tensor:
    """Return numbers drawn from the Laplace distribution of mean ``loc``.

    They are ``loc + scale * (x - y)``, with x and y drawn from the exponential distribution.
    Arguments and errors are as for ``normal``; the result is differentiable in ``loc`` and
    ``scale``.

    ``key``: from ``key`` or ``split``; ``shape``: of the result; ``dtype``: floating, the default
    float by default.

    Source: NumPy's Generator.laplace.

    Examples:
        >>> x = tp.random.laplace(tp.random.key(0), (10000,), loc=3.0, scale=2.0)
        >>> round(float(tp.median(x)), 1), round(float(tp.mean(tp.abs(x - 3.0))), 1)
        (3.0, 2.0)

    """
    checked = as_key(key, "laplace")
    sizes, chosen, (place, width) = drawing.parameters(
        "laplace", shape, dtype, loc=loc, scale=scale
    )
    above, below = tp.random.split(checked)
    x = tp.random.exponential(above, sizes, chosen) - tp.random.exponential(below, sizes, chosen)
    return drawing.shift_and_scale(x, place, width)


def beta(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    a: ArrayLike,
    b: ArrayLike,
) -> Tensor:
    """Return numbers in [0, 1] drawn from the beta distribution of mean ``a / (a + b)``.

    They are x / (x + y), with x and y drawn from the gamma distribution. The quotient is computed
    from logarithms, so that small ``a`` and ``b`` do not give 0 / 0.

    Args:
        key: a key.
        shape: of the result; by default the broadcast shape of ``a`` and ``b``.
        dtype: a floating dtype; by default that of ``a`` and ``b`` if they are floating tensors,
            else float32. float16 is computed in float32.
        a: a positive number, or a tensor that broadcasts to ``shape``. The result is NaN where it
            is not positive and finite.
        b: likewise.

    Returns:
        The numbers, constant with respect to ``a`` and ``b``, as ``gamma``'s are.

    Raises:
        ArgumentError: ``key`` is not a key, or ``a`` or ``b`` is a number that is not positive.
        ShapeError, DTypeError: an argument has a wrong shape or dtype.
        CompileError: in a compiled function.

    Source: NumPy's Generator.beta.

    Examples:
        >>> x = tp.random.beta(tp.random.key(0), (10000,), a=2.0, b=6.0)
        >>> bool(tp.all((x >= 0) & (x <= 1))), round(float(tp.mean(x)), 2)
        (True, 0.25)

    """
    checked = as_key(key, "beta")
    sizes, chosen, (first, second) = drawing.parameters("beta", shape, dtype, widen=True, a=a, b=b)
    work = chosen.compute
    one, two = tp.random.split(checked)
    x, y = (
        _draw_log_gamma(part, _concentration(f"beta: {name}", value, work), sizes)
        for part, name, value in ((one, "a", first), (two, "b", second))
    )
    less_likely = tp.exp(-tp.abs(x - y))
    return tp.astype(tp.where(tp.less(x, y), less_likely, 1.0) / (1.0 + less_likely), chosen)


def _concentration(what: str, value: Any, dtype: DType) -> Tensor:
    if not host_values.is_scalar(value):
        return tp.stop_gradient(value)
    if not 0 < value < inf:
        raise ArgumentError(f"{what} must be positive and finite, got {arguments.quoted(value)}")
    return tp.full((), value, dtype=dtype)


def _draw_log_gamma(key: Tensor, a: Tensor, shape: Shape) -> Tensor:
    """Return logarithms of numbers of the gamma distribution: those near 0 do not vanish.

    A number of concentration a + 1 times the a-th root of a uniform number has concentration a.
    """
    small = (a > 0.0) & (a < 1.0)
    number = tp.random.gamma(key, shape, a.dtype, concentration=tp.where(small, a + 1.0, a))
    _, for_root = tp.random.split(key)  # gamma draws from the first of the two keys
    log_root = -tp.random.exponential(for_root, shape, a.dtype) / a
    log_number = tp.log(number)
    return tp.where(small, log_number + log_root, log_number)


def dirichlet(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    alpha: ArrayLike,
) -> Tensor:
    """Return vectors drawn from the Dirichlet distribution.

    They are positive and add up to 1; their mean is proportional to ``alpha``.

    Args:
        key: a key.
        shape: of the result without its last axis; that of ``alpha`` must broadcast to it, and is
            the default.
        dtype: a floating dtype; by default that of ``alpha`` if it is a floating tensor, else
            float32. float16 is computed in float32.
        alpha: concentrations along the last axis, positive. A vector is NaN where one of its
            concentrations is not positive and finite.

    Returns:
        A tensor of shape ``[*shape, n]``, constant with respect to ``alpha``, as ``gamma`` is.

    Raises:
        ArgumentError: ``key`` is not a key.
        ShapeError: ``alpha`` has rank 0, or does not broadcast.
        DTypeError: ``alpha`` does not hold real numbers.
        CompileError: in a compiled function.

    Source: NumPy's Generator.dirichlet.

    Examples:
        >>> x = tp.random.dirichlet(tp.random.key(0), (5,), alpha=[1.0, 2.0, 3.0])
        >>> x.shape
        (5, 3)
        >>> tp.sum(x, axis=-1).numpy().round(4)
        array([1., 1., 1., 1., 1.], dtype=float32)

    """
    checked = as_key(key, "dirichlet")
    _, chosen, (a,) = drawing.parameters("dirichlet", None, dtype, widen=True, alpha=alpha)
    if host_values.is_scalar(a) or not a.ndim:
        raise ShapeError("dirichlet: alpha must have at least rank 1, got a number")
    sizes = drawing.fit_shape("dirichlet", shape, [a.shape[:-1]])
    drawn = _draw_log_gamma(checked, tp.stop_gradient(a), (*sizes, a.shape[-1]))
    parts = tp.exp(drawn - tp.max(drawn, axis=-1, keepdims=True))
    return tp.astype(parts / tp.sum(parts, axis=-1, keepdims=True), chosen)


def multivariate_normal(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    mean: ArrayLike,
    cov: ArrayLike,
) -> Tensor:
    """Return vectors drawn from the normal distribution of several variables.

    They are ``mean + L z``: L is the Cholesky factor of ``cov``, and z is drawn from the standard
    normal distribution.

    Args:
        key: a key.
        shape: of the result without its last axis; those of ``mean`` and ``cov`` must broadcast to
            it, and are the default.
        dtype: a floating dtype; by default that of ``mean`` and ``cov`` if they are floating
            tensors, else float32. float16 is computed in float32.
        mean: a tensor of shape ``[..., n]``.
        cov: symmetric, positive definite matrices, ``[..., n, n]``. Other matrices have the same
            effect as in ``linalg.cholesky``.

    Returns:
        A tensor of shape ``[*shape, n]``, differentiable in ``mean`` and ``cov``.

    Raises:
        ArgumentError: ``key`` is not a key.
        ShapeError, DTypeError: an argument has a wrong shape or dtype.

    Examples:
        >>> cov = [[2.0, 0.5], [0.5, 1.0]]
        >>> x = tp.random.multivariate_normal(tp.random.key(0), (10000,), mean=[0.0, 1.0], cov=cov)
        >>> x.shape
        (10000, 2)
        >>> tp.cov(x.T).numpy().round(1)
        array([[2. , 0.5],
               [0.5, 1. ]], dtype=float32)

    """
    caller = "multivariate_normal"
    checked = as_key(key, caller)
    center, spread = (
        drawing.read_parameter(value, f"{caller}: {name}")
        for name, value in (("mean", mean), ("cov", cov))
    )
    for name, value, rank in (("mean", center, 1), ("cov", spread, 2)):
        if host_values.is_scalar(value) or value.ndim < rank:
            raise ShapeError(f"{caller}: {name} must have at least rank {rank}")
    chosen = drawing.choose_real_dtype(caller, dtype, [center, spread])
    size = center.shape[-1]
    if spread.shape[-2:] != (size, size):
        raise ShapeError(f"{caller}: cov must end with shape [{size}, {size}], got {spread.type}")
    sizes = drawing.fit_shape(caller, shape, [center.shape[:-1], spread.shape[:-2]])
    work = chosen.compute
    z = tp.expand_dims(tp.random.normal(checked, (*sizes, size), work), axis=-1)
    moved = tp.squeeze(tp.matmul(tp.linalg.cholesky(tp.astype(spread, work)), z), axis=-1)
    return tp.astype(tp.astype(center, work) + moved, chosen)
