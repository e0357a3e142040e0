"""Poisson and binomial draws. The functions live in ``tensorplug.random``.

For means below ``_MANY``, exponential waiting times are counted: this is exact, and its time grows
with the mean. The others use W. Hörmann's transformed rejection: PTRS ("The transformed
rejection method for generating Poisson random variables", Insurance: Mathematics and Economics
12, 1993) and BTRS ("The generation of binomial random variates", Journal of Statistical
Computation and Simulation 46, 1993). Logarithms of probabilities are C. Loader's ("Fast and
accurate computation of binomial probabilities", 2000): the distance from the mean enters them
exactly, so nothing cancels where the mean is large.
"""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import tensorplug as tp
from tensorplug.algorithms import drawing
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.plugin import arguments, as_key, host_values, shapes
from tensorplug.plugin import dtypes as dt
from tensorplug_science.special import gamma_formulas, incomplete_gamma_formulas
from tensorplug_science.special.gamma_functions import gammaln

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import DType, Shape, Tensor
    from tensorplug.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike

__all__ = ["binomial", "poisson"]

_MANY: Final = 10.0
_WAITS: Final = 16  # waiting times drawn at once
_LARGEST: Final = {dt.float32: 2.0**23, dt.float64: 2.0**52}
"""Up to which whole numbers and their halves are exact."""


def poisson(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    rate: ArrayLike,
) -> Tensor:
    """Return whole numbers drawn from the Poisson distribution of mean ``rate``.

    The host waits for the device after every round of candidates; up to five rounds are typical.

    Args:
        key: a key.
        shape: of the result; by default that of ``rate``.
        dtype: a signed integer dtype; by default int32.
        rate: a number, or a tensor that broadcasts to ``shape``: at least 0 and at most 2**23, or
            2**52 where it is a float64 tensor or ``dtype`` is int64. The result is -1 where the
            rate is outside these bounds.

    Returns:
        The numbers, as exact as the uniform and exponential numbers they are made from. Where a
        logarithm decides, backends may round it differently and so return different numbers.

    Raises:
        ArgumentError: ``key`` is not a key, or ``rate`` is a number outside the bounds.
        ShapeError, DTypeError: an argument has a wrong shape or dtype.
        CompileError: in a compiled function.

    Source: NumPy's Generator.poisson.

    Examples:
        >>> x = tp.random.poisson(tp.random.key(0), (10000, 2), rate=[1.0, 20.0])
        >>> x.dtype, x.shape
        (tensorplug.int32, (10000, 2))
        >>> tp.mean(x, axis=0).numpy().round(1)
        array([ 1., 20.], dtype=float32)

    """
    checked = as_key(key, "poisson")
    whole = _choose_signed_dtype("poisson", dtype)
    sizes, work, (mean,) = _read("poisson", shape, whole, rate=rate)
    mean = tp.stop_gradient(mean)
    inside = (mean >= 0.0) & (mean <= _LARGEST[work])
    mean = tp.where(inside, mean, 0.0)
    by_waiting, by_rejection = tp.random.split(checked)
    few = _count_waits(
        by_waiting, mean < _MANY, sizes, tp.where(mean < _MANY, mean, 0.0), lambda wait: wait
    )
    many = _draw_many(by_rejection, mean >= _MANY, sizes, _Poisson.of(tp.maximum(mean, _MANY)))
    drawn = tp.where(mean < _MANY, few, many)
    return tp.astype(tp.where(inside, drawn, -1.0), whole)


