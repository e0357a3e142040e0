"""Cases for matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle import matrix_products as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

_BOTH = {"transpose_a": True, "transpose_b": True}
# (case, shape of a, shape of b, attributes)
_PRODUCTS: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ("plain", (3, 4), (4, 5), {}),
    ("a transposed", (4, 3), (4, 5), {"transpose_a": True}),
    ("b transposed", (3, 4), (5, 4), {"transpose_b": True}),
    ("both transposed", (4, 3), (5, 4), _BOTH),
    ("square", (3, 3), (3, 3), {}),
    ("square, a transposed", (3, 3), (3, 3), {"transpose_a": True}),
    ("square, b transposed", (3, 3), (3, 3), {"transpose_b": True}),
    ("many rows, b transposed", (70, 4), (66, 4), {"transpose_b": True}),
    ("many columns, a transposed", (4, 70), (4, 66), {"transpose_a": True}),
    ("row by column", (1, 7), (7, 1), {}),
    ("column by row", (5, 1), (1, 3), {}),
    ("ones", (1, 1), (1, 1), {}),
    ("batch", (2, 3, 4), (2, 4, 2), {}),
    ("batch broadcast right", (2, 3, 4), (4, 2), {}),
    ("batch broadcast both", (2, 1, 3, 2), (3, 2, 4), {}),
    ("batch transposed", (2, 2, 3), (2, 4, 2), _BOTH),
    ("rank 6", (1, 2, 1, 2, 2, 3), (2, 1, 3, 1, 3, 2), {}),
    ("no inner", (3, 0), (0, 2), {}),
    ("no rows", (0, 3), (3, 2), {}),
    ("no batch", (0, 2, 3), (3, 2), {}),
    ("odd blocks", (17, 33), (33, 19), {}),
    ("large result", (257, 3), (3, 259), {}),
    ("long inner", (2, 1031), (1031, 3), {}),
    ("longer inner", (3, 4099), (4099, 2), {}),
    ("inner of 1", (17, 1), (1, 9), {}),
    *((f"inner of {inner}", (2, inner), (inner, 3), {}) for inner in range(66, 73)),
    ("many rows", (1009, 3), (3, 1), {}),
    ("many columns", (1, 3), (3, 1009), {}),
    ("many matrices", (65, 3, 2), (65, 2, 3), {}),
    ("many batches", (2, 67, 2, 3), (2, 67, 3, 2), {}),
    ("many by one", (129, 2, 3), (3, 4), {}),
    ("one by many", (2, 3), (129, 3, 4), {}),
    *(
        (
            f"{name}, {'a' * a}{'b' * b} transposed",
            (*lead_a, *((3, 2) if a else (2, 3))),
            (*lead_b, *((4, 3) if b else (3, 4))),
            {"transpose_a": a, "transpose_b": b},
        )
        for name, lead_a, lead_b in (
            ("left broadcast", (), (3,)),
            ("right broadcast", (3,), ()),
            ("broadcast both", (2, 1), (1, 3)),
            ("broadcast, axes apart", (1, 3, 1), (2, 1, 5)),
            ("many", (130,), (130,)),
            ("many broadcast", (65, 1), (1, 2)),
        )
        for a, b in ((True, False), (False, True), (True, True))
    ),
)


@cases.of(specs.BATCH_MAT_MUL, oracle=oracle.batch_mat_mul)
def batch_mat_mul(corpus: Corpus) -> Iterator[Case]:
    """Flags, broadcast batches, sizes that no block divides; integers wrap."""
    for name, a, b, attributes in _PRODUCTS:
        yield Case(
            name, (corpus.ordinary(a, -1.0, 1.0), corpus.ordinary(b, -1.0, 1.0)), attributes
        )
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((3, 4)), corpus.ordinary((4, 5)))
        yield Case(layout, inputs, layout=layout)
    yield Case("inner differs", (corpus.small((2, 3)), corpus.small((2, 3))), expected=ShapeError)
    if corpus.dtype in dt.INTEGER:  # float64 holds neither products nor sums
        edges = corpus.edges()
        yield Case("edges", (edges.reshape(1, -1), edges[::-1].reshape(-1, 1)))
        yield Case("edges by edges", (edges.reshape(-1, 1), edges.reshape(1, -1)))
    if corpus.dtype in (dt.int64, dt.uint64):
        left = corpus.of([[2**53 + 1, 1], [3, 2**55 + 1]])
        yield Case("beyond 2**53", (left, corpus.of([[1, 3], [2, 5]])))
    if corpus.floating:
        left = corpus.of([[1.0, np.inf], [np.nan, 1.0], [0.0, 2.0]])
        yield Case("specials", (left, corpus.of([[2.0, 1.0], [3.0, 1.0]])))


@cases.gradients(specs.BATCH_MAT_MUL, "a", "b")
def products(corpus: Corpus) -> Iterator[Case]:
    """Broadcast batches too: their gradients are summed back."""
    for name, a, b, attributes in (
        ("plain", (2, 3), (3, 2), {}),
        ("a transposed", (3, 2), (3, 2), {"transpose_a": True}),
        ("b transposed", (2, 3), (2, 3), {"transpose_b": True}),
        ("both transposed", (3, 2), (2, 3), _BOTH),
        ("batch broadcast", (2, 2, 1), (1, 2), {}),
        ("batch broadcast both", (2, 1, 1, 2), (2, 2, 1), {}),
        ("a broadcast", (1, 2), (2, 2, 1), {"transpose_a": False, "transpose_b": False}),
        ("a broadcast, both transposed", (2, 1), (2, 3, 2), _BOTH),
        ("nothing inside", (2, 0), (0, 3), {}),
        ("no batch", (0, 2, 2), (2, 2), {}),
        ("no rows", (0, 2), (2, 1), {}),
    ):
        yield Case(
            name, (corpus.ordinary(a, -1.0, 1.0), corpus.ordinary(b, -1.0, 1.0)), attributes
        )
