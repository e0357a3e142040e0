"""Random numbers: the words of Philox4x32-10, and what is made of them."""

from __future__ import annotations

from tensorplug.algorithms import philox
from tensorplug.plugin import Backend, Expression, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


def _block(
    loops: Loops, key: Operand, block: Expression, start: int, *, wide: bool
) -> list[Expression]:
    """Return the four words of a block; ``wide``: by numbers of 64 bits."""
    first, second, third, fourth = (loops.read(key, at) for at in range(4))
    own = expressions.cast(block, dt.uint32)
    low = own + start % 2**32
    high = expressions.cast(low < own, dt.uint32) + (start >> 32) % 2**32
    if wide:  # without, there are fewer than 2**32 blocks
        high = high + expressions.cast(block >> 32, dt.uint32)
    words, keys = [low, high, third, fourth], [first, second]
    for _ in range(philox.ROUNDS):
        pairs = zip(words[::2], philox.MULTIPLIERS, strict=True)
        upper, lower = zip(*[_product(word, by, wide=wide) for word, by in pairs], strict=True)
        words = [upper[1] ^ words[1] ^ keys[0], lower[1], upper[0] ^ words[3] ^ keys[1], lower[0]]
        keys = [key + step for key, step in zip(keys, philox.STEPS, strict=True)]
    return words


def _product(a: Expression, b: Expression | int, *, wide: bool) -> tuple[Expression, Expression]:
    """Return the upper and the lower word of a product of words."""
    if wide:
        other = b if isinstance(b, int) else expressions.cast(b, dt.uint64)
        product = expressions.cast(a, dt.uint64) * other
        return expressions.cast(product >> 32, dt.uint32), expressions.cast(product, dt.uint32)
    half = 2**16 - 1
    first = (a & half) * (b & half)
    second = (a >> 16) * (b & half) + (first >> 16)
    third = (a & half) * (b >> 16) + (second & half)
    return (a >> 16) * (b >> 16) + (second >> 16) + (third >> 16), a * b


def _draw(
    key: Operand, start: int, count: int, out: TensorType, backend: Backend
) -> tuple[Loops, list[Expression]]:
    """Return loops over elements of ``count`` words each, and these words."""
    per_block = 4 // count
    split = out.size % per_block == 0  # then the words of a block belong to neighbours
    loops = Loops((out.size // per_block, per_block) if split else (out.size,))
    element = loops.axes[0]
    block = element if split else expressions.apply("floor_divide", element, per_block)
    words = _block(loops, key, block, start, wide=dt.uint64 in backend.dtypes)
    place = loops.axes[1] if split else expressions.apply("remainder", element, per_block)
    taken = words[-count:]
    for at in reversed(range(per_block - 1)):
        own = words[at * count : (at + 1) * count]
        taken = [expressions.where(place <= at, a, b) for a, b in zip(own, taken, strict=True)]
    return loops, taken


def _joined(lower: Expression, upper: Expression) -> Expression:
    return (expressions.cast(upper, dt.uint64) << 32) | expressions.cast(lower, dt.uint64)


@forms.form(specs.RANDOM_BITS)
def random_bits(key: Operand, *, start: int, backend: Backend, out: TensorType) -> Form:
    """Return the words themselves."""
    loops, (word,) = _draw(key, start, 1, out, backend)
    return loops.write(out, word)


@forms.form(specs.RANDOM_UNIFORM)
def random_uniform(key: Operand, *, start: int, backend: Backend, out: TensorType) -> Form:
    """Return as many leading bits as the dtype has digits."""
    if out.dtype is dt.float64:
        loops, (lower, upper) = _draw(key, start, 2, out, backend)
        number, digits = _joined(lower, upper) >> 11, 53
    else:
        loops, (word,) = _draw(key, start, 1, out, backend)
        digits = out.dtype.significand
        number = word >> (32 - digits)
    return loops.write(out, expressions.cast(number, out.dtype) * 2.0**-digits)


@forms.form(specs.RANDOM_INTEGERS)
def random_integers(
    key: Operand, span: Operand, *, start: int, backend: Backend, out: TensorType
) -> Form:
    """Return the leading half of a number of twice the bits, times the span; 0 is 2**bits."""
    loops, words = _draw(key, start, out.dtype.itemsize // 2, out, backend)
    number = loops.read_in_order(span, () if span.size == 1 else None)
    if out.dtype is dt.uint32:
        low, high = words
        wide = dt.uint64 in backend.dtypes
        upper, lower = _product(high, number, wide=wide)
        carried = lower + _product(low, number, wide=wide)[0] < lower
        scaled = upper + expressions.cast(carried, dt.uint32)
        return loops.write(out, expressions.where(number > 0, scaled, high))
    lower, upper = _joined(*words[:2]), _joined(*words[2:])
    below = upper * number
    carried = below + _upper_half(lower, number) < below
    scaled = _upper_half(upper, number) + expressions.cast(carried, dt.uint64)
    return loops.write(out, expressions.where(number > 0, scaled, upper))


def _upper_half(a: Expression, b: Expression) -> Expression:
    """Return the upper 64 bits of a product, in digits of 32 bits; no partial sum overflows."""
    digit = 2**32 - 1
    one = (a >> 32) * (b & digit) + ((a & digit) * (b & digit) >> 32)
    two = (a & digit) * (b >> 32) + (one & digit)
    return (a >> 32) * (b >> 32) + (one >> 32) + (two >> 32)
