"""Distributions composed of other draws and ops. The functions live in ``tensorplug.random``."""

from __future__ import annotations

from math import erf, inf, nan, pi, sqrt
from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug.algorithms import drawing, polynomial
from tensorplug.errors import ArgumentError
from tensorplug.plugin import arguments, as_key, host_values
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Shape, Tensor
    from tensorplug.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike

__all__ = [
    "bernoulli",
    "gamma",
    "gumbel",
    "truncated_normal",
]


def bernoulli(
    key: KeyLike,
    shape: ShapeLike | None = None,
    *,
    p: ArrayLike = 0.5,
) -> Tensor:
    """Return booleans that are True with probability ``p``.

    Args:
        key: a key.
        shape: of the result; by default that of ``p``.
        p: a number in [0, 1], or a tensor that broadcasts to ``shape``. It is rounded to
            multiples of 2**-24 (2**-53 for a float64 tensor).

    Raises:
        ArgumentError: ``key`` is not a key, or ``p`` is a number outside [0, 1].
        ShapeError, DTypeError: ``p`` does not broadcast, or does not hold real numbers.

    Source: JAX's random.bernoulli.

    Examples:
        >>> tp.random.bernoulli(tp.random.key(0), (6,), p=0.5)
        Tensor([ True, False, False, False, False,  True], dtype=bool, device='cpu')
        >>> tp.random.bernoulli(tp.random.key(0), p=[0.0, 1.0])
        Tensor([False,  True], dtype=bool, device='cpu')

    """
    checked = as_key(key, "bernoulli")
    sizes, chosen, (chance,) = drawing.parameters("bernoulli", shape, None, p=p)
    if host_values.is_scalar(chance) and not 0 <= chance <= 1:
        raise ArgumentError(f"bernoulli: p must be in [0, 1], got {arguments.quoted(chance)}")
    return tp.less(tp.random.uniform(checked, sizes, chosen), chance)


def gumbel(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
) -> Tensor:
    """Return numbers drawn from the Gumbel distribution: ``loc - scale * log(x)``, x exponential.

    Arguments and errors are as for ``normal``. For float32, ``loc`` 0 and ``scale`` 1 the numbers
    are in [-3.1, 22.2].

    ``key``: from ``key`` or ``split``; ``shape``: of the result; ``dtype``: floating, the default
    float by default.

    Source: NumPy's Generator.gumbel.

    Examples:
        >>> logits = tp.log(tp.asarray([0.2, 0.3, 0.5]))
        >>> noise = tp.random.gumbel(tp.random.key(0), (1000, 3))
        >>> winners = tp.argmax(logits + noise, axis=1)  # draws from softmax(logits)
        >>> round(float(tp.mean(winners == 2)), 1)
        0.5

    """
    checked = as_key(key, "gumbel")
    sizes, chosen, (center, width) = drawing.parameters(
        "gumbel", shape, dtype, loc=loc, scale=scale
    )
    x = -tp.log(tp.random.exponential(checked, sizes, chosen))
    return drawing.shift_and_scale(x, center, width)


# The largest magnitude of a bound: beyond, too few floats are left between the bounds.
_REACH: Final = {dt.float32: 4.0, dt.float64: 7.0}


def truncated_normal(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
) -> Tensor:
    """Return ``loc + z * scale``, z drawn from the standard normal distribution in [lower, upper].

    It inverts the distribution function, so every number takes one uniform number, and the result
    is differentiable in ``lower``, ``upper``, ``loc`` and ``scale``. float16 is computed in
    float32.

    Args:
        key: a key.
        shape: of the result; by default the broadcast shape of the other arguments.
        dtype: a floating dtype; by default that of floating tensors among the arguments, else
            float32.
        lower: the smallest z, a number or a tensor that broadcasts to ``shape``.
        upper: the largest z, likewise. Bounds are in standard deviations; TensorFlow's are -2 and
            2.
        loc: a number or a tensor.
        scale: a number or a tensor.

    Raises:
        ArgumentError: ``key`` is not a key; or ``lower`` and ``upper`` are numbers, and ``lower``
            is not below ``upper``, or they lie so far out that the numbers between them cannot be
            told apart (from 4 on; in float64 from 7 on).
        ShapeError, DTypeError: an argument has a wrong shape or dtype.

    Examples:
        >>> x = tp.random.truncated_normal(tp.random.key(0), (10000,), lower=-1.0, upper=1.0)
        >>> bool(tp.all((x >= -1) & (x <= 1))), round(abs(float(tp.mean(x))), 1)
        (True, 0.0)
        >>> tp.random.truncated_normal(tp.random.key(0), (3,), loc=3.0, scale=0.1).numpy().round(3)
        array([2.976, 3.109, 3.06 ], dtype=float32)

    """
    caller = "truncated_normal"
    checked = as_key(key, caller)
    sizes, chosen, (low, high, mean, deviation) = drawing.parameters(
        caller, shape, dtype, widen=True, lower=lower, upper=upper, loc=loc, scale=scale
    )
    work = chosen.compute
    _check_bounds(low, high, work)
    first, last = _compute_erf(low, sqrt(0.5)), _compute_erf(high, sqrt(0.5))
    largest = 1.0 - 2.0 ** (-24 if work is dt.float32 else -53)
    drawn = first + tp.random.uniform(checked, sizes, work) * (last - first)
    inside = tp.minimum(tp.maximum(drawn, -largest), largest)
    z = _invert_erf(inside) * sqrt(2.0)
    cut = tp.minimum(tp.maximum(z, low), high)
    return tp.astype(drawing.shift_and_scale(cut, mean, deviation), chosen)


def _compute_erf(bound: Any, factor: float) -> Any:
    """Return ``erf(bound * factor)`` for a number or a tensor."""
    return erf(bound * factor) if host_values.is_scalar(bound) else tp.erf(bound * factor)


