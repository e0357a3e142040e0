"""Cases for quantization and products of quantized matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import ArgumentError, DTypeError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import quantization as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shape = tuple[int, ...]

_SCALES: tuple[tuple[str, Shape, Shape], ...] = (  # name, shape of x, shape of the scale
    ("one", (5, 7), ()),
    ("one of rank 2", (5, 7), (1, 1)),
    ("columns", (4, 6), (6,)),
    ("rows", (4, 6), (4, 1)),
    ("middle axis", (2, 3, 4), (3, 1)),
    ("each element", (2, 3), (2, 3)),
    ("blocks", (4, 6), (4, 2)),
    ("blocks of rows", (6, 4), (2, 4)),
    ("blocks both ways", (6, 8), (3, 2)),
    ("blocks of lower rank", (3, 8), (4,)),
    ("rank 5", (1, 2, 1, 4, 3), (2, 1, 2, 1)),
    ("rank 0", (), ()),
    ("empty", (0, 3), (3,)),
    ("empty blocks", (4, 0), (2, 0)),
)
_WRONG: tuple[tuple[str, Shape, Shape], ...] = (
    ("does not divide", (4, 6), (4, 4)),
    ("too many", (4, 3), (6,)),
    ("rank too high", (3,), (1, 3)),
    ("none", (4, 3), (0,)),
)
_DTYPES = ("int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2")


def _scale(corpus: Corpus, shape: Shape, dtype: str = "int8") -> Array:
    """Return scales for which some numbers between -4 and 4 do not fit."""
    reach = 4.0 / dt.of(dtype).max
    return corpus.ordinary(shape, 0.5 * reach, 1.25 * reach)


def _zero_points(shape: Shape, dtype: str) -> Array:
    about = dt.of(dtype)
    some = np.array([3, about.max, about.min, about.max // 2, 1])
    return np.asarray(np.resize(some, shape).astype(about.numpy))


def _to_integers(corpus: Corpus) -> Iterator[Case]:
    """Yield every dtype, scales of every shape, halves, numbers that do not fit."""
    for name, shape, of in _SCALES:
        yield Case(name, (corpus.ordinary(shape), _scale(corpus, of), None))
        zero_points = _zero_points(of, "uint8")
        inputs = (corpus.ordinary(shape), _scale(corpus, of, "uint8"), zero_points)
        yield Case(f"{name}, zero points", inputs)
    halves = corpus.of(np.arange(-4.5, 5.0, 0.5))
    for dtype in _DTYPES:
        attributes = {"dtype": dtype}
        yield Case(
            f"{dtype} halves", (halves * corpus.of(0.25), corpus.of(0.25), None), attributes
        )
        scale, offset = _scale(corpus, (), dtype), _zero_points((), dtype)
        yield Case(f"{dtype} edges", (corpus.edges(), scale, None), attributes)
        yield Case(f"{dtype} edges, zero point", (corpus.edges(), scale, offset), attributes)
        yield Case(f"{dtype} by zero point", (corpus.ordinary((9,)), scale, offset))
    yield Case(
        "zero points of one shape", (halves, _scale(corpus, ()), _zero_points((1,), "int8"))
    )
    yield Case("large", (corpus.ordinary((LARGE,)), _scale(corpus, ()), None))
    many = (corpus.ordinary((257, 260)), _scale(corpus, (257, 65)), _zero_points((257, 1), "int8"))
    yield Case("large blocks", many)
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((3, 6)), _scale(corpus, (3, 2)), _zero_points((3, 2), "int8"))
        yield Case(layout, inputs, layout=layout)
    for name, shape, of in _WRONG:
        wrong = (corpus.ordinary(shape), corpus.of(np.ones(of)), None)
        yield Case(name, wrong, expected=ShapeError)
    x, one = corpus.ordinary((2,)), corpus.of(1)
    for name in ("int32", "bool", "float32"):
        yield Case(f"to {name}", (x, one, None), {"dtype": name}, expected=DTypeError)
    other = (x, one, np.array(0, np.uint8))
    yield Case("another zero point", other, {"dtype": "int8"}, expected=DTypeError)


# What does not fit into the narrowest float may be scaled to a number that does, or may not.
cases.of(specs.QUANTIZE, oracle=oracle.quantize, ordinary=("scale",))(_to_integers)
cases.of(specs.FAKE_QUANTIZE, oracle=oracle.fake_quantize, ordinary=("scale",))(_to_integers)


@cases.of(specs.DEQUANTIZE, oracle=oracle.dequantize, dtypes=dt.FLOATING)
def dequantize(corpus: Corpus) -> Iterator[Case]:
    """Every dtype, scales of every shape."""
    for name, shape, of in _SCALES:
        x = _zero_points(shape, "int8")
        yield Case(name, (x, corpus.ordinary(of), None))
        inputs = (_zero_points(shape, "uint8"), corpus.ordinary(of), _zero_points(of, "uint8"))
        yield Case(f"{name}, zero points", inputs)
    for dtype in (*_DTYPES, "int32"):
        about = dt.of(dtype)
        x = np.array([about.min, about.max, 0, 1, about.max // 3]).astype(about.numpy)
        scale = corpus.of(0.75 * 2.0**-17 if about.bits > 8 else 0.75)
        yield Case(f"{dtype} edges", (x, scale, None))
        if dtype != "int32":
            yield Case(f"{dtype} edges, zero point", (x, scale, _zero_points((), dtype)))
    for wide in sorted(dtype.name for dtype in dt.FLOATING):
        x = np.arange(-128, 128).astype("int8")
        yield Case(f"into {wide}", (x, corpus.of(0.375), None), {"dtype": wide})
    yield Case("large", (_zero_points((LARGE,), "int8"), corpus.ordinary(()), None))
    for layout in ("transposed", "sliced"):
        plain = (_zero_points((3, 6), "int8"), corpus.ordinary((3, 2)), None)
        yield Case(layout, plain, layout=layout)
    for name, shape, of in _WRONG:
        x = np.zeros(shape, "int8")
        yield Case(name, (x, corpus.of(np.ones(of)), None), expected=ShapeError)
    x = np.zeros(2, "int8")
    wrong = (x, corpus.of(1), np.array(0, "uint8"))
    yield Case("another zero point", wrong, expected=DTypeError)
    yield Case("into integers", (x, corpus.of(1), None), {"dtype": "int32"}, expected=DTypeError)


# Products --------------------------------------------------------------------------------

_PRODUCTS: tuple[tuple[str, Shape, Shape, Shape | None, Shape | None], ...] = (
    ("one and one", (3, 4), (4, 5), (), ()),
    ("one scale", (3, 4), (4, 5), (), None),
    ("other scale", (3, 4), (4, 5), None, (1, 1)),
    ("rows and columns", (3, 4), (4, 5), (3, 1), (5,)),
    ("blocks of a", (3, 8), (8, 5), (3, 2), None),
    ("blocks of b", (3, 8), (8, 5), (3, 1), (4, 5)),
    ("blocks of both", (3, 12), (12, 5), (3, 4), (4, 5)),
    ("blocks for all rows", (3, 8), (8, 5), (1, 4), (4, 1)),
    ("blocks both ways", (4, 12), (12, 6), (2, 3), (3, 2)),
    ("each element", (2, 3), (3, 2), (2, 3), (3, 2)),
    ("batch", (2, 3, 4), (2, 4, 5), (2, 1, 1), (5,)),
    ("broadcast", (2, 1, 3, 8), (3, 8, 2), (3, 2), (3, 2, 1)),
    ("no inner", (3, 0), (0, 2), (), ()),
    ("no inner, no scales", (3, 0), (0, 2), (3, 0), (0, 2)),
    ("no rows", (0, 3), (3, 2), (), (2,)),
    ("many terms", (3, 1500), (1500, 2), (3, 1), (2,)),
    ("large", (67, 96), (96, 1001), (67, 3), (3, 1001)),
)
_TYPES = (("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8"))
_SHORT = (("int4", "int4"), ("uint4", "int8"), ("int2", "uint2"))


def _factor(shape: Shape, dtype: str, seed: int) -> Array:
    """Return integers over the whole range; the first two are the limits."""
    about = dt.of(dtype)
    numbers = np.random.default_rng(seed).integers(about.min, about.max + 1, shape)
    numbers.reshape(-1)[:2] = [about.min, about.max][: numbers.size]
    return numbers.astype(about.numpy)


def _factors(a: Shape, b: Shape, types: tuple[str, str]) -> tuple[Array, Array]:
    return _factor(a, types[0], 1), _factor(b, types[1], 2)


@cases.of(specs.QUANTIZED_MAT_MUL, oracle=oracle.matmul, ordinary=("a", "b", "a_scale", "b_scale"))
def quantized_mat_mul(corpus: Corpus) -> Iterator[Case]:
    """Every pair of dtypes, scales of every shape, zero points, sums beyond float32."""

    def scale(shape: Shape | None) -> Array | None:
        return None if shape is None else corpus.ordinary(shape, 2.0**-9, 2.0**-7)

    for number, (name, a, b, of_a, of_b) in enumerate(_PRODUCTS):
        types = _TYPES[number % len(_TYPES)]
        scales = scale(of_a), scale(of_b)
        yield Case(name, (*_factors(a, b, types), *scales, None, None))
        offsets = [
            None if of is None else _zero_points(of, dtype)
            for of, dtype in zip((of_a, of_b), types, strict=True)
        ]
        yield Case(f"{name}, zero points", (*_factors(a, b, types), *scales, *offsets))
    for types in (*_TYPES, *_SHORT):
        who = " times ".join(types)
        factors = _factors((3, 5), (5, 4), types)
        yield Case(f"{who}", (*factors, None, None, None, None))
        offsets = [
            _zero_points(of, dtype) for of, dtype in zip(((3, 1), (4,)), types, strict=True)
        ]
        yield Case(f"{who}, zero points", (*factors, None, None, *offsets))
        extremes = tuple(
            np.full(s, dt.of(t).min or dt.of(t).max).astype(dt.of(t).numpy)
            for s, t in zip(((2, 2049), (2049, 3)), types, strict=True)
        )
        yield Case(f"{who}, large sums", (*extremes, None, None, None, None))
    yield from _floats(corpus)
    for layout in ("transposed", "sliced"):
        inputs = (*_factors((3, 4), (4, 5), _TYPES[0]), scale((3, 2)), scale((2, 5)), None, None)
        yield Case(layout, inputs, layout=layout)
    yield from _refused(corpus)


def _floats(corpus: Corpus) -> Iterator[Case]:
    """Yield floats that are quantized on the way; powers of 2 as scales leave no doubt how."""
    of_a, of_b = corpus.of(0.0625), corpus.of(0.125)
    a, b = corpus.ordinary((3, 4), -12, 12), corpus.ordinary((4, 5))
    yield Case("floats", (a, b, of_a, of_b, None, None))
    offsets = np.array(9, "int8"), np.array(100, "uint8")
    yield Case("floats, zero points", (a, b, of_a, of_b, *offsets))
    yield Case("floats times integers", (a, _factor((4, 5), "uint8", 3), of_a, None, None, None))
    blocks = corpus.of([[0.25, 0.125]])
    yield Case("floats in blocks", (a, b, blocks, of_b, None, None))


def _refused(corpus: Corpus) -> Iterator[Case]:
    a, b = _factors((3, 4), (4, 5), _TYPES[0])
    one, nothing = corpus.of(1), (None, None, None)
    for name, shape in (("does not divide", (3, 3)), ("rank too high", (1, 1, 1))):
        ones = corpus.of(np.ones(shape))
        yield Case(name, (a, b, ones, *nothing), expected=ShapeError)
    blocks = corpus.of(np.ones((3, 2))), corpus.of(np.ones((4, 5)))
    yield Case("different blocks", (a, b, *blocks, None, None), expected=ShapeError)
    yield Case("inner sizes", (a, b[:3], one, *nothing), expected=ShapeError)
    yield Case("vector", (a[0], b, one, *nothing), expected=ShapeError)
    yield Case(
        "floats without scale",
        (one[None, None], b[:1], None, one, None, None),
        expected=ArgumentError,
    )
    wrong = np.array(0, "uint8")
    yield Case("another zero point", (a, b, one, None, wrong, None), expected=DTypeError)
    integers = {"dtype": "int32"}
    yield Case("scaled into integers", (a, b, one, *nothing), integers, expected=DTypeError)
    floats = {"dtype": "float32"}
    yield Case("floats of no scale", (a, b, None, *nothing), floats, expected=DTypeError)


# Gradients -------------------------------------------------------------------------------


@cases.gradients(specs.DEQUANTIZE, "scale")
def dequantize_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape, of in _SCALES:
        x, offsets = np.resize([3, -7, 12, 5], shape).astype("int8"), _zero_points(of, "int8") // 9
        yield Case(name, (x, corpus.ordinary(of, 0.5, 2.0), None))
        yield Case(f"{name}, zero points", (x, corpus.ordinary(of, 0.5, 2.0), offsets))
    for layout in ("transposed", "sliced"):
        x = np.resize([3, -7, 12, 5], (3, 6)).astype("int8")
        yield Case(layout, (x, corpus.ordinary((3, 2), 0.5, 2.0), None), layout=layout)
    yield Case("int32", (np.array([70, -40], "int32"), corpus.of(0.75), None))


def _slopes(x: Array, scale: Array, offset: Array | None) -> tuple[Array, Array]:
    """Return the slopes in each element and in the scale of each, by Python's own rounding."""
    limits = (-128, 127) if offset is None or offset.dtype == np.int8 else (0, 255)
    zero_points = oracle.blocks(np.zeros((), int) if offset is None else offset, x.shape)
    in_x, in_scale = np.zeros(x.shape), np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        quotient = float(x[at]) / float(oracle.blocks(scale, x.shape)[at])
        zero_point = int(zero_points[at])
        number = round(quotient) + zero_point
        fits = limits[0] <= number <= limits[1]
        in_x[at] = fits
        limit = min(max(number, limits[0]), limits[1])
        in_scale[at] = round(quotient) - quotient if fits else limit - zero_point
    return in_x, in_scale