def binomial(
    key: KeyLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    n: ArrayLike,
    p: ArrayLike,
) -> Tensor:
    """Return how often an event of probability ``p`` happens in ``n`` trials.

    The host waits for the device after every round of candidates; up to five rounds are typical.

    Args:
        key: a key.
        shape: of the result; by default the broadcast shape of ``n`` and ``p``.
        dtype: a signed integer dtype; by default int32.
        n: a whole number, or a tensor of whole numbers that broadcasts to ``shape``: at least 0
            and at most 2**23, or 2**52 where ``p`` is a float64 tensor or ``dtype`` is int64. The
            result is -1 where ``n`` is outside these bounds.
        p: a number in [0, 1], or a tensor that broadcasts to ``shape``. The result is -1 where it
            is outside.

    Returns:
        The numbers; for their accuracy see ``poisson``.

    Raises:
        ArgumentError: ``key`` is not a key, or ``n`` or ``p`` is a number outside its bounds.
        ShapeError, DTypeError: an argument has a wrong shape or dtype.
        CompileError: in a compiled function.

    Source: NumPy's Generator.binomial.

    Examples:
        >>> x = tp.random.binomial(tp.random.key(0), (10000,), n=10, p=0.3)
        >>> int(tp.max(x)) <= 10, round(float(tp.mean(x)), 1)
        (True, 3.0)

    """
    checked = as_key(key, "binomial")
    whole = _choose_signed_dtype("binomial", dtype)
    given: Any = p
    if host_values.is_scalar(given) and not 0 <= given <= 1:
        raise ArgumentError(f"binomial: p must be in [0, 1], got {arguments.quoted(p)}")
    if host_values.is_scalar(n):
        shapes.index(n, "binomial: n")
    sizes, work, (trials, chance) = _read("binomial", shape, whole, n=n, p=p)
    trials, chance = tp.stop_gradient(trials), tp.stop_gradient(chance)
    inside = (trials >= 0.0) & (trials <= _LARGEST[work]) & (tp.floor(trials) == trials)
    inside = inside & (chance >= 0.0) & (chance <= 1.0)
    trials, chance = tp.where(inside, trials, 0.0), tp.where(inside, chance, 0.0)
    less_likely = tp.minimum(chance, 1.0 - chance)
    mean = trials * less_likely
    by_waiting, by_rejection = tp.random.split(checked)
    drawn = tp.where(
        mean < _MANY,
        _count_gaps(by_waiting, mean < _MANY, sizes, trials, less_likely),
        _draw_many(by_rejection, mean >= _MANY, sizes, _Binomial.of(trials, less_likely)),
    )
    drawn = tp.where(chance > 0.5, trials - drawn, drawn)
    return tp.astype(tp.where(inside, drawn, -1.0), whole)


def _choose_signed_dtype(caller: str, dtype: Any) -> DType:
    chosen = dt.default_int if dtype is None else dt.of(dtype, caller)
    if chosen not in dt.SIGNED:
        raise DTypeError(f"{caller}: dtype must be a signed integer dtype, got {chosen}")
    return chosen


def _read(
    caller: str, shape: Any, whole: DType, **named: Any
) -> tuple[Shape, DType, tuple[Tensor, ...]]:
    """Return the shape of a draw, the dtype in which it is computed, and the parameters in it."""
    wide = dt.float64 if whole is dt.int64 else None
    sizes, work, values = drawing.parameters(caller, shape, wide, widen=True, **named)
    work = dt.float64 if work is dt.float64 else dt.float32
    most = min(_LARGEST[work], float(whole.max))
    first, *_ = named
    for name, value in zip(named, values, strict=True):
        if host_values.is_scalar(value) and name == first and not 0 <= value <= most:
            raise ArgumentError(
                f"{caller}: {name} must be in [0, {most:.0f}], got {arguments.quoted(value)}"
            )
    return (
        sizes,
        work,
        tuple(
            tp.full((), value, dtype=work)
            if host_values.is_scalar(value)
            else tp.astype(value, work)
            for value in values
        ),
    )


# Few: waiting times ------------------------------------------------------------------------


def _count_waits(
    key: Tensor,
    wanted: Tensor,
    shape: Shape,
    until: Tensor,
    wait: Callable[[Tensor], Tensor],
) -> Tensor:
    """Return how many waiting times, one after the other, end before or at ``until``.

    ``wait`` makes them of exponential numbers. Where not ``wanted``, ``until`` is to be below 0
    or so small that few fit.
    """
    count = tp.full(shape, 0.0, dtype=until.dtype)
    now = count
    limit = tp.expand_dims(tp.broadcast_to(until, shape), axis=-1)
    open_ = tp.broadcast_to(wanted, shape)
    number = 0
    while bool(tp.any(open_)):
        drawn = tp.random.exponential(
            tp.random.fold_in(key, number), (*shape, _WAITS), until.dtype
        )
        times = tp.expand_dims(now, axis=-1) + tp.cumsum(wait(drawn), axis=-1)
        count = count + tp.where(
            open_, tp.sum(tp.astype(times <= limit, until.dtype), axis=-1), 0.0
        )
        now = tp.max(times, axis=-1)
        open_ = open_ & (now <= until)
        number += 1
    return count


def _count_gaps(key: Tensor, wanted: Tensor, shape: Shape, n: Tensor, p: Tensor) -> Tensor:
    """Return the number of events in ``n`` trials by the gaps between them, which are geometric.

    (L. Devroye, Non-Uniform Random Variate Generation, 1986, section X.4.3.)
    """
    possible = wanted & (p > 0.0)
    rate = tp.expand_dims(tp.broadcast_to(-tp.log1p(-tp.where(possible, p, 0.5)), shape), axis=-1)
    until = tp.where(possible, n, 0.0)
    return _count_waits(key, possible, shape, until, lambda wait: tp.floor(wait / rate) + 1.0)


# Many: transformed rejection ---------------------------------------------------------------


