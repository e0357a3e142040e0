"""Cases for updates combined by place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.cases.indexing.indexing import BITS, OUTSIDE, bits_once, outside
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle.indexing import scattering as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

# (case, shape of the tensor, leading shape of the indices, their depth)
_PLACES: tuple[tuple[str, tuple[int, ...], tuple[int, ...], int], ...] = (
    ("elements", (5,), (4,), 1),
    ("collisions", (2,), (9,), 1),
    ("rows", (4, 3), (7,), 1),
    ("cells", (3, 4), (6,), 2),
    ("leading shape", (4, 2), (2, 3), 1),
    ("blocks", (2, 3, 2), (5,), 2),
    ("one index", (4, 3), (), 1),
    ("no updates", (3, 2), (0,), 1),
    ("empty rows", (3, 0), (2,), 1),
    ("whole", (2, 2), (3,), 0),
    ("rank 6", (2, 1, 2, 1, 2, 2), (4,), 5),
)


@cases.of(specs.TENSOR_SCATTER_REDUCE, oracle=oracle.tensor_scatter_reduce)
def tensor_scatter_reduce(corpus: Corpus) -> Iterator[Case]:
    """Each reduction, with and without the tensor's own elements."""
    complex_ = corpus.dtype in dt.COMPLEX
    for reduction in ("add", "multiply") if complex_ else ("add", "multiply", "max", "min"):
        for include_self in (True, False):
            how = {"reduction": reduction, "include_self": include_self}
            said = reduction if include_self else f"{reduction} of updates only"
            for name, shape, lead, depth in _PLACES:
                tensor = corpus.ordinary(shape)
                updates = corpus.ordinary((*lead, *shape[depth:]))
                inputs = (tensor, corpus.places(lead, shape[:depth], signed=True), updates)
                yield Case(f"{said}, {name}", inputs, how)
            ends = np.array([[-1], [0], [-1]], dtype=np.int32)
            inputs = (corpus.ordinary((3, 2)), ends, corpus.ordinary((3, 2)))
            yield Case(f"{said}, from the end", inputs, how)
            places = corpus.indices((5,), 3, signed=True)
            inputs = (corpus.ordinary((3,)), places, corpus.ordinary((5,)))
            yield Case(f"{said}, places of rank 1", inputs, how)
            edges = corpus.edges()
            some = np.arange(len(edges), dtype=np.int32)[::2, None].copy()
            one = np.ones(len(some), dtype=edges.dtype)
            yield Case(f"{said}, edges", (edges, some, one), how)
            for layout in ("transposed", "sliced"):
                rows = (corpus.ordinary((4, 2)), corpus.indices((3, 1), 4))
                yield Case(f"{said}, {layout}", (*rows, corpus.ordinary((3, 2))), how, layout)
        how = {"reduction": reduction}
        many = (
            corpus.ordinary((LARGE,)),
            corpus.indices((9, 1), LARGE, signed=True),
            corpus.ordinary((9,)),
        )
        yield Case(f"{reduction}, large tensor", many, how)
    for dtype in sorted(dtype.name for dtype in dt.INTEGER - {dt.int32}):
        inputs = (corpus.ordinary((3,)), corpus.indices((4, 1), 3, dtype), corpus.ordinary((4,)))
        yield Case(f"by {dtype}", inputs, {"reduction": "add"})
    inputs = (corpus.of([[0], [0], [0]]), OUTSIDE, corpus.of(BITS))
    yield outside(inputs, bits_once, reduction="add")
    if not complex_:
        edges = corpus.edges()
        same = np.zeros((len(edges), 1), dtype=np.int32)
        for reduction in ("max", "min"):
            inputs = (edges[:1].copy(), same, edges)
            yield Case(f"{reduction} of edges", inputs, {"reduction": reduction})
        large = (corpus.ordinary((7,)), corpus.indices((LARGE, 1), 7), corpus.ordinary((LARGE,)))
        yield Case("many updates", large, {"reduction": "max"})
    if corpus.floating:
        updates = corpus.of(np.where(np.arange(200) % 67 == 3, np.nan, np.arange(200)))
        places = np.arange(200, dtype=np.int32)[:, None] % 7
        for reduction in ("max", "min"):
            inputs = (corpus.ordinary((7,)), places, updates)
            yield Case(f"{reduction} of many, some NaN", inputs, {"reduction": reduction})


@cases.gradients(specs.TENSOR_SCATTER_REDUCE, "tensor", "updates")
def scatter_reduce_points(corpus: Corpus) -> Iterator[Case]:
    complex_ = corpus.dtype in dt.COMPLEX
    places = np.array([[1], [0], [-2], [1]], dtype=np.int32)
    cells = np.array([[0, 1], [1, 0], [0, 1]], dtype=np.int32)
    for reduction in ("add", "multiply") if complex_ else ("add", "multiply", "max", "min"):
        for include_self in (True, False):
            how = {"reduction": reduction, "include_self": include_self}
            said = reduction if include_self else f"{reduction} of updates only"
            inputs = (corpus.ordinary((3,)), places, corpus.ordinary((4,)))
            yield Case(f"{said}, elements", inputs, how)
            inputs = (corpus.ordinary((3, 2)), places, corpus.ordinary((4, 2)))
            yield Case(f"{said}, rows", inputs, how)
            inputs = (corpus.ordinary((2, 2)), cells, corpus.ordinary((3,)))
            yield Case(f"{said}, cells", inputs, how)
            inputs = (corpus.ordinary((3, 1, 2)), places, corpus.ordinary((4, 1, 2)))
            yield Case(f"{said}, blocks", inputs, how)
            flat = (corpus.ordinary((3,)), places[:, 0].copy(), corpus.ordinary((4,)))
            yield Case(f"{said}, places of rank 1", flat, how)
            nothing = (corpus.ordinary((3, 2)), places[:0], corpus.ordinary((0, 2)))
            yield Case(f"{said}, no updates", nothing, how)
            inside = (corpus.ordinary((3, 0)), places, corpus.ordinary((4, 0)))
            yield Case(f"{said}, nothing inside", inside, how)
    zeros = corpus.of([0, 0, 2, 3])
    same = np.zeros((4, 1), dtype=np.int32)
    yield Case("zeros", (corpus.of([3, 1]), same, zeros), {"reduction": "multiply"})