def _block_sums(x: Array, scale: Array) -> Array:
    """Return the sums over blocks, one cell of the scale at a time."""
    result = np.zeros(scale.shape)
    for at in np.ndindex(scale.shape):
        one = np.zeros(scale.shape, bool)
        one[at] = True
        result[at] = x[oracle.blocks(one, x.shape)].sum()
    return result


@cases.gradients(specs.FAKE_QUANTIZE, "x", "scale")
def fake_quantize_points(corpus: Corpus) -> Iterator[Case]:
    """Numbers that fit, some that do not, halves; sixteenths of scales are exact in any float."""
    sixteenths = np.array([5, -13, 40, 8, -24, 3, 2100, 19, -2200, 31, 1, -6])
    for name, shape, of in _SCALES:
        for offset in (None, _zero_points(of, "int8") // 9, _zero_points(of, "uint8")):
            scale = corpus.of(np.resize([0.5, 0.25, 1.0], of))
            x = corpus.of(np.resize(sixteenths, shape) / 16 * oracle.blocks(scale, shape))
            in_x, in_scale = _slopes(x, scale, offset)
            expected = corpus.of(in_x), corpus.of(_block_sums(in_scale, scale))
            what = "" if offset is None else f", {offset.dtype} zero points"
            yield Case(f"{name}{what}", (x, scale, offset), expected=expected)


@cases.gradients(specs.QUANTIZED_MAT_MUL, "a_scale", "b_scale")
def quantized_mat_mul_points(corpus: Corpus) -> Iterator[Case]:
    """Integers, whose product is linear in each scale; floats go straight through elsewhere."""
    for name, a, b, of_a, of_b in _PRODUCTS:
        if max(a) < 20 and max(b) < 20:
            factors = [x // 16 for x in _factors(a, b, _TYPES[0])]
            scales = [None if of is None else corpus.ordinary(of, 0.5, 2.0) for of in (of_a, of_b)]
            yield Case(name, (*factors, *scales, None, None))
    factors = [x // 16 for x in _factors((2, 4), (4, 3), _TYPES[1])]
    scales = [corpus.ordinary((2, 2), 0.5, 2.0), corpus.ordinary((3,), 0.5, 2.0)]
    offsets = np.array([[1], [9]], "uint8"), np.array(-3, "int8")
    yield Case("zero points", (*factors, *scales, *offsets))
