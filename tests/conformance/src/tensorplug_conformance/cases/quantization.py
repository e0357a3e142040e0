"""Cases for quantization."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import DTypeError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import quantization as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

    Generate = Callable[[Corpus], Iterator[Case]]

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


def zero_points(shape: Shape, dtype: str) -> Array:
    """Return zero points of a shape, some at the limits."""
    about = dt.of(dtype)
    some = np.array([3, about.max, about.min, about.max // 2, 1])
    return np.asarray(np.resize(some, shape).astype(about.numpy))


def without_offset(count: int) -> Callable[[Generate], Generate]:
    """Give None to the last one of ``count`` inputs where a case does not name it."""

    def made(generate: Generate) -> Generate:
        def whole(corpus: Corpus) -> Iterator[Case]:
            for case in generate(corpus):
                yield replace(case, inputs=(*case.inputs, None)[:count])

        return whole

    return made


def _to_integers(corpus: Corpus) -> Iterator[Case]:
    """Yield every dtype, scales of every shape, halves, numbers that do not fit."""
    for name, shape, of in _SCALES:
        yield Case(name, (corpus.ordinary(shape), _scale(corpus, of), None))
        points = zero_points(of, "uint8")
        inputs = (corpus.ordinary(shape), _scale(corpus, of, "uint8"), points)
        yield Case(f"{name}, zero points", inputs)
    halves = corpus.of(np.arange(-4.5, 5.0, 0.5))
    for dtype in _DTYPES:
        attributes = {"dtype": dtype}
        yield Case(
            f"{dtype} halves", (halves * corpus.of(0.25), corpus.of(0.25), None), attributes
        )
        scale, offset = _scale(corpus, (), dtype), zero_points((), dtype)
        yield Case(f"{dtype} edges", (corpus.edges(), scale, None), attributes)
        yield Case(f"{dtype} edges, zero point", (corpus.edges(), scale, offset), attributes)
        yield Case(f"{dtype} by zero point", (corpus.ordinary((9,)), scale, offset))
    yield Case("zero points of one shape", (halves, _scale(corpus, ()), zero_points((1,), "int8")))
    yield Case("large", (corpus.ordinary((LARGE,)), _scale(corpus, ()), None))
    many = (corpus.ordinary((257, 260)), _scale(corpus, (257, 65)), zero_points((257, 1), "int8"))
    yield Case("large blocks", many)
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((3, 6)), _scale(corpus, (3, 2)), zero_points((3, 2), "int8"))
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


@cases.of(specs.DEQUANTIZE, oracle=oracle.dequantize, dtypes=dt.FLOATING, ordinary=("offset",))
@without_offset(4)
def dequantize(corpus: Corpus) -> Iterator[Case]:
    """Every dtype, scales of every shape."""
    for name, shape, of in _SCALES:
        x = zero_points(shape, "int8")
        yield Case(name, (x, corpus.ordinary(of), None))
        inputs = (zero_points(shape, "uint8"), corpus.ordinary(of), zero_points(of, "uint8"))
        yield Case(f"{name}, zero points", inputs)
        yield Case(f"{name}, offsets", (*inputs, corpus.ordinary(of)))
    for dtype in (*_DTYPES, "int32"):
        about = dt.of(dtype)
        x = np.array([about.min, about.max, 0, 1, about.max // 3]).astype(about.numpy)
        scale = corpus.of(0.75 * 2.0**-17 if about.bits > 8 else 0.75)
        yield Case(f"{dtype} edges", (x, scale, None))
        if dtype != "int32":
            yield Case(f"{dtype} edges, zero point", (x, scale, zero_points((), dtype)))
    for wide in sorted(dtype.name for dtype in dt.FLOATING):
        x = np.arange(-128, 128).astype("int8")
        yield Case(f"into {wide}", (x, corpus.of(0.375), None), {"dtype": wide})
    yield Case("large", (zero_points((LARGE,), "int8"), corpus.ordinary(()), None))
    for layout in ("transposed", "sliced"):
        plain = (zero_points((3, 6), "int8"), corpus.ordinary((3, 2)), None)
        yield Case(layout, plain, layout=layout)
    for name, shape, of in _WRONG:
        x = np.zeros(shape, "int8")
        yield Case(name, (x, corpus.of(np.ones(of)), None), expected=ShapeError)
    x = np.zeros(2, "int8")
    wrong = (x, corpus.of(1), np.array(0, "uint8"))
    yield Case("another zero point", wrong, expected=DTypeError)
    other = (x, corpus.of(1), None, corpus.of([1, 1]))
    yield Case("offset of another shape", other, expected=ShapeError)
    yield Case("into integers", (x, corpus.of(1), None), {"dtype": "int32"}, expected=DTypeError)


# Gradients -------------------------------------------------------------------------------


@cases.gradients(specs.DEQUANTIZE, "scale", "offset")
@without_offset(4)
def dequantize_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape, of in _SCALES:
        x, offsets = np.resize([3, -7, 12, 5], shape).astype("int8"), zero_points(of, "int8") // 9
        yield Case(name, (x, corpus.ordinary(of, 0.5, 2.0), None))
        inputs = (x, corpus.ordinary(of, 0.5, 2.0), offsets)
        yield Case(f"{name}, zero points", inputs)
        yield Case(f"{name}, offsets", (*inputs, corpus.ordinary(of)))
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
        for offset in (None, zero_points(of, "int8") // 9, zero_points(of, "uint8")):
            scale = corpus.of(np.resize([0.5, 0.25, 1.0], of))
            x = corpus.of(np.resize(sixteenths, shape) / 16 * oracle.blocks(scale, shape))
            in_x, in_scale = _slopes(x, scale, offset)
            expected = corpus.of(in_x), corpus.of(_block_sums(in_scale, scale))
            what = "" if offset is None else f", {offset.dtype} zero points"
            yield Case(f"{name}{what}", (x, scale, offset), expected=expected)
