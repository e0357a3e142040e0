"""Cases for assigning to a strided slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle.indexing import setting as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

# (case, shape of the tensor, shape of the value, attributes)
_SLICES: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ("block", (4, 5), (2, 3), {"begin": (1, 2), "end": (3, 5)}),
    ("all", (3, 2), (3, 2), {"begin": (0, 0), "end": (3, 2)}),
    ("nothing", (3, 2), (0, 2), {"begin": (2,), "end": (1,)}),
    ("strides", (7, 5), (3, 2), {"begin": (1, 0), "end": (7, 4), "strides": (2, 3)}),
    ("backwards", (5,), (5,), {"begin": (-1,), "end": (-9,), "strides": (-1,)}),
    ("backwards by 2", (6,), (2,), {"begin": (4,), "end": (0,), "strides": (-2,)}),
    ("row", (4, 3), (3,), {"begin": (2,), "end": (3,), "shrink_axis_mask": 1}),
    ("column", (4, 3), (4,), {"begin": (0, -1), "end": (0, 0), "begin_mask": 1, "end_mask": 1,
                              "shrink_axis_mask": 2}),
    ("new axis", (3,), (1, 2), {"begin": (0, 1), "end": (1, 3), "new_axis_mask": 1}),
    ("ellipsis", (2, 3, 4), (2, 3, 1), {"begin": (0, 2), "end": (0, 3), "ellipsis_mask": 1}),
    ("empty", (0, 3), (0, 1), {"begin": (0, 1), "end": (1, 2)}),
    ("rank 0", (), (), {"begin": (), "end": ()}),
    ("rank 6", (2, 1, 3, 2, 1, 2), (1, 1, 3, 2, 1, 1), {"begin": (1, 0, 0, 0, 0, 1),
                                                       "end": (2, 1, 3, 2, 1, 2)}),
    ("large", (LARGE, 2), (LARGE // 2, 1), {"begin": (1, 1), "end": (LARGE, 2),
                                           "strides": (2, 1)}),
)  # fmt: skip


@cases.of(specs.STRIDED_SLICE_UPDATE, oracle=oracle.strided_slice_update, signed_zero=True)
def strided_slice_update(corpus: Corpus) -> Iterator[Case]:
    """Steps in both directions, dropped and new axes, empty slices."""
    for name, shape, part, attributes in _SLICES:
        yield Case(name, (corpus.ordinary(shape), corpus.ordinary(part)), attributes)
    whole = {"begin": (1, 0), "end": (3, 5)}
    yield Case("one value", (corpus.ordinary((4, 5)), corpus.ordinary(())), whole)
    yield Case("a row for all", (corpus.ordinary((4, 5)), corpus.ordinary((5,))), whole)
    yield Case("a column for all", (corpus.ordinary((4, 5)), corpus.ordinary((2, 1))), whole)
    edges = corpus.edges()
    half = edges[: len(edges) // 2].copy()
    span = {"begin": (0,), "end": (2 * len(half),), "strides": (2,)}
    yield Case("edges", (edges, half), span)
    yield Case("edges around", (edges, half), {"begin": (1,), "end": (1 + len(half),)})
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((4, 5)), corpus.ordinary((2, 5)))
        yield Case(layout, inputs, {"begin": (1,), "end": (3,)}, layout=layout)


@cases.gradients(specs.STRIDED_SLICE_UPDATE, "tensor", "value")
def strided_slice_update_points(corpus: Corpus) -> Iterator[Case]:
    inputs = (corpus.ordinary((4, 3)), corpus.ordinary((2,)))
    how = {"begin": (3, 1), "end": (0, 2), "strides": (-2, 1), "shrink_axis_mask": 2}
    yield Case("steps back in a column", inputs, how)
    spread = (corpus.ordinary((4, 3)), corpus.ordinary((2, 1)))
    yield Case("a column for all", spread, {"begin": (1, 0), "end": (3, 3)})
    one = (corpus.ordinary((4, 3)), corpus.ordinary(()))
    yield Case("one value", one, {"begin": (1, 0), "end": (3, 3)})
    for name, shape, part, attributes in _SLICES[:-1]:
        yield Case(name, (corpus.ordinary(shape), corpus.ordinary(part)), attributes)