class _Poisson(NamedTuple):
    """The hat and the density of PTRS."""

    mean: Tensor
    a: Tensor
    b: Tensor
    log_scale: Tensor  # of the hat, beside its shape
    squeeze: Tensor  # candidates below are accepted at once
    whole: Tensor  # of the centre
    rest: Tensor

    @classmethod
    def of(cls, mean: Tensor) -> _Poisson:
        b = 0.931 + 2.53 * tp.sqrt(mean)
        a = -0.059 + 0.02483 * b
        whole = tp.floor(mean)
        log_scale = tp.log(1.1239 + 1.1328 / (b - 3.4))
        return cls(mean, a, b, log_scale, 0.9277 - 3.6224 / (b - 2.0), whole, mean - whole + 0.43)

    def holds(self, k: Tensor) -> Tensor:
        return k >= 0.0

    def log_density(self, k: Tensor) -> Tensor:
        return _log_poisson(k, self.mean, 0.0)


class _Binomial(NamedTuple):
    """The hat and the density of BTRS, relative to that of the mode."""

    trials: Tensor
    mean: Tensor
    error: Tensor  # of the mean: what rounding lost
    others: Tensor  # the mean number of trials in which nothing happens
    log_mode: Tensor
    a: Tensor
    b: Tensor
    log_scale: Tensor
    squeeze: Tensor
    whole: Tensor
    rest: Tensor

    @classmethod
    def of(cls, n: Tensor, p: Tensor) -> _Binomial:
        many = n * p >= _MANY
        n, p = tp.where(many, n, 4.0 * _MANY), tp.where(many, p, 0.5)
        mean = n * p
        high, low = _split(n)
        first, second = _split(p)
        error = ((high * first - mean) + high * second + low * first) + low * second
        spread = tp.sqrt(mean * (1.0 - p))
        b = 1.15 + 2.53 * spread
        a = -0.0873 + 0.0248 * b + 0.01 * p
        whole = tp.floor(mean)
        found = cls(
            *(n, mean, error, n - mean, mean),
            *(a, b, tp.log((2.83 + 5.1 / b) * spread), 0.92 - 4.2 / b),
            *(whole, mean - whole + (0.5 + error)),
        )
        mode = tp.floor(mean + (p + error))
        return found._replace(log_mode=found._log_mass(mode))

    def holds(self, k: Tensor) -> Tensor:
        return (k >= 0.0) & (k <= self.trials)

    def log_density(self, k: Tensor) -> Tensor:
        return self._log_mass(tp.minimum(k, self.trials)) - self.log_mode

    def _log_mass(self, k: Tensor) -> Tensor:
        """Return the logarithm of the probability of k, up to a constant."""
        happen = _log_poisson(k, self.mean, self.error)
        return happen + _log_poisson(self.trials - k, self.others, -self.error)


def _split(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``x`` as a sum of two numbers of half its bits (Veltkamp)."""
    big = x * (4097.0 if x.dtype is dt.float32 else 134217729.0)
    high = big - (big - x)
    return high, x - high


def _draw_many(key: Tensor, wanted: Tensor, shape: Shape, hat: _Poisson | _Binomial) -> Tensor:
    dtype = hat.mean.dtype

    def draw(key: Tensor) -> tuple[Tensor, Tensor]:
        one, two = tp.random.split(key)
        u = tp.random.uniform(one, shape, dtype) - 0.5
        minus_log_v = tp.random.exponential(two, shape, dtype)
        us = tp.maximum(0.5 - tp.abs(u), 2.0**-25)
        k = hat.whole + tp.floor((2.0 * hat.a / us + hat.b) * u + hat.rest)
        at_once = (us >= 0.07) & (minus_log_v >= -tp.log(hat.squeeze))
        inside = hat.holds(k)
        scale = hat.log_scale - tp.log(hat.a / (us * us) + hat.b)
        exactly = scale - minus_log_v <= hat.log_density(tp.maximum(k, 0.0))
        return k, inside & (at_once | exactly)

    return drawing.first_accepted(key, wanted, shape, 0.0, draw, dtype)


_SMALL: Final = 8.0


def _log_poisson(k: Tensor, mean: Tensor, error: Any) -> Tensor:
    """Return the logarithm of the Poisson probability of k >= 0; the mean is ``mean + error``."""
    few, many = tp.minimum(k, _SMALL), tp.maximum(k, _SMALL)
    near = few * tp.log(mean) - mean - gammaln(few + 1.0)
    far = -0.5 * tp.log(many * (2.0 * pi)) - gamma_formulas.stirling_remainder(many)
    far = far - incomplete_gamma_formulas.deviance(tp, many, mean, (many - mean) - error)
    return tp.where(k < _SMALL, near, far)
