"""Random numbers from primitives, with the same bits as native kernels give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.tables import DecompositionTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.creation import full, zeros
from tensorplug.ops.cumulative import cumsum
from tensorplug.ops.elementwise.arithmetic import minimum
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal, less
from tensorplug.ops.elementwise.unary import sqrt
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.joining import stack
from tensorplug.ops.movement import reshape
from tensorplug.ops.nn.activation import softmax
from tensorplug.ops.random import box_muller, words
from tensorplug.ops.random import random as ops
from tensorplug.ops.random.words import is_below, multiply_wide, shifted, widened
from tensorplug.ops.searching import upper_bound
from tensorplug.ops.special.evaluation import polynomial

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.random.box_muller import Precision

    Pair = tuple[Tensor, Tensor]  # two halves of a product, or a number as a sum of two floats

decompositions: DecompositionTable = DecompositionTable(alone=True)

random_bits = decompositions.of(ops.RANDOM_BITS)(words.draw)


@decompositions.of(ops.RANDOM_UNIFORM)
def random_uniform(key: Tensor, *, shape: Shape, start: int, dtype: DType) -> Tensor:
    if dtype is dt.float64:
        lower, upper = _draw_words(key, shape, 2, start)
        return _join(upper, shifted(lower, 11), 21) * 2.0**-53
    (word,) = _draw_words(key, shape, 1, start)
    kept = dtype.significand
    return astype(shifted(word, 32 - kept), dtype) * 2.0**-kept


@decompositions.of(ops.RANDOM_INTEGERS)
def random_integers(key: Tensor, span: Tensor, *, shape: Shape, start: int) -> Tensor:
    half = 4 * span.dtype.itemsize
    if half == 16:
        lower, upper = _draw_words(key, shape, 2, start)
    else:
        a, b, c, d = (widened(word, span.dtype) for word in _draw_words(key, shape, 4, start))
        lower, upper = a + b * 2**32, c + d * 2**32
    above, below = multiply_wide(upper, span, half)
    carried = is_below(below + multiply_wide(lower, span, half)[0], below)
    return where(equal(span, 0), upper, above + astype(carried, span.dtype))


@decompositions.of(ops.RANDOM_EXPONENTIAL)
def random_exponential(key: Tensor, *, shape: Shape, start: int, dtype: DType) -> Tensor:
    precision = box_muller.precision(dtype)
    drawn = _draw_words(key, shape, precision.dtype.itemsize // 4, start)
    return astype(_compute_minus_log(precision, *drawn)[0], dtype)


@decompositions.of(ops.RANDOM_NORMAL)
def random_normal(key: Tensor, *, shape: Shape, start: int, dtype: DType) -> Tensor:
    count, precision = shapes.size(shape), box_muller.precision(dtype)
    needed = precision.dtype.itemsize // 4  # words for the radius, and as many for the angle
    drawn = _draw_words(key, (-(-count // 2),), 2 * needed, start)
    radius = box_muller.root(precision, _compute_minus_log(precision, *drawn[:needed]), sqrt)
    cosine, sine = _compute_octant(precision, *drawn[needed:])
    one, two = box_muller.product(radius, cosine), box_muller.product(radius, sine)
    top = shifted(drawn[-1], 29)
    swapped = top >= 4
    both = (where(swapped, two, one), where(swapped, one, two))
    signed = [
        where(equal(top // bit % 2, 1), -normal, normal)
        for bit, normal in zip((2, 1), both, strict=True)
    ]
    flat = slice_(reshape(stack(signed, axis=-1), (-1,)), (0,), (count,))
    return astype(reshape(flat, shape), dtype)


@decompositions.of(ops.MULTINOMIAL)
def multinomial(logits: Tensor, *, num_samples: int, seed: int, normalized: bool) -> Tensor:
    running = cumsum(logits if normalized else softmax(logits), axis=-1)
    count = running.shape[-1]
    shape = (*running.shape[:-1], num_samples)
    drawn = draw(ops.RANDOM_UNIFORM, ops.key(seed), shape=shape, dtype=running.dtype)
    total = slice_(running, (*(0 for _ in shape[:-1]), count - 1))
    return minimum(upper_bound(running, drawn * total), full((), count - 1, dtype=dt.int32))


_BY_SPEC: Final[dict[KernelSpec, Any]] = {
    ops.RANDOM_BITS: random_bits,
    ops.RANDOM_UNIFORM: random_uniform,
    ops.RANDOM_INTEGERS: random_integers,
    ops.RANDOM_EXPONENTIAL: random_exponential,
    ops.RANDOM_NORMAL: random_normal,
}


def draw(spec: KernelSpec, key: Tensor, *inputs: Tensor, **attributes: Any) -> Tensor:
    """Return what the spec draws from the key, its other inputs and attributes as it has them.

    Kernels take keys in uint32. On a device without that dtype keys, and words and spans of 32
    bits, are int32 with the same bits, and this function runs the primitives itself.
    """
    if key.dtype is ops.KEY.dtype:
        drawn: Tensor = dispatch(spec, key, *inputs, **attributes)
        return drawn
    composed: Tensor = _BY_SPEC[spec](key, *inputs, start=0, **attributes)
    return composed


# Words -------------------------------------------------------------------------------------


def _draw_words(key: Tensor, shape: Shape, count: int, start: int) -> list[Tensor]:
    """Return ``count`` tensors of ``shape``: the first word of every element, the second, ..."""
    drawn = ops.draw_words(key, (*shape, count), start)
    return [_take_part(drawn, at) for at in range(count)]


def _take_part(x: Tensor, at: int) -> Tensor:
    """Return ``x[..., at]``."""
    shape = x.shape[:-1]
    return reshape(slice_(x, (*(0 for _ in shape), at), (*shape, 1)), shape)


# Floats, in the steps of `ops.box_muller` --------------------------------------------------


def _join(upper: Tensor, lower: Tensor, bits: int) -> Tensor:
    """Return ``upper * 2**bits + lower`` as float64, which holds it exactly."""
    return _unsigned(upper) * 2.0**bits + astype(lower, dt.float64)


def _unsigned(x: Tensor) -> Tensor:
    """Return an unsigned integer as float64."""
    number = astype(x, dt.float64)
    return number if x.dtype in dt.UNSIGNED else where(less(x, 0), number + 2.0**32, number)


def _make_odd(x: Tensor) -> Tensor:
    return x + (1 - x % 2)


def _split(x: Tensor) -> Pair:
    """Return the float32 nearest to an integer below 2**31, and the remainder."""
    nearest = astype(x, dt.float32)
    rest = astype(x - astype(nearest, x.dtype), dt.int32)
    return nearest, astype(rest, dt.float32)


def _compute_minus_log(precision: Precision, *words: Tensor) -> Pair:
    """Return ``-ln u`` for u made of one word (float32) or two."""
    e, f, rest = _reduce_pair_near_1(*words) if len(words) == 2 else _reduce_near_1(*words)
    high, low = box_muller.halved(precision, f)
    low = low + rest
    series = polynomial(precision.logarithm, f)
    return box_muller.minus_log(precision, e, f, (high, low), series)


def _reduce_near_1(word: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return e and f with ``(word | 1) / 2**32 == (1 + f) / 2**e``; f is the sum of two floats."""
    m, e = _make_odd(word), zeros(word.shape)
    for step in (16, 8, 4, 2, 1):
        small = is_below(m, 2 ** (32 - step))
        m, e = where(small, m * 2**step, m), e + astype(small, dt.float32) * step
    below = is_below(m, int(box_muller.LOW * 2**32))
    # Modulo 2**32 these are 2m - 2**32 and 2**32 - m.
    nearest, rest = _split(where(below, m * 2, -m))
    unit = where(below, 2.0**-32, -(2.0**-32))
    return e + astype(below, dt.float32), nearest * unit, rest * unit


