"""Cases for moving elements without computing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import movement as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns
from tensorplug_conformance.variants.patterns import Rows, points, shaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

cases.of(specs.IDENTITY, oracle=oracle.identity, signed_zero=True)(patterns.unary)

RESHAPE: Rows = (
    ("flatten", (3, 4), {"shape": (12,)}),
    ("unknown size", (2, 3, 4), {"shape": (4, -1)}),
    ("only unknown", (2, 3), {"shape": (-1,)}),
    ("to rank 6", (12,), {"shape": (1, 2, 1, 3, 2, 1)}),
    ("from rank 6", (1, 2, 1, 3, 2, 1), {"shape": (4, 3)}),
    ("to rank 0", (1, 1), {"shape": ()}),
    ("from rank 0", (), {"shape": (1, 1)}),
    ("empty", (0, 3), {"shape": (3, 0, 2)}),
    ("large", (LARGE,), {"shape": (1, LARGE)}),
    ("transposed", (3, 4), {"shape": (2, 6)}),
    ("sliced", (3, 4), {"shape": (6, 2)}),
)
EXPAND_DIMS: Rows = (
    ("front", (2, 3), {}),
    ("middle", (2, 3), {"dim": 1}),
    ("end", (2, 3), {"dim": -1}),
    ("negative", (2, 3), {"dim": -3}),
    ("rank 0", (), {"dim": 0}),
    ("rank 5", (1, 2, 1, 2, 3), {"dim": 3}),
    ("empty", (0, 2), {"dim": 1}),
    ("large", (LARGE,), {"dim": 1}),
    ("transposed", (3, 4), {"dim": 1}),
    ("sliced", (3, 4), {"dim": 0}),
)
TRANSPOSE: Rows = (
    ("matrix", (3, 4), {}),
    ("default of rank 3", (2, 3, 4), {}),
    ("cycle", (2, 3, 4), {"perm": (1, 2, 0)}),
    ("other cycle", (2, 3, 4), {"perm": (2, 0, 1)}),
    ("negative", (2, 3, 4), {"perm": (0, -1, 1)}),
    ("square", (4, 4), {}),  # the same type as in its own order
    *((f"cube {perm}", (3, 3, 3), {"perm": perm}) for perm in ((0, 2, 1), (1, 2, 0), (2, 0, 1))),
    ("identity", (2, 3), {"perm": (0, 1)}),
    ("rank 0", (), {}),
    ("rank 1", (5,), {}),
    ("rank 6", (1, 2, 3, 1, 2, 2), {"perm": (5, 2, 0, 4, 1, 3)}),
    ("empty", (0, 3), {}),
    ("rank 9", (2, 1, 3, 1, 2, 1, 2, 1, 2), {"perm": (8, 3, 6, 1, 4, 7, 2, 5, 0)}),
    ("rank 8", (2, 1, 3, 1, 2, 1, 2, 2), {"perm": (1, 0, 3, 2, 5, 4, 7, 6)}),
    ("matrices", (65, 9, 7), {"perm": (0, 2, 1)}),
    ("rows", (9, 65, 7), {"perm": (1, 0, 2)}),
    ("large", (257, 259), {}),
    ("transposed", (3, 4, 2), {"perm": (1, 0, 2)}),
    ("sliced", (3, 4), {}),
)
BROADCAST_TO: Rows = (
    ("new axes", (3,), {"shape": (2, 4, 3)}),
    ("stretched", (3, 1), {"shape": (3, 4)}),
    ("both", (1, 2, 1), {"shape": (2, 3, 2, 2)}),
    ("same", (2, 3), {"shape": (2, 3)}),
    ("from rank 0", (), {"shape": (2, 2)}),
    ("rank 0", (), {"shape": ()}),
    ("rank 6", (2, 1, 1, 3, 1), {"shape": (2, 2, 2, 1, 3, 2)}),
    ("axes apart", (1, 3, 1, 4), {"shape": (2, 3, 5, 4)}),
    ("other axes apart", (3, 1, 4, 1), {"shape": (2, 3, 5, 4, 2)}),
    ("first and last", (1, 3, 1), {"shape": (4, 3, 2)}),
    ("rank 9", (2, 1, 2, 1, 1, 2, 1, 3, 1), {"shape": (2, 2, 2, 1, 3, 2, 2, 3, 2)}),
    ("to empty", (1, 3), {"shape": (0, 3)}),
    ("empty", (0, 1), {"shape": (2, 0, 3)}),
    ("large", (1, 259), {"shape": (257, 259)}),
    ("transposed", (3, 1), {"shape": (2, 3, 4)}),
    ("sliced", (1, 3), {"shape": (4, 3)}),
)
SLICE: Rows = (
    ("middle", (7,), {"begin": (2,), "size": (3,)}),
    ("block", (4, 5), {"begin": (1, 2), "size": (2, 3)}),
    ("rest", (4, 5), {"begin": (1, 2), "size": (-1, -1)}),
    ("axis of 1", (3, 1), {"begin": (1, 0), "size": (2, 1)}),
    ("missing entries", (3, 4, 2), {"begin": (1,), "size": (2,)}),
    ("no size", (3, 4), {"begin": (1, 1)}),
    ("everything", (2, 3), {"begin": (0, 0), "size": (2, 3)}),
    ("nothing", (3, 4), {"begin": (1, 4), "size": (2, 0)}),
    ("empty", (0, 3), {"begin": (0, 1), "size": (0, 2)}),
    ("rank 0", (), {"begin": ()}),
    ("rank 6", (2, 2, 2, 2, 2, 3), {"begin": (1, 0, 1, 0, 1, 1), "size": (1, 2, 1, 2, 1, 2)}),
    ("rank 9", (2, 1, 3, 1, 2, 1, 2, 1, 3), {"begin": (1, 0, 1), "size": (1, 1, -1)}),
    *(
        (
            f"to the end in axes {axes}{', without a size' * rest}",
            (3, 4, 5),
            {
                "begin": tuple(2 if axis in axes else 1 for axis in range(3)),
                "size": tuple(
                    (-1 if rest else n - 2) if axis in axes else n - 2
                    for axis, n in enumerate((3, 4, 5))
                ),
            },
        )
        for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
        for rest in (False, True)
    ),
    ("large", (LARGE + 3,), {"begin": (2,), "size": (LARGE,)}),
    ("transposed", (4, 5), {"begin": (1, 1), "size": (2, 3)}),
    ("sliced", (4, 5), {"begin": (1, 1), "size": (2, 3)}),
)
PAD: Rows = (
    ("both ends", (3,), {"paddings": ((1, 2),), "constant_value": 1}),
    ("default value", (2, 3), {"paddings": ((1, 0), (0, 2))}),
    ("block", (2, 3), {"paddings": ((0, 1), (2, 1)), "constant_value": 1}),
    ("nothing", (2, 3), {"paddings": ((0, 0), (0, 0)), "constant_value": 1}),
    ("more than there is", (2, 3), {"paddings": ((3, 5), (7, 4)), "constant_value": 1}),
    ("empty", (0, 2), {"paddings": ((1, 1), (0, 1)), "constant_value": 1}),
    ("rank 0", (), {"paddings": ()}),
    ("rank 6", (1, 2, 1, 2, 1, 2), {"paddings": ((0, 1),) * 6, "constant_value": 1}),
    ("rank 9", (1, 2) * 4 + (2,), {"paddings": ((1, 0), (0, 0), (0, 1)) * 3, "constant_value": 1}),
    (
        "axes apart",
        (2, 3, 2, 3),
        {"paddings": ((1, 0), (0, 0), (0, 2), (0, 0)), "constant_value": 1},
    ),
    ("behind", (3, 4, 5), {"paddings": ((0, 1), (0, 2), (0, 3)), "constant_value": 1}),
    ("large", (LARGE,), {"paddings": ((3, 4),), "constant_value": 1}),
    ("transposed", (3, 2), {"paddings": ((1, 0), (0, 1)), "constant_value": 1}),
    ("sliced", (3, 2), {"paddings": ((1, 0), (0, 1)), "constant_value": 1}),
)

# More than 2**20 elements.
_HUGE: dict[str, Rows] = {
    "Transpose": (
        ("huge", (1031, 1033), {}),
        ("huge matrices", (67, 101, 157), {"perm": (0, 2, 1)}),
        ("huge cycle", (67, 101, 157), {"perm": (2, 0, 1)}),
    ),
    "BroadcastTo": (("huge", (1, 1033), {"shape": (1031, 1033)}),),
    "Slice": (("huge", (1031, 1033), {"begin": (3, 2), "size": (-1, 1030)}),),
    "Reshape": (("huge", (1031, 1033), {"shape": (1033, 1031)}),),
}

for spec, rows, reference in (
    (specs.RESHAPE, RESHAPE, oracle.reshape),
    (specs.EXPAND_DIMS, EXPAND_DIMS, oracle.expand_dims),
    (specs.TRANSPOSE, TRANSPOSE, oracle.transpose),
    (specs.BROADCAST_TO, BROADCAST_TO, oracle.broadcast_to),
    (specs.SLICE, SLICE, oracle.slice_),
):

    @cases.of(spec, oracle=reference, signed_zero=True)
    def moved(corpus: Corpus, spec: KernelSpec = spec, rows: Rows = rows) -> Iterator[Case]:
        """Shapes of every kind; every special value keeps its bits."""
        yield from shaped(rows)(corpus)
        edges = corpus.edges()
        n = len(edges)
        at_edges: dict[str, dict[str, Any]] = {
            "Reshape": {"shape": (1, n)},
            "ExpandDims": {"dim": 1},
            "Transpose": {"perm": (1, 0)},
            "BroadcastTo": {"shape": (2, n, 1)},
            "Slice": {"begin": (1, 0)},
        }
        yield Case("edges", (edges.reshape(n, 1),), at_edges[spec.name])
        if corpus.dtype is dt.float32:
            for name, shape, attributes in _HUGE.get(spec.name, ()):
                yield Case(name, (corpus.ordinary(shape),), attributes, native=True)
        if spec is specs.RESHAPE:
            yield Case("wrong size", (edges,), {"shape": (n + 1,)}, expected=ShapeError)


@cases.of(specs.PAD_V2, oracle=oracle.pad, signed_zero=True)
def pad(corpus: Corpus) -> Iterator[Case]:
    """Constants of the dtype, infinite ones among them."""
    if corpus.dtype is dt.string:
        for name, shape, attributes in PAD:
            own = {"paddings": attributes["paddings"]}
            yield Case(name, (corpus.ordinary(shape),), own)
        words = {"paddings": ((1, 1),), "constant_value": "a word that is none of them"}
        yield Case("words", (corpus.edges(),), words)
        return
    yield from shaped(PAD)(corpus)
    yield Case("edges", (corpus.edges(),), {"paddings": ((1, 1),), "constant_value": 1})
    if corpus.dtype is dt.float32:
        huge = {"paddings": ((1, 2), (2, 3)), "constant_value": 1}
        yield Case("huge", (corpus.ordinary((1031, 1033)),), huge, native=True)
    if corpus.floating:
        for value in (float("inf"), float("-inf"), float("nan"), -0.0, 0.5):
            attributes = {"paddings": ((1, 0), (0, 2)), "constant_value": value}
            yield Case(f"with {value}", (corpus.ordinary((2, 2)),), attributes)
    elif corpus.dtype in dt.SIGNED:
        attributes = {"paddings": ((1, 0),), "constant_value": -7}
        yield Case("with -7", (corpus.ordinary((3,)),), attributes)
    for value in corpus.far():
        attributes = {"paddings": ((1, 0),), "constant_value": value}
        yield Case(f"with {value}", (corpus.ordinary((3,)),), attributes)


@cases.of(specs.CONCAT, oracle=oracle.concat, signed_zero=True)
def concat(corpus: Corpus) -> Iterator[Case]:
    """One tensor, many, empty ones, every axis."""
    for name, shapes, attributes in (
        ("first axis", ((2, 3), (1, 3)), {}),
        ("last axis", ((2, 3), (2, 1), (2, 2)), {"axis": -1}),
        ("middle axis", ((2, 1, 2), (2, 3, 2)), {"axis": 1}),
        ("one", ((2, 3),), {"axis": 1}),
        ("with empty", ((2, 3), (0, 3), (1, 3)), {"axis": 0}),
        ("all empty", ((0, 2), (0, 2)), {"axis": 0}),
        ("rank 1", ((3,), (4,)), {}),
        ("rank 6", ((1, 2, 1, 2, 1, 2), (1, 2, 1, 1, 1, 2)), {"axis": 3}),
        ("many", ((1, 2),) * 37, {}),
        ("large", ((LARGE,), (3,)), {}),
    ):
        yield Case(name, ([corpus.ordinary(shape) for shape in shapes],), attributes)
    edges = corpus.edges()
    yield Case("edges", ([edges, edges[::-1].copy()],))
    if corpus.dtype is dt.float32:
        for axis in (0, 1):
            halves = [corpus.ordinary((1031, 509)), corpus.ordinary((1031, 509))]
            yield Case(f"huge, axis {axis}", (halves,), {"axis": axis}, native=True)
    for layout in ("transposed", "sliced"):
        inputs = ([corpus.ordinary((2, 3)), corpus.ordinary((2, 3))],)
        yield Case(layout, inputs, {"axis": 1}, layout=layout)


@cases.of(specs.PACK, oracle=oracle.pack, signed_zero=True)
def pack(corpus: Corpus) -> Iterator[Case]:
    """One tensor, many, empty ones, every place for the axis."""
    for name, shape, count, attributes in (
        ("front", (2, 3), 2, {}),
        ("middle", (2, 3), 3, {"axis": 1}),
        ("end", (2, 3), 2, {"axis": -1}),
        ("one", (2, 3), 1, {"axis": 1}),
        ("rank 0", (), 3, {}),
        ("rank 5", (1, 2, 1, 2, 2), 2, {"axis": 3}),
        ("empty", (0, 2), 2, {"axis": 1}),
        ("many", (2,), 37, {}),
        ("large", (LARGE,), 2, {}),
    ):
        yield Case(name, ([corpus.ordinary(shape) for _ in range(count)],), attributes)
    edges = corpus.edges()
    yield Case("edges", ([edges, edges[::-1].copy()],), {"axis": 1})
    for layout in ("transposed", "sliced"):
        inputs = ([corpus.ordinary((2, 3)), corpus.ordinary((2, 3))],)
        yield Case(layout, inputs, {"axis": 1}, layout=layout)
    unlike = [corpus.ordinary((2,)), corpus.ordinary((3,))]
    yield Case("unlike shapes", (unlike,), expected=ShapeError)


# Gradients: these are linear, so ordinary values suffice.


for spec, rows in (
    (specs.RESHAPE, RESHAPE),
    (specs.EXPAND_DIMS, EXPAND_DIMS),
    (specs.TRANSPOSE, TRANSPOSE),
    (specs.BROADCAST_TO, BROADCAST_TO),
    (specs.SLICE, SLICE),
    (specs.PAD_V2, PAD),
):
    cases.gradients(spec, spec.input_names[0])(points(rows))


@cases.gradients(specs.IDENTITY, "x")
def identity_points(corpus: Corpus) -> Iterator[Case]:
    yield from patterns.near(-2.0, 2.0)(corpus)


@cases.gradients(specs.CONCAT, "xs")
def concat_points(corpus: Corpus) -> Iterator[Case]:
    for name, shapes, axis in (
        ("first axis", ((2, 3), (1, 3)), 0),
        ("last axis", ((2, 1), (2, 2), (2, 1)), -1),
        ("third axis", ((1, 2, 1), (1, 2, 3)), 2),
        ("with empty", ((2, 3), (0, 3), (1, 3)), 0),
        ("one", ((2, 3),), 1),
    ):
        yield Case(name, ([corpus.ordinary(shape) for shape in shapes],), {"axis": axis})


@cases.gradients(specs.PACK, "xs")
def pack_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape, count, axis in (
        ("front", (2, 3), 2, 0),
        ("end", (2, 3), 3, -1),
        ("one", (2, 3), 1, 1),
        ("third axis", (2, 1, 2), 2, 2),
        ("rank 0", (), 3, 0),
        ("empty", (0, 2), 2, 1),
    ):
        yield Case(name, ([corpus.ordinary(shape) for _ in range(count)],), {"axis": axis})