def _check_bounds(lower: Any, upper: Any, dtype: DType) -> None:
    reach = _REACH[dtype]
    both = host_values.is_scalar(lower) and host_values.is_scalar(upper)
    if both and not lower < upper:
        raise ArgumentError(
            f"truncated_normal: lower must be below upper, "
            f"got {arguments.quoted(lower)} and {upper!r}"
        )
    if (host_values.is_scalar(lower) and not lower <= reach) or (
        host_values.is_scalar(upper) and not upper >= -reach
    ):
        raise ArgumentError(
            f"truncated_normal: {dtype} has too few numbers between {lower!r} and {upper!r}; "
            f"lower must be at most {reach} and upper at least {-reach} (7.0 for float64)"
        )


# M. Giles, "Approximating the erfinv function", GPU Computing Gems 2, 2010: polynomials in
# w - 2.5 and sqrt(w) - 3, w = -log(1 - x**2), the highest power first.
_CENTRAL: Final = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
_TAIL: Final = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)


def _invert_erf(x: Tensor) -> Tensor:
    """Return y with erf(y) = x for |x| < 1."""
    w = -tp.log((1.0 - x) * (1.0 + x))
    tail = tp.less(5.0, w)
    central = polynomial(_CENTRAL, tp.where(tail, 0.0, w - 2.5))
    y = x * tp.where(tail, polynomial(_TAIL, tp.sqrt(tp.where(tail, w, 5.0)) - 3.0), central)
    if x.dtype is not dt.float64:
        return y
    # One step of Halley's method extends seven digits to twenty.
    slope = tp.exp(-y * y) * (2.0 / sqrt(pi))
    off = (tp.erf(y) - x) / slope
    return y - off / (1.0 + y * off)


def gamma(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    concentration: ArrayLike,
    scale: ArrayLike = 1.0,
) -> Tensor:
    """Return numbers drawn from the gamma distribution of mean ``concentration * scale``.

    Marsaglia and Tsang's method ("A simple method for generating gamma variables", ACM TOMS 26,
    2000): candidates are drawn for all elements, round by round, until each has an accepted
    one. The host waits for the device after every round; four or five rounds are typical.
    float16 is computed in float32.

    Args:
        key: a key.
        shape: of the result; by default the broadcast shape of ``concentration`` and ``scale``.
        dtype: a floating dtype; by default that of ``concentration`` and ``scale`` if they are
            floating tensors, else float32.
        concentration: a positive number, or a tensor that broadcasts to ``shape``. The result
            is NaN where it is not positive and finite.
        scale: a number or a tensor that broadcasts to ``shape``.

    Returns:
        The numbers, differentiable in ``scale``, but not in ``concentration``.

    Raises:
        ArgumentError: ``key`` is not a key, or ``concentration`` is a number that is not positive.
        ShapeError, DTypeError: an argument has a wrong shape or dtype.
        CompileError: in a compiled function.

    Source: NumPy's Generator.gamma.

    Examples:
        >>> x = tp.random.gamma(tp.random.key(0), (10000,), concentration=4.0, scale=0.5)
        >>> bool(tp.all(x > 0)), round(float(tp.mean(x)), 1)
        (True, 2.0)
        >>> tp.random.gamma(tp.random.key(0), (5, 3), concentration=[1.0, 10.0, 100.0]).shape
        (5, 3)

    """
    checked = as_key(key, "gamma")
    sizes, chosen, (a, width) = drawing.parameters(
        "gamma", shape, dtype, widen=True, concentration=concentration, scale=scale
    )
    if host_values.is_scalar(a):
        if not 0 < a < inf:
            raise ArgumentError(
                f"gamma: concentration must be positive and finite, got {arguments.quoted(a)}"
            )
        a = tp.full((), a, dtype=chosen.compute)
    drawn = _draw_standard_gamma(checked, tp.stop_gradient(a), sizes)
    return tp.astype(drawing.shift_and_scale(drawn, 0, width), chosen)


def _draw_standard_gamma(key: Tensor, a: Tensor, shape: Shape) -> Tensor:
    """Return numbers of concentration ``a``; NaN where it is not positive and finite.

    A number of concentration a + 1 times the a-th root of a uniform number has concentration a:
    so those below 1 are made.
    """
    rounds, boost = tp.random.split(key)
    small = tp.less(a, 1.0)
    possible = tp.logical_and(tp.less(0.0, a), tp.less(a, inf))
    d = tp.where(small, a + 1.0, a) - 1.0 / 3.0
    c = 1.0 / tp.sqrt(d * 9.0)
    result = drawing.first_accepted(
        rounds, possible, shape, nan, lambda key: _draw_candidates(key, c, d, shape), a.dtype
    )
    log_root = -tp.random.exponential(boost, shape, a.dtype) / a
    return tp.where(small, result * tp.exp(log_root), result)


def _draw_candidates(key: Tensor, c: Tensor, d: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """Return a candidate for every element, and whether it is accepted."""
    one, two = tp.random.split(key)
    x = tp.random.normal(one, shape, d.dtype)
    minus_log_u = tp.random.exponential(two, shape, d.dtype)
    root = 1.0 + c * x
    v = root * root * root
    positive = tp.less(0.0, v)
    log_v = tp.log(tp.where(positive, v, 1.0))
    square = x * x
    exactly = tp.less(square * -0.5 - d * (1.0 - v + log_v), minus_log_u)
    # Implied by the condition above, but safe from its cancellation for large d.
    simply = tp.less(tp.exp(-minus_log_u), 1.0 - square * square * 0.0331)
    return d * v, tp.logical_and(positive, tp.logical_or(simply, exactly))
