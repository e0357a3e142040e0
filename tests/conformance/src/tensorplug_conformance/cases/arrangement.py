"""Cases for repeating and reordering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import ArgumentError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import arrangement as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants.patterns import Rows, points, shaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

TILE: Rows = (
    ("vector", (3,), {"reps": (2,)}),
    ("matrix", (2, 3), {"reps": (3, 2)}),
    ("rows", (2, 3), {"reps": (2, 1)}),
    ("columns", (2, 3), {"reps": (1, 4)}),
    ("once", (2, 3), {"reps": (1, 1)}),
    ("often", (3, 2), {"reps": (1, 257)}),
    ("never", (2, 3), {"reps": (2, 0)}),
    ("fewer", (2, 3), {"reps": (2,)}),
    ("one number", (2, 3), {"reps": 2}),
    ("more", (2,), {"reps": (3, 1, 2)}),
    ("none", (2,), {"reps": ()}),
    ("rank 0", (), {"reps": ()}),
    ("from rank 0", (), {"reps": (2, 2)}),
    ("sizes of 1", (1, 3, 1), {"reps": (2, 1, 3)}),
    ("rank 6", (1, 2, 1, 1, 2, 1), {"reps": (2, 1, 2, 1, 2, 2)}),
    ("empty", (0, 2), {"reps": (2, 2)}),
    ("large", (257, 3), {"reps": (3, 31)}),
    ("transposed", (2, 3), {"reps": (2, 2)}),
    ("sliced", (2, 3), {"reps": (1, 2)}),
)
REPEAT: Rows = (
    ("vector", (3,), {"repeats": 2}),
    ("rows", (2, 3), {"repeats": 3}),
    ("columns", (2, 3), {"repeats": 2, "axis": -1}),
    ("middle", (2, 1, 3), {"repeats": 4, "axis": 1}),
    ("once", (2, 3), {"repeats": 1, "axis": 1}),
    ("never", (2, 3), {"repeats": 0, "axis": 1}),
    ("empty", (0, 2), {"repeats": 2}),
    ("rank 6", (1, 2, 1, 2, 1, 2), {"repeats": 2, "axis": 3}),
    ("large", (257, 3), {"repeats": 91, "axis": 1}),
    ("transposed", (2, 3), {"repeats": 2}),
    ("sliced", (2, 3), {"repeats": 2, "axis": 1}),
)
REVERSE: Rows = (
    ("vector", (5,), {"dims": 0}),
    ("all", (2, 3), {}),
    ("first", (3, 2), {"dims": (0,)}),
    ("last", (2, 3, 2), {"dims": -1}),
    ("two", (2, 3, 4), {"dims": (2, 0)}),
    ("none", (2, 3), {"dims": ()}),
    ("rank 0", (), {}),
    ("rank 6", (1, 2, 3, 1, 2, 2), {"dims": (1, -1, 2)}),
    ("empty", (0, 3), {"dims": (0, 1)}),
    ("large", (257, 259), {"dims": (0, 1)}),
    ("transposed", (3, 4), {"dims": 1}),
    ("sliced", (3, 4), {"dims": 0}),
)
MIRROR: Rows = (
    ("reflect", (3,), {"paddings": ((2, 1),), "mode": "reflect"}),
    ("reflect all", (3, 4), {"paddings": ((2, 2), (3, 3)), "mode": "reflect"}),
    ("reflect one side", (3, 3), {"paddings": ((0, 2), (1, 0)), "mode": "reflect"}),
    ("reflect nothing", (1, 3), {"paddings": ((0, 0), (0, 0)), "mode": "reflect"}),
    ("symmetric", (3,), {"paddings": ((2, 1),), "mode": "symmetric"}),
    ("symmetric all", (2, 3), {"paddings": ((2, 2), (3, 3)), "mode": "symmetric"}),
    ("symmetric of one", (1,), {"paddings": ((1, 1),), "mode": "symmetric"}),
    ("symmetric one side", (3, 2), {"paddings": ((3, 0), (0, 2)), "mode": "symmetric"}),
    ("empty", (0, 2), {"paddings": ((0, 0), (1, 1)), "mode": "symmetric"}),
    ("rank 0", (), {"paddings": (), "mode": "reflect"}),
    ("rank 6", (1, 2, 1, 2, 1, 2), {"paddings": ((0, 0), (1, 1)) * 3, "mode": "reflect"}),
    (
        "rank 5",
        (2, 2, 3, 2, 2),
        {"paddings": ((1, 0), (1, 1), (0, 2), (1, 1), (0, 0)), "mode": "reflect"},
    ),
    ("large", (LARGE,), {"paddings": ((3, 4),), "mode": "reflect"}),
    ("transposed", (3, 2), {"paddings": ((1, 2), (1, 1)), "mode": "reflect"}),
    ("sliced", (3, 2), {"paddings": ((1, 2), (1, 1)), "mode": "symmetric"}),
)


def _huge(corpus: Corpus, shape: tuple[int, ...], attributes: dict[str, Any]) -> Iterator[Case]:
    """Yield a case of more than 2**20 elements."""
    if corpus.dtype is dt.float32:
        yield Case("huge", (corpus.ordinary(shape),), attributes, native=True)


@cases.of(specs.TILE, oracle=oracle.tile, signed_zero=True)
def tile(corpus: Corpus) -> Iterator[Case]:
    """Each axis, none at all, new ones."""
    yield from shaped(TILE)(corpus)
    yield Case("edges", (corpus.edges(),), {"reps": (2,)})
    yield from _huge(corpus, (257, 41), {"reps": (10, 11)})
    negative = {"reps": (2, -1)}
    yield Case("negative", (corpus.ordinary((2, 3)),), negative, expected=ShapeError)


@cases.of(specs.REPEAT, oracle=oracle.repeat, signed_zero=True)
def repeat(corpus: Corpus) -> Iterator[Case]:
    """Each axis, no copies at all."""
    yield from shaped(REPEAT)(corpus)
    yield Case("edges", (corpus.edges(),), {"repeats": 2})
    yield from _huge(corpus, (1031, 103), {"repeats": 11, "axis": 1})
    yield Case("negative", (corpus.edges(),), {"repeats": -1}, expected=ArgumentError)


@cases.of(specs.REVERSE, oracle=oracle.reverse, signed_zero=True)
def reverse(corpus: Corpus) -> Iterator[Case]:
    """Each axis, several, all."""
    yield from shaped(REVERSE)(corpus)
    yield Case("edges", (corpus.edges(),), {"dims": 0})
    yield from _huge(corpus, (1031, 1033), {"dims": (0, 1)})
    twice = {"dims": (0, -2)}
    yield Case("one axis twice", (corpus.ordinary((2, 3)),), twice, expected=ShapeError)


@cases.of(specs.MIRROR_PAD, oracle=oracle.mirror_pad, signed_zero=True)
def mirror_pad(corpus: Corpus) -> Iterator[Case]:
    """Both modes up to their limit, and beyond it."""
    yield from shaped(MIRROR)(corpus)
    edges = {"paddings": ((3, 2),), "mode": "reflect"}
    yield from _huge(corpus, (1031, 1033), {"paddings": ((3, 2), (1, 4)), "mode": "symmetric"})
    yield Case("edges", (corpus.edges(),), edges)
    for mode, most in (("reflect", 2), ("symmetric", 3)):
        attributes = {"paddings": ((0, most + 1),), "mode": mode}
        yield Case(f"{mode} too far", (corpus.ordinary((3,)),), attributes, expected=ShapeError)
    unknown = {"paddings": ((1, 1),), "mode": "wrap"}
    yield Case("unknown mode", (corpus.ordinary((3,)),), unknown, expected=ArgumentError)


# Gradients: these are linear, so ordinary values suffice.

cases.gradients(specs.TILE, "x")(points(TILE))
cases.gradients(specs.REPEAT, "x")(points(REPEAT))
cases.gradients(specs.REVERSE, "x")(points(REVERSE))
cases.gradients(specs.MIRROR_PAD, "x")(points(MIRROR))
