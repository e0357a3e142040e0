"""Cases for triangular systems."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import LinAlgError, ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.linalg import triangular as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shape = tuple[int, ...]
_FLAGS = ("lower", "adjoint", "unit_diagonal")
_FORMS = tuple(
    dict(zip(_FLAGS, chosen, strict=True)) for chosen in product((True, False), repeat=3)
)
_SHAPES: tuple[tuple[Shape, Shape], ...] = (
    ((3, 3), (3, 1)),
    ((3, 3), (3, 4)),
    ((1, 1), (1, 2)),
    ((2, 3, 3), (2, 3, 2)),
    ((3, 3), (2, 3, 2)),
    ((2, 1, 2, 2), (3, 2, 1)),
    ((2, 2), (1, 2, 1, 2, 1)),
    ((3, 3), (3, 0)),
    ((0, 0), (0, 2)),
    ((0, 3, 3), (3, 2)),
    ((17, 17), (17, 5)),
    ((70, 70), (70, 2)),
    ((7283, 3, 3), (3, 1)),  # more than 2**16 elements
)


def _named(*shapes: Shape) -> str:
    return "; ".join("x".join(map(str, shape)) for shape in shapes)


def _whole(corpus: Corpus, shape: Shape) -> Array:
    """Return matrices with a dominant diagonal, whose other triangle must not be read."""
    if not np.prod(shape):
        return corpus.ordinary(shape)
    eye = np.eye(shape[-1]) * (1 + shape[-1] / 2)
    return corpus.of(corpus.ordinary(shape, -1.0, 1.0) + eye)


def _scaled(corpus: Corpus, shape: Shape) -> Array:
    """Return the same with small elements outside the diagonal, so the diagonal may count as 1."""
    return corpus.of(_whole(corpus, shape) / max(shape[-1], 1))


def _describe(form: dict[str, bool]) -> str:
    return " ".join(flag for flag, chosen in form.items() if chosen) or "upper"


# Algorithms differ for matrices that are not finite.
@cases.of(
    specs.MATRIX_TRIANGULAR_SOLVE,
    oracle=oracle.matrix_triangular_solve,
    ordinary=("matrix", "rhs"),
)
def solve(corpus: Corpus) -> Iterator[Case]:
    """All forms of a system; one and several right-hand sides, none, broadcast batches."""
    for matrix, rhs in _SHAPES:
        inputs = (_whole(corpus, matrix), corpus.ordinary(rhs))
        yield Case(_named(matrix, rhs), inputs)
    for form in _FORMS:
        inputs = (_scaled(corpus, (2, 5, 5)), corpus.ordinary((5, 3)))
        yield Case(_describe(form), inputs, form)
    for size in (64, 65):
        inputs = (_scaled(corpus, (size, size)), corpus.ordinary((size, 2)))
        yield Case(f"upper, {size} rows", inputs, {"lower": False})
    for layout in ("transposed", "sliced"):
        inputs = (_whole(corpus, (3, 3)), corpus.ordinary((3, 2)))
        yield Case(layout, inputs, layout=layout)
    singular = corpus.of([[1, 0], [2, 0]])
    yield Case("singular", (singular, corpus.ordinary((2, 1))), expected=LinAlgError)
    unit = {"unit_diagonal": True}
    yield Case("a diagonal of 0 that is not read", (singular, corpus.ordinary((2, 1))), unit)
    for left, right in (
        ((3, 3), (2, 1)),
        ((2, 3), (2, 1)),
        ((3, 3), (3,)),
        ((2, 3, 3), (3, 3, 1)),
    ):
        wrong = (corpus.ordinary(left), corpus.ordinary(right))
        yield Case(f"wrong: {_named(left, right)}", wrong, expected=ShapeError)


@cases.gradients(specs.MATRIX_TRIANGULAR_SOLVE, "matrix", "rhs")
def solved(corpus: Corpus) -> Iterator[Case]:
    """All forms of a system, and broadcast batches."""
    for form in _FORMS:
        inputs = (_whole(corpus, (2, 2)), corpus.ordinary((2, 2)))
        yield Case(_describe(form), inputs, form)
    for matrix, rhs in (
        ((2, 2, 2), (2, 1)),
        ((2, 2), (3, 2, 1)),
        ((2, 1, 2, 2), (3, 2, 1)),
        ((1, 1), (1, 2)),
        ((0, 0), (0, 2)),
        ((2, 2), (0, 2, 1)),
    ):
        inputs = (_whole(corpus, matrix), corpus.ordinary(rhs))
        yield Case(_named(matrix, rhs), inputs)
