"""References for elementwise arithmetic."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide, wrap
from tensorplug_conformance.floats import epsilon

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.case import Array


def inexact(function: Callable[..., Any]) -> Callable[..., Array]:
    """Return a reference that applies ``function`` in wide arithmetic; special values pass."""

    @functools.wraps(function)
    def reference(*inputs: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(*map(wide, inputs)))

    return reference


def arithmetic(
    integers: Callable[..., Any], floats: Callable[..., Any] | None = None, *, inputs: int = 2
) -> Callable[..., Array]:
    """Return a reference for every number: ``integers`` on exact ints, wrapped at the end.

    ``floats`` is what floats and complex numbers take, where it differs.
    """
    elementwise = np.frompyfunc(integers, inputs, 1)
    wide_reference = inexact(floats or integers)

    def reference(*values: Array) -> Array:
        dtype = values[0].dtype
        if dtype.kind not in "iu":
            return wide_reference(*values)
        return wrap(np.asarray(elementwise(*map(wide, values))), dtype)

    return reference


def _erf(x: Array) -> Array:
    values = [math.erf(float(number)) for number in np.ravel(x)]
    return np.array(values, dtype=np.longdouble).reshape(x.shape)


def _tanh(z: Array) -> Array:
    return np.asarray(np.tanh(z))


def _nan_first(pick: Callable[[Array, Array], Any]) -> Callable[[Array, Array], Array]:
    """Return the choice between two floats that gives NaN when either is NaN."""

    def choose(a: Array, b: Array) -> Array:
        return np.where(np.isnan(a) | np.isnan(b), np.nan, np.where(pick(a, b), a, b))

    return choose


def _floor_div(a: Array, b: Array) -> Array:
    """Floor of the exact quotient; a / 0 and infinity / b are infinities or NaN as in division.

    a - mod(a, b) is a whole multiple of b, so its quotient is a whole number but for rounding,
    while the rounded a / b may have reached the next whole number.
    """
    as_divided = (b == 0) | np.isinf(a)
    return np.asarray(np.where(as_divided, a / b, np.rint((a - _mod(a, b)) / b)))


def _mod(a: Array, b: Array) -> Array:
    """Remainder with the sign of b, by way of the exact fmod."""
    rest = np.fmod(a, b)
    return np.asarray(np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest))


def _integer_pow(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << 64) if abs(a) > 1 else a**b
    return {1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0)


neg = arithmetic(lambda x: -x, inputs=1)
absolute = arithmetic(abs, inputs=1)
floor = arithmetic(lambda x: x, np.floor, inputs=1)
square = arithmetic(lambda x: x * x, inputs=1)
add = arithmetic(lambda a, b: a + b)
sub = arithmetic(lambda a, b: a - b)
multiply = arithmetic(lambda a, b: a * b)
squared_difference = arithmetic(lambda a, b: (a - b) * (a - b))
floor_div = arithmetic(lambda a, b: a // b if b else 0, _floor_div)
mod = arithmetic(lambda a, b: a % b if b else 0, _mod)
power = arithmetic(_integer_pow, np.power)
maximum = arithmetic(max, _nan_first(np.greater_equal))
minimum = arithmetic(min, _nan_first(np.less_equal))
real_div = inexact(np.divide)
div_no_nan = inexact(lambda a, b: np.where(b == 0, 0, a / np.where(b == 0, 1, b)))
exp = inexact(np.exp)
log = inexact(np.log)
sqrt = inexact(np.sqrt)
sin = inexact(np.sin)
cos = inexact(np.cos)
atan = inexact(np.arctan)
tanh = inexact(_tanh)
erf = inexact(_erf)


def add_n(xs: list[Array]) -> Array | Bounded:
    """The sum; that of floats may be off by an eps of the terms for each halving of the list."""
    dtype = xs[0].dtype
    value = functools.reduce(np.add, map(wide, xs))
    if dtype.kind in "iu":
        return wrap(value, dtype)
    size = functools.reduce(np.add, (np.abs(wide(x)) for x in xs))
    rounds = max(1, math.ceil(math.log2(len(xs))))
    return Bounded(value, size * rounds * epsilon(xs[0]))


def cast(x: Array, *, dtype: str) -> Array:
    """Truncation towards zero, two's complement wrapping, NaN and infinities to 0."""
    target = dt.of(dtype).numpy
    if target.kind == "b":
        return np.asarray(x != 0)
    source = x.real if x.dtype.kind == "c" and target.kind != "c" else x
    if target.kind in "iu":
        exact = np.frompyfunc(_whole, 1, 1)(source)
        return wrap(np.asarray(exact), target)
    wider = np.clongdouble if target.kind == "c" else np.longdouble
    return source.astype(wider)


def _whole(value: Any) -> int:
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, float) and not math.isfinite(number):
        return 0
    return int(number)


def select(condition: Array, t: Array, e: Array) -> Array:
    """All of ``e``, and then those of ``t`` that are chosen, written over it."""
    conditions, ts, es = np.broadcast_arrays(condition, t, e)
    out = np.array(es)
    out[conditions] = ts[conditions]
    return out
