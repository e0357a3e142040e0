"""Cases for diagonals, bands and triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle import diagonals as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants.patterns import Rows, points, shaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

DIAG: Rows = (
    ("vector", (3,), {}),
    ("one", (1,), {}),
    ("rank 0", (), {}),
    ("matrix", (2, 3), {}),
    ("rank 3", (2, 1, 2), {}),
    ("rank 5", (1, 2, 1, 1, 3), {}),
    ("empty", (0,), {}),
    ("empty matrix", (2, 0), {}),
    ("large", (257,), {}),
    ("transposed", (2, 3), {}),
    ("sliced", (2, 3), {}),
)
BANDS = (  # shape, lower, upper, dtype of both
    ((3, 3), 0, 0, "int32"),
    ((3, 4), 1, -1, "int32"),
    ((4, 3), -1, 1, "int64"),
    ((3, 3), -1, -1, "int8"),
    ((5, 4), 2, 1, "uint8"),
    ((3, 4), 99, 1, "int32"),
    ((3, 4), 0, 1 << 40, "int64"),
    ((2, 1, 2, 3), 0, 1, "int32"),
    ((1, 2, 1, 2, 3, 3), 1, 0, "int32"),
    ((0, 3), 0, 0, "int32"),
    ((2, 3, 0), 1, 1, "int32"),
    ((257, 259), 3, 5, "int32"),
)
TRIANGLE: Rows = (
    ("lower", (3, 3), {}),
    ("upper", (3, 3), {"upper": True}),
    *((f"lower {k}", (3, 4), {"k": k}) for k in (-9, -3, -1, 1, 3, 1 << 40)),
    *((f"upper {k}", (4, 3), {"upper": True, "k": k}) for k in (-9, -3, -1, 1, 3, 1 << 40)),
    ("stack", (2, 1, 2, 3), {"k": 1}),
    ("rank 6", (1, 2, 1, 1, 2, 3), {"upper": True}),
    ("row", (1, 4), {}),
    ("empty", (0, 3), {}),
    ("empty columns", (2, 3, 0), {"upper": True}),
    ("large", (257, 259), {"k": -1}),
    ("transposed", (3, 4), {}),
    ("sliced", (3, 4), {"upper": True}),
)


@cases.of(specs.DIAG, oracle=oracle.diag, signed_zero=True)
def diag(corpus: Corpus) -> Iterator[Case]:
    """Every rank; the other elements are zeros, and empty texts."""
    yield from shaped(DIAG)(corpus)
    yield Case("edges", (corpus.edges(),))


@cases.of(specs.MATRIX_BAND_PART, oracle=oracle.band, signed_zero=True)
def band(corpus: Corpus) -> Iterator[Case]:
    """Bands of every width, negative numbers for all, numbers beyond the matrix."""
    for shape, lower, upper, dtype in BANDS:
        counts = (np.array(lower, dtype), np.array(upper, dtype))
        yield Case(f"{shape}, {lower}, {upper}", (corpus.ordinary(shape), *counts))
    edges = corpus.edges()
    one = np.array(1, "int32")
    yield Case("edges", (np.stack([edges, edges, edges]), one, one))
    yield Case("edges in the band", (np.stack([edges] * len(edges)), one, one))
    yield Case("vector", (edges, one, one), expected=ShapeError)
    two = np.array([1, 2], "int32")
    yield Case("two numbers", (corpus.ordinary((2, 2)), two, one), expected=ShapeError)


@cases.of(specs.TRIANGLE, oracle=oracle.triangle, signed_zero=True)
def triangle(corpus: Corpus) -> Iterator[Case]:
    """Both halves, every diagonal."""
    yield from shaped(TRIANGLE)(corpus)
    edges = corpus.edges()
    yield Case("edges", (np.stack([edges, edges, edges]),))
    yield Case("edges on the diagonal", (np.stack([edges] * len(edges)),))
    yield Case("vector", (edges,), expected=ShapeError)


# Gradients: these are linear, so ordinary values suffice.

cases.gradients(specs.DIAG, "x")(points(DIAG))
cases.gradients(specs.TRIANGLE, "x")(points(TRIANGLE))


@cases.gradients(specs.MATRIX_BAND_PART, "input")
def band_points(corpus: Corpus) -> Iterator[Case]:
    for shape, lower, upper, dtype in BANDS:
        if np.prod(shape) <= 64:
            counts = (np.array(lower, dtype), np.array(upper, dtype))
            yield Case(f"{shape}, {lower}, {upper}", (corpus.ordinary(shape), *counts))
