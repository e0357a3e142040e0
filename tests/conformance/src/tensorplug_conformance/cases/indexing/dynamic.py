"""Cases for windows whose place is data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import DTypeError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle.indexing import dynamic as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

# (case, shape of x, sizes, starts): with more than one row of starts, each is that of an example.
_WINDOWS: tuple[tuple[str, tuple[int, ...], tuple[int, ...], Any], ...] = (
    ("inside", (4, 5), (2, 3), [1, 2]),
    ("row", (4, 5), (1, 5), [2, 0]),
    ("column", (4, 5), (4, 1), [0, 4]),
    ("all", (3, 2), (3, 2), [0, 0]),
    ("all, moved", (3, 2), (3, 2), [7, -1]),
    ("beyond the ends", (4, 5), (2, 3), [3, 4]),
    ("far beyond the ends", (4, 5), (2, 3), [10**9, -(10**9)]),
    ("from the end", (4, 5), (1, 2), [-1, -4]),
    ("from the end, moved", (4, 5), (3, 2), [-1, -9]),
    ("no elements", (4, 5), (0, 3), [2, 1]),
    ("empty", (0, 3), (0, 2), [5, 1]),
    ("rank 0", (), (), []),
    ("rank 1", (7,), (3,), [3]),
    ("rank 6", (2, 1, 3, 2, 1, 2), (1, 1, 2, 2, 1, 1), [1, 0, 1, 0, 0, 1]),
    ("one for each example", (3, 4, 5), (2, 3), [[1, 2], [-1, 0], [9, 9]]),
    ("two batch axes", (2, 2, 5), (2,), [[[0], [3]], [[-1], [7]]]),
    ("batch without axes", (2, 3), (), np.zeros((2, 3, 0), np.int32)),
    ("empty batch", (0, 4), (2,), np.zeros((0, 1), np.int32)),
    ("large", (LARGE, 2), (LARGE // 2, 1), [LARGE // 3, 1]),
)


def _starts(starts: Any) -> Any:
    return np.asarray(starts, np.int32)


@cases.of(specs.DYNAMIC_SLICE, oracle=oracle.dynamic_slice, signed_zero=True)
def dynamic_slice(corpus: Corpus) -> Iterator[Case]:
    """Starts inside, beyond both ends and from the end, of one window and of each example's."""
    for name, shape, sizes, starts in _WINDOWS:
        yield Case(name, (corpus.ordinary(shape), _starts(starts)), {"sizes": sizes})
    edges = corpus.edges()
    yield Case("edges", (edges, _starts([1])), {"sizes": (len(edges) - 2,)})
    for dtype in sorted(dtype.name for dtype in dt.INTEGER - {dt.int32}):
        inputs = (corpus.ordinary((5, 300)), np.array([9, 120], dtype))
        yield Case(f"by {dtype}", inputs, {"sizes": (2, 7)})
    for dtype, far in (("int64", -(2**62)), ("uint32", 2**32 - 1), ("uint64", 2**64 - 1)):
        inputs = (corpus.ordinary((5,)), np.array([far], dtype))
        yield Case(f"far, by {dtype}", inputs, {"sizes": (2,)})
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((4, 5)), _starts([1, 2]))
        yield Case(layout, inputs, {"sizes": (2, 3)}, layout=layout)
    x = corpus.ordinary((3, 4))
    yield Case("too large", (x, _starts([0, 0])), {"sizes": (4, 1)}, expected=ShapeError)
    yield Case("too few starts", (x, _starts([0])), {"sizes": (1, 1)}, expected=ShapeError)
    yield Case("too few sizes", (x, _starts([0, 0])), {"sizes": (1,)}, expected=ShapeError)
    yield Case("one number", (x, _starts(0)), {"sizes": (1, 1)}, expected=ShapeError)
    floats = np.zeros((2,), np.float32)
    yield Case("fractions", (x, floats), {"sizes": (1, 1)}, expected=DTypeError)


@cases.gradients(specs.DYNAMIC_SLICE, "x")
def dynamic_slice_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape, sizes, starts in _WINDOWS[:-1]:
        yield Case(name, (corpus.ordinary(shape), _starts(starts)), {"sizes": sizes})


@cases.of(specs.DYNAMIC_UPDATE_SLICE, oracle=oracle.dynamic_update_slice, signed_zero=True)
def dynamic_update_slice(corpus: Corpus) -> Iterator[Case]:
    """The windows of ``dynamic_slice``, written."""
    for name, shape, sizes, starts in _WINDOWS:
        place = _starts(starts)
        part = (*shape[: place.ndim - 1], *sizes)
        yield Case(name, (corpus.ordinary(shape), corpus.ordinary(part), place))
    edges = corpus.edges()
    yield Case("edges", (edges, edges[2:].copy(), _starts([1])))
    for dtype in sorted(dtype.name for dtype in dt.INTEGER - {dt.int32}):
        inputs = (corpus.ordinary((5, 300)), corpus.ordinary((2, 7)), np.array([9, 120], dtype))
        yield Case(f"by {dtype}", inputs)
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((4, 5)), corpus.ordinary((2, 3)), _starts([1, 2]))
        yield Case(layout, inputs, layout=layout)
    x = corpus.ordinary((3, 4))
    for name, part, starts in (
        ("too large", (4, 1), [0, 0]),
        ("of another rank", (4,), [0, 0]),
        ("too few starts", (1, 1), [0]),
        ("of another batch", (2, 1), [[0], [0], [0]]),
    ):
        inputs = (x, corpus.ordinary(part), _starts(starts))
        yield Case(name, inputs, expected=ShapeError)


@cases.gradients(specs.DYNAMIC_UPDATE_SLICE, "x", "update")
def dynamic_update_slice_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape, sizes, starts in _WINDOWS[:-1]:
        place = _starts(starts)
        part = (*shape[: place.ndim - 1], *sizes)
        yield Case(name, (corpus.ordinary(shape), corpus.ordinary(part), place))
