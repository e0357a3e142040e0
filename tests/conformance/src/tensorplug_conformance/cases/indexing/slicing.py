"""Cases for parts of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.algorithms import selection
from tensorplug.plugin import ArgumentError, ShapeError, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle.indexing import slicing as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants.patterns import Rows, points, shaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

UNPACK: Rows = (
    ("first axis", (3, 2), {}),
    ("last axis", (2, 3), {"axis": -1}),
    ("middle axis", (2, 3, 4), {"axis": 1}),
    ("one part", (1, 3), {}),
    ("to rank 0", (5,), {}),
    ("no part", (0, 3), {}),
    ("empty parts", (2, 0), {}),
    ("rank 6", (1, 2, 1, 2, 3, 2), {"axis": 3}),
    ("many parts", (2, 3, 33, 2), {"axis": 2}),
    ("large", (2, LARGE), {}),
    ("transposed", (3, 4), {"axis": 1}),
    ("sliced", (3, 4), {}),
)
SPLIT: Rows = (
    ("equal", (4, 3), {"num_or_size_splits": 2}),
    ("last axis", (2, 6), {"num_or_size_splits": 3, "axis": -1}),
    ("sizes", (6, 2), {"num_or_size_splits": (1, 3, 2)}),
    ("rest", (2, 7), {"num_or_size_splits": (2, -1, 1), "axis": 1}),
    ("rest of nothing", (3,), {"num_or_size_splits": (3, -1)}),
    ("empty part", (3, 2), {"num_or_size_splits": (0, 3)}),
    ("one part", (3, 2), {"num_or_size_splits": 1}),
    ("one size", (3, 2), {"num_or_size_splits": (3,)}),
    ("empty", (0, 2), {"num_or_size_splits": 2}),
    ("rank 6", (1, 2, 1, 4, 1, 2), {"num_or_size_splits": 2, "axis": 3}),
    ("many sizes", (2, 190), {"num_or_size_splits": tuple(range(20)), "axis": 1}),
    ("large", (LARGE + 1,), {"num_or_size_splits": (LARGE, 1)}),
    ("transposed", (3, 4), {"num_or_size_splits": 2, "axis": 1}),
    ("sliced", (4, 3), {"num_or_size_splits": (1, 3)}),
)


def _cut(begin: Any, end: Any, strides: Any = None, **masks: int) -> dict[str, Any]:
    return {"begin": begin, "end": end, "strides": strides, **masks}


STRIDED: Rows = (
    ("block", (4, 5), _cut((1, 2), (3, 4))),
    ("steps", (7, 5), _cut((0, 1), (7, 5), (3, 2))),
    ("backwards", (5,), _cut((4,), (0,), (-1,))),
    ("backwards to the first", (5,), _cut((4,), (-6,), (-2,))),
    ("long, backwards", (LARGE + 2,), _cut((-1,), (0,), (-1,), end_mask=1)),
    ("backwards by 3", (8, 2), _cut((7, 0), (1, 2), (-3, 1))),
    ("from the end", (6,), _cut((-4,), (-1,))),
    ("beyond both ends", (3, 4), _cut((-9, 2), (9, 99), (1, 1))),
    ("nothing", (4,), _cut((3,), (1,))),
    ("nothing backwards", (4,), _cut((1,), (3,), (-1,))),
    ("fewer entries", (3, 4, 2), _cut((1,), (3,))),
    ("no entry", (2, 3), _cut((), ())),
    ("begin mask", (4, 3), _cut((2, 1), (4, 3), begin_mask=1)),
    ("begin mask of the second", (4, 3), _cut((2, 1), (4, 3), begin_mask=2)),
    ("end mask", (4, 3), _cut((1, 1), (2, 2), end_mask=3)),
    ("both masks backwards", (5,), _cut((1,), (2,), (-2,), begin_mask=1, end_mask=1)),
    ("shrink", (3, 4), _cut((1, 0), (2, 4), shrink_axis_mask=1)),
    ("shrink to the last", (3, 4), _cut((-1, -2), (0, 0), shrink_axis_mask=3)),
    ("shrink and steps", (3, 5), _cut((0, 2), (3, 3), (2, 1), shrink_axis_mask=2)),
    ("new axes", (3, 2), _cut((0, 0, 0), (1, 2, 9), new_axis_mask=5)),
    ("ellipsis", (2, 3, 4), _cut((1, 9, 1), (2, 9, 3), ellipsis_mask=2)),
    ("ellipsis for nothing", (3, 2), _cut((1, 0, 0), (3, 0, 1), ellipsis_mask=2)),
    ("ellipsis first", (2, 3, 4), _cut((0, 0), (0, 4), (1, 2), ellipsis_mask=1)),
    (
        "all masks",
        (4, 3, 2, 5),
        _cut(
            (0, 1, 9, 0, 3),
            (9, 2, 9, 1, 0),
            (1, 1, 1, 1, -1),
            begin_mask=16,
            end_mask=17,
            ellipsis_mask=4,
            new_axis_mask=8,
            shrink_axis_mask=2,
        ),
    ),
    (
        "ellipsis goes before the others",
        (2, 3),
        _cut((0, 5), (1, 5), ellipsis_mask=2, new_axis_mask=2, shrink_axis_mask=2),
    ),
    ("new goes before shrink", (2, 3), _cut((7, 1), (0, 2), new_axis_mask=1, shrink_axis_mask=3)),
    ("rank 0", (), _cut((), ())),
    ("rank 0 with a new axis", (), _cut((0,), (1,), new_axis_mask=1)),
    ("rank 6", (2, 2, 3, 1, 2, 3), _cut((1, 0, 2), (2, 2, 0), (1, 1, -1), end_mask=4)),
    ("empty", (0, 3), _cut((0, 0), (5, 3), (1, 2))),
    ("large", (2 * LARGE,), _cut((1,), (2 * LARGE,), (2,))),
    ("transposed", (4, 5), _cut((3, 0), (0, 5), (-1, 2))),
    ("sliced", (4, 5), _cut((1, 4), (4, 0), (2, -3))),
)


@cases.of(specs.UNPACK, oracle=oracle.unpack, signed_zero=True)
def unpack(corpus: Corpus) -> Iterator[Case]:
    """Every axis, one part and none."""
    yield from shaped(UNPACK)(corpus)
    yield Case("edges", (corpus.edges()[None],))
    yield Case("rank 0", (corpus.ordinary(()),), expected=ShapeError)


@cases.of(specs.SPLIT_V, oracle=oracle.split, signed_zero=True)
def split(corpus: Corpus) -> Iterator[Case]:
    """Equal parts, given sizes, one that is the rest."""
    yield from shaped(SPLIT)(corpus)
    yield Case("edges", (corpus.edges(),), {"num_or_size_splits": (3, -1)})
    for name, splits in (
        ("unequal", 2),
        ("none", 0),
        ("too few", (1, 1)),
        ("too many", (3, 3)),
        ("two rests", (-1, -1, 1)),
    ):
        attributes = {"num_or_size_splits": splits}
        yield Case(name, (corpus.ordinary((5,)),), attributes, expected=ShapeError)


@cases.of(specs.STRIDED_SLICE, oracle=oracle.strided_slice, signed_zero=True)
def strided_slice(corpus: Corpus) -> Iterator[Case]:
    """Every mask, both directions, bounds beyond the axes."""
    yield from shaped(STRIDED)(corpus)
    yield Case("edges", (corpus.edges(),), _cut((-1,), (0,), (-1,), end_mask=1))
    for name, attributes, error in (
        ("stride 0", _cut((0,), (3,), (0,)), ArgumentError),
        ("unequal lengths", _cut((0, 0), (3,)), ShapeError),
        ("too many entries", _cut((0, 0, 0), (1, 1, 1)), ShapeError),
        ("two ellipses", _cut((0, 0), (1, 1), ellipsis_mask=3), ArgumentError),
        ("shrunk out of range", _cut((3,), (4,), shrink_axis_mask=1), ShapeError),
        ("shrunk backwards", _cut((1,), (0,), (-1,), shrink_axis_mask=1), ArgumentError),
    ):
        yield Case(name, (corpus.ordinary((3, 2)),), attributes, expected=error)


@cases.of(
    specs.STRIDED_SLICE_GRAD, oracle=oracle.strided_slice_grad, dtypes=sorted(dt.NUMERIC, key=str)
)
def strided_slice_grad(corpus: Corpus) -> Iterator[Case]:
    """The transpose of StridedSlice: elements are put back into zeros."""
    for name, shape, attributes in STRIDED:
        taken = selection(shape, _canonical(shape, attributes)).shape
        layout: Any = name if name in ("transposed", "sliced") else "dense"
        own = {"shape": shape, **attributes}
        yield Case(name, (corpus.ordinary(taken),), own, layout=layout)


def _canonical(shape: tuple[int, ...], attributes: dict[str, Any]) -> dict[str, Any]:
    return specs.STRIDED_SLICE.resolve([TensorType(dt.float32, shape)], attributes)[0]


# Gradients: these are linear, so ordinary values suffice.

cases.gradients(specs.UNPACK, "value")(points(tuple(row for row in UNPACK if row[0] != "no part")))
cases.gradients(specs.SPLIT_V, "x")(points(SPLIT))
cases.gradients(specs.STRIDED_SLICE, "x")(points(STRIDED))


@cases.gradients(specs.STRIDED_SLICE_GRAD, "dy")
def strided_slice_grad_points(corpus: Corpus) -> Iterator[Case]:
    for case in strided_slice_grad(corpus):
        if case.layout == "dense" and case.inputs[0].size <= 96:  # type: ignore[union-attr]  # an array
            yield case