def _reduce_pair_near_1(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same for the upper 53 of 64 bits; f is one float64 and a 0."""
    u = _join(upper, _make_odd(shifted(lower, 11)), 21) * 2.0**-53
    e = zeros(lower.shape, dtype=dt.float64)
    for step in (32, 16, 8, 4, 2, 1):
        small = less(u, 2.0**-step)
        u, e = where(small, u * 2.0**step, u), e + astype(small, dt.float64) * step
    below = less(u, box_muller.LOW)
    return e + astype(below, dt.float64), where(below, u * 2.0, u) - 1.0, zeros((), dtype=e.dtype)


def _compute_octant(precision: Precision, *words: Tensor) -> tuple[Pair, Pair]:
    """Return cosine and sine of an angle in (0, pi/4), made of one word or two."""
    top = words[-1] % 2**29
    if len(words) == 1:
        part, rest = (item * 2.0**-29 for item in _split(_make_odd(top)))
    else:
        part = _join(top, _make_odd(shifted(words[0], 11)), 21) * 2.0**-50
        rest = zeros((), dtype=dt.float64)
    high, low = box_muller.halved(precision, part)
    low = low + rest
    first, second = precision.quarter_pi
    angle, error = box_muller.exact_sum(high * first, low * first + part * second)
    z = angle * angle
    sine = box_muller.exact_sum(angle, error + angle * z * polynomial(precision.sine, z))
    high, low = box_muller.halved(precision, angle)
    low = low + error
    total, lost = box_muller.exact_sum(full((), 1.0, dtype=angle.dtype), -(high * high * 0.5))
    bent = lost - low * (high + low * 0.5)
    return box_muller.exact_sum(total, bent + z * z * polynomial(precision.cosine, z)), sine
