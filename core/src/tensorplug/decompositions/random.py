"""Random numbers from primitives, with the same bits as native kernels give.

The primitives lack 64-bit products, shifts and exclusive or. So words are split into halves,
whose products fit into a word, and into single bits, which are added modulo 2.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.tables import DecompositionTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.creation import full, zeros
from tensorplug.ops.cumulative import cumsum
from tensorplug.ops.elementwise.arithmetic import add, minimum
from tensorplug.ops.elementwise.arithmetic import pow as pow_
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal, less
from tensorplug.ops.elementwise.unary import sqrt
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.joining import concat, stack
from tensorplug.ops.movement import broadcast_to, expand_dims, permute_dims, reshape
from tensorplug.ops.nn.activation import softmax
from tensorplug.ops.random import box_muller, philox
from tensorplug.ops.random import random as ops
from tensorplug.ops.ranges import arange
from tensorplug.ops.reduction import sum as sum_
from tensorplug.ops.searching import upper_bound
from tensorplug.ops.special.evaluation import polynomial

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.random.box_muller import Precision

    Pair = tuple[Tensor, Tensor]  # two halves of a product, or a number as a sum of two floats

decompositions: DecompositionTable = DecompositionTable(alone=True)

_SEGMENT: Final = 1 << 14  # blocks at a time; their single bits take 32 times the memory


@decompositions.of(ops.RANDOM_BITS)
def random_bits(key: Tensor, *, shape: Shape, start: int) -> Tensor:
    count = shapes.size(shape)
    if not count:
        return zeros(shape, dtype=dt.uint32)
    blocks = -(-count // 4)
    parts = [
        _draw_blocks(key, start + first, min(_SEGMENT, blocks - first))
        for first in range(0, blocks, _SEGMENT)
    ]
    return reshape(slice_(concat(parts), (0,), (count,)), shape)


@decompositions.of(ops.RANDOM_UNIFORM)
def random_uniform(key: Tensor, *, shape: Shape, start: int, dtype: DType) -> Tensor:
    if dtype is dt.float64:
        lower, upper = _draw_words(key, shape, 2, start)
        return _join(upper, lower // 2**11, 21) * 2.0**-53
    (word,) = _draw_words(key, shape, 1, start)
    kept = dtype.significand
    return astype(word // 2 ** (32 - kept), dtype) * 2.0**-kept


@decompositions.of(ops.RANDOM_INTEGERS)
def random_integers(key: Tensor, span: Tensor, *, shape: Shape, start: int) -> Tensor:
    half = 4 * span.dtype.itemsize
    if half == 16:
        lower, upper = _draw_words(key, shape, 2, start)
    else:
        words = [astype(word, span.dtype) for word in _draw_words(key, shape, 4, start)]
        lower, upper = words[0] + words[1] * 2**32, words[2] + words[3] * 2**32
    above, below = _multiply_wide(upper, span, half)
    carried = less(below + _multiply_wide(lower, span, half)[0], below)
    return where(equal(span, 0), upper, above + astype(carried, span.dtype))


@decompositions.of(ops.RANDOM_EXPONENTIAL)
def random_exponential(key: Tensor, *, shape: Shape, start: int, dtype: DType) -> Tensor:
    precision = box_muller.precision(dtype)
    words = _draw_words(key, shape, precision.dtype.itemsize // 4, start)
    return astype(_compute_minus_log(precision, *words)[0], dtype)


@decompositions.of(ops.RANDOM_NORMAL)
def random_normal(key: Tensor, *, shape: Shape, start: int, dtype: DType) -> Tensor:
    count, precision = shapes.size(shape), box_muller.precision(dtype)
    needed = precision.dtype.itemsize // 4  # words for the radius, and as many for the angle
    words = _draw_words(key, (-(-count // 2),), 2 * needed, start)
    radius = box_muller.root(precision, _compute_minus_log(precision, *words[:needed]), sqrt)
    cosine, sine = _compute_octant(precision, *words[needed:])
    one, two = box_muller.product(radius, cosine), box_muller.product(radius, sine)
    top = words[-1] // 2**29
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
    drawn = dispatch(ops.RANDOM_UNIFORM, ops.key(seed), shape=shape, dtype=running.dtype)
    total = slice_(running, (*(0 for _ in shape[:-1]), count - 1))
    return minimum(upper_bound(running, drawn * total), full((), count - 1, dtype=dt.int32))


# Words -------------------------------------------------------------------------------------


def _draw_words(key: Tensor, shape: Shape, count: int, start: int) -> list[Tensor]:
    """Return ``count`` tensors of ``shape``: the first word of every element, the second, ..."""
    drawn = dispatch(ops.RANDOM_BITS, key, shape=(*shape, count), start=start)
    return [_take_part(drawn, at) for at in range(count)]


def _take_part(x: Tensor, at: int) -> Tensor:
    """Return ``x[..., at]``."""
    shape = x.shape[:-1]
    return reshape(slice_(x, (*(0 for _ in shape), at), (*shape, 1)), shape)


def _draw_blocks(key: Tensor, first: int, count: int) -> Tensor:
    """Return the words of ``count`` blocks in order.

    The rows of ``x`` are the first and third word of all blocks, those of ``y`` the second and
    fourth. Each round treats both rows alike and then swaps them.
    """
    offset = first % 2**32
    low = arange(count, dtype=dt.uint32) + offset
    high = astype(less(low, offset), dt.uint32) + first // 2**32 % 2**32
    words = [broadcast_to(slice_(key, (at,), (1,)), (count,)) for at in (2, 3)]
    x, y = stack([low, words[0]]), stack([high, words[1]])
    keys = reshape(slice_(key, (0,), (2,)), (2, 1))
    steps, multipliers = _column(philox.STEPS), _column(philox.MULTIPLIERS)
    for number in range(philox.ROUNDS):
        upper, lower = _multiply_wide(x, multipliers, 16)
        x, y = _xor(_swap_rows(upper), y, keys + steps * number), _swap_rows(lower)
    return reshape(permute_dims(reshape(stack([x, y], axis=1), (4, count))), (4 * count,))


def _column(numbers: tuple[int, int]) -> Tensor:
    return concat([full((1, 1), number, dtype=dt.uint32) for number in numbers])


def _swap_rows(x: Tensor) -> Tensor:
    """Return ``x`` with its two rows swapped."""
    return concat([slice_(x, (1, 0)), slice_(x, (0, 0), (1, -1))])


def _multiply_wide(a: Tensor, b: Tensor, half: int) -> Pair:
    """Return the upper and lower halves of products of unsigned integers of 2 * half bits.

    This is long multiplication with digits of ``half`` bits. No partial sum overflows.
    """
    base = 2**half
    a1, a0, b1, b0 = a // base, a % base, b // base, b % base
    one = a1 * b0 + a0 * b0 // base
    two = a0 * b1 + one % base
    return a1 * b1 + one // base + two // base, a * b


def _xor(*words: Tensor) -> Tensor:
    powers = pow_(full((32,), 2, dtype=dt.uint32), arange(32, dtype=dt.uint32))
    counts = [expand_dims(word, axis=-1) // powers % 2 for word in words]
    return sum_(reduce(add, counts) % 2 * powers, axis=-1)


# Floats, in the steps of `ops.box_muller` --------------------------------------------------


def _join(upper: Tensor, lower: Tensor, bits: int) -> Tensor:
    """Return ``upper * 2**bits + lower`` as float64, which holds it exactly."""
    return astype(upper, dt.float64) * 2.0**bits + astype(lower, dt.float64)


def _make_odd(x: Tensor) -> Tensor:
    return x + (1 - x % 2)


def _split(x: Tensor) -> Pair:
    """Return the float32 nearest to an integer below 2**31, and the remainder."""
    nearest = astype(x, dt.float32)
    rest = astype(x - astype(nearest, dt.uint32), dt.int32)
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
        small = less(m, 2 ** (32 - step))
        m, e = where(small, m * 2**step, m), e + astype(small, dt.float32) * step
    below = less(m, int(box_muller.LOW * 2**32))
    # Modulo 2**32 these are 2m - 2**32 and 2**32 - m.
    nearest, rest = _split(where(below, m * 2, -m))
    unit = where(below, 2.0**-32, -(2.0**-32))
    return e + astype(below, dt.float32), nearest * unit, rest * unit


def _reduce_pair_near_1(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same for the upper 53 of 64 bits; f is one float64 and a 0."""
    u = _join(upper, _make_odd(lower // 2**11), 21) * 2.0**-53
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
        part = _join(top, _make_odd(words[0] // 2**11), 21) * 2.0**-50
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
