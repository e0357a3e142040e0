"""Cases for products of quantized matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import ArgumentError, DTypeError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.cases.quantization import without_offset, zero_points
from tensorplug_conformance.oracle import quantization as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shape = tuple[int, ...]
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
_WEIGHTS: tuple[tuple[str, Shape, Shape, Shape | None], ...] = (  # a; b, transposed; its scale
    ("one row", (1, 64), (5, 64), (5, 2)),
    ("two rows", (2, 96), (33, 96), (33, 1)),
    ("eight rows", (8, 64), (7, 64), ()),
    ("nine rows", (9, 32), (4, 32), (1, 32)),
    ("blocks of 4", (3, 12), (5, 12), (5, 3)),
    ("blocks both ways", (2, 8), (6, 8), (3, 2)),
    ("no scale", (2, 8), (3, 8), None),
    ("batch", (2, 3, 8), (2, 5, 8), (2, 1, 2)),
    ("broadcast", (2, 1, 1, 8), (3, 4, 8), (4, 1)),
    ("one of batch", (4, 1, 8), (3, 8), (3, 2)),
    ("no inner", (2, 0), (3, 0), ()),
    ("no rows", (0, 8), (3, 8), (3, 1)),
    ("many terms", (2, 4128), (3, 4128), (3, 129)),
    ("many columns", (1, 64), (1003, 64), (1003, 2)),
)
_PACKED = ("int4", "uint4", "int2", "uint2")
_SHORT = (("int4", "int4"), ("uint4", "int8"), ("int2", "uint2"))


def _factor(shape: Shape, dtype: str, seed: int) -> Array:
    """Return integers over the whole range; the first two are the limits."""
    about = dt.of(dtype)
    numbers = np.random.default_rng(seed).integers(about.min, about.max + 1, shape)
    numbers.reshape(-1)[:2] = [about.min, about.max][: numbers.size]
    return numbers.astype(about.numpy)


def _factors(a: Shape, b: Shape, types: tuple[str, str]) -> tuple[Array, Array]:
    return _factor(a, types[0], 1), _factor(b, types[1], 2)


@cases.of(
    specs.QUANTIZED_MAT_MUL,
    oracle=oracle.matmul,
    ordinary=("a", "b", "a_scale", "b_scale", "b_offset"),
)
@without_offset(7)
def quantized_mat_mul(corpus: Corpus) -> Iterator[Case]:
    """Every pair of dtypes, scales of every shape, zero points, sums beyond float32."""

    def scale(shape: Shape | None) -> Array | None:
        return None if shape is None else corpus.ordinary(shape, 2.0**-9, 2.0**-7)

    for number, (name, a, b, of_a, of_b) in enumerate(_PRODUCTS):
        types = _TYPES[number % len(_TYPES)]
        scales = scale(of_a), scale(of_b)
        yield Case(name, (*_factors(a, b, types), *scales, None, None))
        offsets = [
            None if of is None else zero_points(of, dtype)
            for of, dtype in zip((of_a, of_b), types, strict=True)
        ]
        yield Case(f"{name}, zero points", (*_factors(a, b, types), *scales, *offsets))
        if of_b is not None:
            offset = corpus.ordinary(of_b)
            yield Case(f"{name}, offsets", (*_factors(a, b, types), *scales, None, None, offset))
    for types in (*_TYPES, *_SHORT):
        who = " times ".join(types)
        factors = _factors((3, 5), (5, 4), types)
        yield Case(f"{who}", (*factors, None, None, None, None))
        offsets = [zero_points(of, dtype) for of, dtype in zip(((3, 1), (4,)), types, strict=True)]
        yield Case(f"{who}, zero points", (*factors, None, None, *offsets))
        extremes = tuple(
            np.full(s, dt.of(t).min or dt.of(t).max).astype(dt.of(t).numpy)
            for s, t in zip(((2, 2049), (2049, 3)), types, strict=True)
        )
        yield Case(f"{who}, large sums", (*extremes, None, None, None, None))
    yield from _floats(corpus)
    yield from _weights(corpus)
    yield from _packed(corpus)
    yield from _few_rows(corpus)
    yield from _offsets(corpus)
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


def _bytes(shape: Shape, seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def _weights(corpus: Corpus) -> Iterator[Case]:
    """Yield floats times quantized weights, transposed or not."""
    for number, (name, a, of, of_b) in enumerate(_WEIGHTS):
        x, dtype = corpus.ordinary(a), ("int8", "uint8")[number % 2]
        scale = None if of_b is None else corpus.ordinary(of_b, 0.5, 2.0)
        b = _factor(of, dtype, 2)
        yield Case(f"weights, {name}", (x, b, None, scale, None, None), {"transpose_b": True})
        offset = zero_points((1, of[-2]), dtype)
        plain = scale.mT.copy() if scale is not None and scale.ndim > 1 else scale
        turned = (x, b.mT.copy(), None, plain, None, offset)
        yield Case(f"weights, {name}, zero points, not transposed", turned)
        for packed in _PACKED:
            inner = of[-1] * dt.of(packed).bits
            if not inner % 8:
                held = _bytes((*of[:-1], inner // 8), 4)
                attributes = {"transpose_b": True, "b_packed": packed}
                what = f"weights, {name}, packed {packed}"
                yield Case(what, (x, held, None, scale, None, None), attributes)
    for layout in ("transposed", "sliced"):
        inputs = (
            corpus.ordinary((2, 64)),
            _factor((8, 64), "int8", 2),
            *(None, corpus.ordinary((8, 2), 0.5, 2.0), None, None),
        )
        yield Case(f"weights, {layout}", inputs, {"transpose_b": True}, layout=layout)


def _packed(corpus: Corpus) -> Iterator[Case]:
    """Yield floats and integers times packed numbers."""
    x, scale = corpus.ordinary((2, 64)), corpus.ordinary((8, 2), 0.5, 2.0)
    q, of_x = _factor((2, 64), "int8", 1), corpus.ordinary((2, 2), 2.0**-9, 2.0**-7)
    for packed in _PACKED:
        size = dt.of(packed).bits * 8
        b, offset = _bytes((8, size), 5), zero_points((8, 2), packed)
        offsets = zero_points((), "int8"), offset
        turned = {"transpose_b": True, "b_packed": packed}
        for name, inputs in (
            (f"packed {packed}, zero points", (x, b, None, scale, None, offset)),
            (f"int8 times packed {packed}", (q, b, of_x, scale, None, None)),
            (f"int8 times packed {packed}, zero points", (q, b, of_x, scale, *offsets)),
            (f"quantized times packed {packed}", (x, b, of_x, scale, None, None)),
            (f"int8 times packed {packed}, no scales", (q, b, None, None, None, None)),
        ):
            yield Case(name, inputs, turned)
        across = (x, _bytes((64, size // 8), 5), None, scale.T.copy(), None, None)
        yield Case(f"packed {packed}, not transposed", across, {"b_packed": packed})


def _few_rows(corpus: Corpus) -> Iterator[Case]:
    """Yield integers times transposed integers."""
    for rows in (1, 2, 8):
        a, b = _factors((rows, 96), (70, 96), _TYPES[0])
        for name, count in (("rows", 1), ("blocks", 3)):
            of_a, of_b = (corpus.ordinary((of, count), 2.0**-9, 2.0**-7) for of in (rows, 70))
            inputs = (a, b, of_a, of_b, None, None)
            yield Case(f"transposed, {rows} rows, scales of {name}", inputs, {"transpose_b": True})
        whole = (a, b, None, None, None, None)
        yield Case(f"transposed, {rows} rows", whole, {"transpose_b": True})


def _offsets(corpus: Corpus) -> Iterator[Case]:
    """Yield floats and integers times weights whose blocks have offsets."""
    for name, a, shape, of_b in _WEIGHTS:
        if of_b is not None:
            x, (scale, offset) = corpus.ordinary(a), _scales(corpus, of_b)
            given = (x, _factor(shape, "int8", 2), None, scale, None, None, offset)
            yield Case(f"offsets, {name}", given, {"transpose_b": True})
    for rows in (2, 9):
        x, q = corpus.ordinary((rows, 64)), _factor((rows, 64), "int8", 1)
        of_x = corpus.ordinary((rows, 2), 2.0**-9, 2.0**-7)
        scale, offset = _scales(corpus, (21, 2))
        for packed in _PACKED:
            b, point = _bytes((21, dt.of(packed).bits * 8), 5), zero_points((21, 1), packed)
            calls: tuple[tuple[str, tuple[Array | None, ...]], ...] = (
                ("", (x, b, None, scale, None, None, offset)),
                (", zero points", (x, b, None, scale, None, point, offset)),
                (", int8", (q, b, of_x, scale, None, None, offset)),
                (", quantized", (x, b, of_x, scale, np.array(3, "int8"), None, offset)),
            )
            for what, inputs in calls:
                attributes = {"transpose_b": True, "b_packed": packed}
                yield Case(f"offsets, {rows} rows, packed {packed}{what}", inputs, attributes)
        plain = (x, _factor((64, 21), "uint8", 2), None, scale.T.copy(), None, None)
        yield Case(f"offsets, {rows} rows, not transposed", (*plain, offset.T.copy()))


def _scales(corpus: Corpus, shape: Shape) -> tuple[Array, Array]:
    """Return scales and offsets of both signs."""
    return corpus.ordinary(shape, 0.5, 2.0), corpus.ordinary(shape, -20.0, 20.0)


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
    plain = (a, corpus.ordinary((4, 5)), one, *nothing)
    yield Case("floats without scale", plain, expected=ArgumentError)
    offset = np.array(0, "int8")
    yield Case(
        "zero point without scale",
        (corpus.of(a), b, None, one, offset, None),
        expected=ArgumentError,
    )
    for name, inputs, error in (
        ("offset without scale", (a, b, one, *nothing, one), ShapeError),
        ("offset of other blocks", (a, b, None, one, None, None, corpus.of([1, 1])), ShapeError),
        ("floats with offset", (*plain[:2], one, one, None, None, one), ArgumentError),
    ):
        yield Case(name, inputs, expected=error)
    for name, attributes, expected in (
        ("packed bytes", {"b_packed": "int8"}, DTypeError),
        ("packed in int8", {"b_packed": "int4"}, DTypeError),
        ("inner sizes, transposed", {"transpose_b": True}, ShapeError),
    ):
        yield Case(name, (a, b, one, *nothing), attributes, expected=expected)
    wrong = np.array(0, "uint8")
    yield Case("another zero point", (a, b, one, None, wrong, None), expected=DTypeError)
    integers = {"dtype": "int32"}
    yield Case("scaled into integers", (a, b, one, *nothing), integers, expected=DTypeError)
    floats = {"dtype": "float32"}
    yield Case("floats of no scale", (a, b, None, *nothing), floats, expected=DTypeError)


# Gradients -------------------------------------------------------------------------------


@cases.gradients(specs.QUANTIZED_MAT_MUL, "a_scale", "b_scale", "b_offset")
@without_offset(7)
def quantized_mat_mul_points(corpus: Corpus) -> Iterator[Case]:
    """Integers, whose product is linear in each scale; floats go straight through elsewhere."""
    for name, a, b, of_a, of_b in _PRODUCTS:
        if max(a) < 20 and max(b) < 20:
            factors = [x // 16 for x in _factors(a, b, _TYPES[0])]
            scales = [None if of is None else corpus.ordinary(of, 0.5, 2.0) for of in (of_a, of_b)]
            yield Case(name, (*factors, *scales, None, None))
            if of_b is not None:
                offset = corpus.ordinary(of_b)
                yield Case(f"{name}, offsets", (*factors, *scales, None, None, offset))
    factors = [x // 16 for x in _factors((2, 4), (4, 3), _TYPES[1])]
    scales = [corpus.ordinary((2, 2), 0.5, 2.0), corpus.ordinary((3,), 0.5, 2.0)]
    offsets = np.array([[1], [9]], "uint8"), np.array(-3, "int8")
    yield Case("zero points", (*factors, *scales, *offsets))
    for packed in _PACKED:
        inputs = (
            _factor((2, 8), "int8", 1) // 16,
            _bytes((3, dt.of(packed).bits), 2),
            *(corpus.ordinary((rows, of), 0.5, 2.0) for rows, of in ((2, 1), (3, 2))),
            *(None, None),
        )
        attributes = {"transpose_b": True, "b_packed": packed}
        yield Case(f"packed {packed}", inputs, attributes)
        offset = corpus.ordinary((3, 2))
        yield Case(f"packed {packed}, offsets", (*inputs, offset), attributes)
