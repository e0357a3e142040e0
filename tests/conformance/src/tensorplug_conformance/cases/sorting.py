"""Cases for order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.errors import ShapeError
from tensorplug.ops import sorting as ops
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import sorting as oracle
from tensorplug_conformance.tables import Case, CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


@cases.of(ops.TOP_K, oracle=oracle.top_k)
def top_k(corpus: Corpus) -> Iterator[Case]:
    """Ties in the order of their indices, NaN first, k from nothing to everything."""
    yield Case("default", (corpus.ordinary((3, 4)),))
    yield Case("some", (corpus.ordinary((3, 7)),), {"k": 3})
    yield Case("everything", (corpus.ordinary((2, 5)),), {"k": 5})
    yield Case("nothing", (corpus.ordinary((2, 5)),), {"k": 0})
    yield Case("rank 1", (corpus.ordinary((7,)),), {"k": 2})
    yield Case("rank 6", (corpus.ordinary((1, 2, 1, 2, 1, 3)),), {"k": 2})
    yield Case("ties", (corpus.of([[1, 3, 3, 1], [2, 2, 2, 2]]),), {"k": 3})
    yield Case("edges", (corpus.edges(),), {"k": len(corpus.edges())})
    yield Case("empty rows", (corpus.ordinary((0, 3)),), {"k": 2})
    yield Case("empty axis", (corpus.ordinary((2, 0)),), {"k": 0})
    yield Case("large", (corpus.ordinary((LARGE,)),), {"k": 5})
    yield Case("many rows", (corpus.ordinary((259, 257)),), {"k": 2})
    yield Case("transposed", (corpus.ordinary((3, 5)),), {"k": 2}, "transposed")
    yield Case("sliced", (corpus.ordinary((3, 5)),), {"k": 2}, "sliced")
    yield Case("too many", (corpus.ordinary((3,)),), {"k": 4}, expected=ShapeError)
    if corpus.floating:
        inf, nan = np.inf, np.nan
        rows = [[1, nan, 3], [nan, -inf, nan], [-inf, inf, 0], [0.0, -0.0, -1.0]]
        yield Case("specials", (corpus.of(rows),), {"k": 3})


@cases.gradients(ops.TOP_K, "x")
def top_k_points(corpus: Corpus) -> Iterator[Case]:
    """The first output is differentiated; the indices are constants."""
    yield Case("row", (corpus.distinct((5,)),), {"k": 2})
    yield Case("matrix", (corpus.distinct((2, 4)),), {"k": 3})
