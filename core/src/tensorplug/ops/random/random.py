"""Random numbers from explicit keys: the kernel specs, the keys, and bits.

A key is a tensor ``uint32[4]``: two words are the key of Philox4x32-10, two the upper half of its
counter. The lower half numbers the blocks of a draw; a block has four words. So element j of a
draw depends only on the key and on j, not on the shape, the order of calls, threads or the device
(docs/adr/0008). On a device without uint32 a key is ``int32[4]``, with the same bits. The
functions live in ``tensorplug.random``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, SupportsIndex

import numpy as np

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch import host_values
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops import creation, joining, reduction
from tensorplug.ops.elementwise import arithmetic
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.comparison import less
from tensorplug.ops.random import philox, words

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import DTypeLike, KeyLike, ShapeLike

__all__ = ["bits", "fold_in", "key", "split"]

KEY: Final = TensorType(dt.uint32, (4,))
# Draws have fewer than 2**63 blocks, so the blocks from there on make keys: from SPLIT on those of
# `split`, from FOLD on those of `fold_in`.
SPLIT: Final = 1 << 63
FOLD: Final = SPLIT | (1 << 62)
_LARGEST: Final = (1 << 64) - 1


def _read_start(value: Any, _types: InputTypes) -> int:
    number = shapes.index(value)
    if not 0 <= number <= _LARGEST:
        raise ArgumentError(f"must be in [0, 2**64), got {number}")
    return number


def _read_floating(value: Any, _types: InputTypes) -> DType:
    dtype = dt.of(value)
    if dtype not in dt.FLOATING:
        raise DTypeError(f"must be a floating dtype, got {dtype}")
    return dtype


def _check_key(key: TensorType) -> None:
    if key.shape != KEY.shape:
        raise ShapeError(f"a key is {KEY}, got {key}")


def _infer_random_bits(key: TensorType, *, shape: Shape) -> TensorType:
    _check_key(key)
    return TensorType(dt.uint32, shape)


def _infer_real(key: TensorType, *, shape: Shape, dtype: DType) -> TensorType:
    _check_key(key)
    return TensorType(dtype, shape)


def _infer_random_integers(key: TensorType, span: TensorType, *, shape: Shape) -> TensorType:
    _check_key(key)
    if span.shape not in ((), shape):
        raise ShapeError(f"span must have shape [] or {list(shape)}")
    return TensorType(span.dtype, shape)


def _read_seed(value: Any, _types: InputTypes) -> int:
    """Return an integer, or the bits of a fraction, which TensorFlow.js allows as a seed."""
    if isinstance(value, float | np.floating):
        exact = float(value)
        value = int(exact) if exact.is_integer() else int(np.float64(exact).view(np.uint64))
    return _read_start(value, _types)


def _infer_multinomial(logits: TensorType, *, num_samples: int) -> TensorType:
    if logits.rank not in (1, 2) or not logits.shape[-1]:
        raise ShapeError("logits must have rank 1 or 2, and a nonempty last axis")
    return TensorType(dt.kernel_int, (*logits.shape[:-1], num_samples))


# `start` numbers the first block.
_WHERE: Final = {
    "shape": attributes.shape(),
    "start": Attribute(_read_start, 0, "int in [0, 2**64)"),
}
_REAL: Final = {
    **_WHERE,
    "dtype": Attribute(_read_floating, dt.default_float, "DType, a floating one"),
}
_ACCEPTS: Final = {"key": frozenset({dt.uint32})}

# Element j is word j % 4 of block j // 4. Below, words are numbered through all blocks.
RANDOM_BITS = KernelSpec(
    "RandomBits",
    ("key",),
    _infer_random_bits,
    attributes=_WHERE,
    accepts=_ACCEPTS,
)

# In [0, 1). float32: the upper 24 bits of word j, over 2**24; likewise 11 bits for float16, and 8
# for bfloat16. float64: the upper 53 of 64 bits, over 2**53; of the words 2j and 2j + 1, the
# second is the upper half, here and below.
RANDOM_UNIFORM = KernelSpec(
    "RandomUniform",
    ("key",),
    _infer_real,
    attributes=_REAL,
    accepts=_ACCEPTS,
    typed_by="",
    exact=True,
)

# See `ops.box_muller`. Element j is made of word j; for float64, of the words 2j and 2j + 1.
# Narrow floats are rounded float32.
RANDOM_EXPONENTIAL = KernelSpec(
    "RandomExponential",
    ("key",),
    _infer_real,
    attributes=_REAL,
    accepts=_ACCEPTS,
    typed_by="",
)

# See `ops.box_muller`. The elements 2i and 2i + 1 are a pair: for float32, of the radius from
# word 2i and the angle from word 2i + 1; for float64, of the two halves of block i.
RANDOM_NORMAL = KernelSpec(
    "RandomNormal",
    ("key",),
    _infer_real,
    attributes=_REAL,
    accepts=_ACCEPTS,
    typed_by="",
)

# floor(w * span / 2**64), w the 64 bits of the words 2j and 2j + 1; a span of 0 stands for 2**32.
# With a span of 64 bits, floor(w * span / 2**128), w the 128 bits of block j; 0 stands for 2**64.
RANDOM_INTEGERS = KernelSpec(
    "RandomIntegers",
    ("key", "span"),
    _infer_random_integers,
    attributes=_WHERE,
    accepts={**_ACCEPTS, "span": frozenset({dt.uint32, dt.uint64})},
    typed_by="span",
)


# Element [b, j] is the least i with p[b, 0] + ... + p[b, i] > u[b, j] * (the sum of all p[b]),
# with p the logits if `normalized`, else their softmax. u is a draw of RandomUniform with the key
# of the seed, in float64 for float64 logits, else in float32.
MULTINOMIAL = KernelSpec(
    "Multinomial",
    ("logits",),
    _infer_multinomial,
    attributes={
        "num_samples": attributes.integer(at_least=0),
        "seed": Attribute(_read_seed, form="int in [0, 2**64)"),
        "normalized": attributes.flag(default=False),
    },
    accepts=dt.REAL,
    promote=("logits",),
    inexact=True,
)


# Keys -------------------------------------------------------------------------------------


def key(seed: SupportsIndex, /) -> Tensor:
    """Return the key of ``seed``.

    Args:
        seed: an integer in [0, 2**64), or an integer tensor of rank 0 (negative numbers count as
            their two's complement).

    Returns:
        A tensor ``uint32[4]``; ``int32[4]`` with the same bits if the device has no uint32. Use
        it once: for one draw, or for ``split`` or ``fold_in``.

    Raises:
        ArgumentError: ``seed`` is not an integer, or is out of range.
        DTypeError, ShapeError: it is a tensor of another dtype or rank.

    Source: JAX's random.key.

    Examples:
        >>> tp.random.key(42)
        Tensor([42,  0,  0,  0], dtype=uint32, device='cpu')
        >>> a, b = tp.random.split(tp.random.key(42))
        >>> tp.random.normal(a, (2, 3)).shape, tp.random.normal(b, (3,)).shape
        ((2, 3), (3,))

    """
    return _place_words(seed, "key: seed", 0)


def split(key: KeyLike, /, num: int = 2) -> Tensor:
    """Return ``num`` new keys, as the rows of a tensor ``[num,4]`` of the key's dtype.

    They are independent of each other and of draws from ``key``: ``a, b = split(key)``. The first
    rows do not depend on ``num``.

    Raises:
        ArgumentError: ``num`` is not an integer, or is negative; ``key`` is not a key.

    Source: JAX's random.split.

    Examples:
        >>> for_weights, for_data = tp.random.split(tp.random.key(0))
        >>> tp.random.split(tp.random.key(0), 10).shape
        (10, 4)
        >>> bool(tp.all(tp.random.split(tp.random.key(0), 10)[0] == for_weights))
        True

    """
    rows = shapes.index(num, "split: num")
    if rows < 0:
        raise ArgumentError(f"split: num must not be negative, got {rows}")
    return draw_words(as_key(key, "split"), (rows, 4), SPLIT)


def fold_in(key: KeyLike, data: SupportsIndex, /) -> Tensor:
    """Return a new key made from ``key`` and a number, such as a step or a layer number.

    Args:
        key: a key.
        data: an integer in [0, 2**64), or an integer tensor of rank 0 (negative numbers count as
            their two's complement). Different numbers give different keys.

    Raises:
        ArgumentError: ``data`` is not an integer, or is out of range; ``key`` is not a key.
        DTypeError, ShapeError: ``data`` is a tensor of another dtype or rank.

    Source: JAX's random.fold_in.

    Examples:
        >>> key = tp.random.key(0)
        >>> keys = [tp.random.fold_in(key, step) for step in range(4)]
        >>> [tp.random.integers(each, high=100).item() for each in keys]
        [9, 48, 54, 93]
        >>> tp.random.integers(tp.random.fold_in(key, 3), high=100).item()  # step 3 by itself
        93

    """
    parent = as_key(key, "fold_in")
    number = _place_words(data, "fold_in: data", 2)
    # First leave the counters that sister keys share, then go to the place of the number.
    inner = draw_words(parent, KEY.shape, FOLD)
    return draw_words(inner + number, KEY.shape, FOLD)


def fold_words(words: philox.Block, number: int) -> philox.Block:
    """Return the words of ``fold_in(key, number)`` for the key with these words."""
    low, high = halves(number, "fold_in: data")
    one, two, three, four = block_of(words, FOLD)
    moved = (one, two, (three + low) % 2**32, (four + high) % 2**32)
    return block_of(moved, FOLD)


def block_of(words: philox.Block, number: int) -> philox.Block:
    """Return the words of one block of the key with these words."""
    one, two, three, four = words
    return philox.block((number % 2**32, number >> 32, three, four), (one, two))


def of_words(words: philox.Block) -> Tensor:
    """Return the key with these words, on the current device."""
    return as_tensor(np.array(words, np.uint32).view(key_type().dtype.numpy))


def key_type(device: Any = None) -> TensorType:
    """Return the type of keys on a device, by default the current one."""
    if device is None:
        context = current_context()
        device = context.device or engine_of(context).open(None)
    return KEY if KEY.dtype in device.dtypes else TensorType(dt.int32, KEY.shape)


def draw_words(key: Tensor, shape: Shape, start: int = 0) -> Tensor:
    """Return random words of ``shape`` in the dtype of the key, from block ``start`` on."""
    if key.dtype is not KEY.dtype:
        return words.draw(key, shape=shape, start=start)
    drawn: Tensor = dispatch(RANDOM_BITS, key, shape=shape, start=start)
    return drawn


def as_key(key: Any, caller: str) -> Tensor:
    """Return ``key`` as a tensor on the current device; errors name ``caller``.

    Raises:
        ArgumentError, DTypeError, ShapeError: it is not a key.

    """
    how = "key must come from tensorplug.random.key(seed)"
    if host_values.is_scalar(key) or isinstance(key, np.generic):
        raise ArgumentError(f"{caller}: {how}, got the number {quoted(key)}")
    tensor = as_tensor(key, what=f"{caller}: key")
    allowed = key_type(tensor._placement.device)
    if tensor.dtype is not allowed.dtype:
        raise DTypeError(f"{caller}: {how} and be {allowed}, got {tensor.type}")
    if tensor.shape != allowed.shape:
        raise ShapeError(
            f"{caller}: {how} and be {allowed}, got {tensor.type}; pass one row of several keys"
        )
    return tensor


def halves(number: int, what: str) -> tuple[int, int]:
    """Return the lower and the upper 32 bits of an integer.

    ``number``: the integer; ``what``: names it in messages.

    Raises:
        ArgumentError: it is outside [0, 2**64).

    """
    if not 0 <= number <= _LARGEST:
        raise ArgumentError(f"{what} must be in [0, 2**64), got {number}")
    return number & 0xFFFFFFFF, number >> 32


def _place_words(value: Any, what: str, at: int) -> Tensor:
    """Return the 64 bits of an integer as words ``at`` and ``at`` + 1 of four; others are 0."""
    if hasattr(value, "_placement"):
        both = _split_words(value, what)
        rest = creation.zeros((2,), dtype=both.dtype)
        return joining.concat([rest, both] if at else [both, rest])
    low, high = halves(shapes.index(value, what), what)
    return of_words((0, 0, low, high) if at else (low, high, 0, 0))


def _split_words(number: Tensor, what: str) -> Tensor:
    if number.dtype not in dt.INTEGER:
        raise DTypeError(f"{what} must be an integer, got {number.type}")
    if number.shape:
        raise ShapeError(f"{what} must have rank 0, got {number.type}")
    word = key_type(number._placement.device).dtype
    if number.dtype.itemsize == 8:
        upper = astype(arithmetic.floor_divide(number, 1 << 32), word)
    else:
        upper = -astype(less(number, 0), word)  # the sign bit, 32 times
    return joining.stack([astype(number, word), upper])


def bits(key: KeyLike, shape: ShapeLike = (), dtype: DTypeLike = dt.uint32) -> Tensor:
    """Return random bits as uniformly distributed unsigned integers.

    Args:
        key: a key.
        shape: of the result.
        dtype: uint32; uint8 and uint16, which are its lower bits; or uint64, two words per
            element, the lower half first.

    Raises:
        ArgumentError, ShapeError, DTypeError: ``key`` is not a key, ``shape`` is not a
            shape, or ``dtype`` is not unsigned.

    Source: JAX's random.bits.

    Examples:
        >>> tp.random.bits(tp.random.key(0), (2,))
        Tensor([1713891541, 3781805453], dtype=uint32, device='cpu')
        >>> tp.random.bits(tp.random.key(0), (2,), tp.uint8)  # the lower bits
        Tensor([213, 141], dtype=uint8, device='cpu')

    """
    result_dtype = dt.of(dtype, "bits")
    if result_dtype not in dt.UNSIGNED:
        raise DTypeError(f"bits: dtype must be an unsigned integer dtype, got {result_dtype}")
    checked, sizes = as_key(key, "bits"), shapes.as_shape(shape, "bits: shape")
    if result_dtype is not dt.uint64:
        drawn = draw_words(checked, sizes)
        return drawn if result_dtype is drawn.dtype else astype(drawn, result_dtype)
    drawn = draw_words(checked, (*sizes, 2))
    weights = as_tensor(np.array([1, 1 << 32], np.uint64))
    return reduction.sum(words.widened(drawn, result_dtype) * weights, axis=-1)
