"""Cases for reading bits as another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import DTypeError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case, Exactly
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import bitcasting as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


@cases.of(specs.BITCAST, oracle=oracle.bitcast, signed_zero=True)
def bitcast(corpus: Corpus) -> Iterator[Case]:
    """To every other dtype: as wide, narrower (a new axis), wider (the last axis goes).

    And to those for storage and back, which a backend may lack.
    """
    own = corpus.dtype.itemsize
    for target in sorted(dt.NUMERIC, key=lambda dtype: dtype.name):
        name, attributes = target.name, {"dtype": target.name}
        ratio = target.itemsize // own
        if ratio <= 1:
            yield Case(f"edges to {name}", (corpus.edges(),), attributes)
            yield Case(f"rank 0 to {name}", (corpus.ordinary(()),), attributes)
            tail: tuple[int, ...] = ()
        else:
            whole = np.resize(corpus.edges(), (5, ratio))
            yield Case(f"edges to {name}", (whole,), attributes)
            wrong = corpus.ordinary((2, ratio + 1))
            yield Case(f"wrong length for {name}", (wrong,), attributes, expected=ShapeError)
            scalar = corpus.ordinary(())
            yield Case(f"rank 0 for {name}", (scalar,), attributes, expected=ShapeError)
            tail = (ratio,)
        yield Case(f"rank 3 to {name}", (corpus.ordinary((2, 3, *tail)),), attributes)
        yield Case(f"empty to {name}", (corpus.ordinary((0, 2, *tail)),), attributes)
        for layout in ("transposed", "sliced"):
            inputs = (corpus.ordinary((3, 5, *tail)),)
            yield Case(f"{layout} to {name}", inputs, attributes, layout=layout)
        square = (corpus.ordinary((4, 4, *tail)),)
        yield Case(f"square, transposed to {name}", square, attributes, layout="transposed")
    for target in sorted(dt.STORAGE, key=str):  # packed, if they have less than a byte
        whole = corpus.ordinary((3, 4))
        parts = oracle.split(whole, target.name)
        to, back = {"dtype": target.name}, {"dtype": corpus.dtype.name}
        yield Case(f"to {target}", (whole,), to, expected=(Exactly(parts),))
        yield Case(f"from {target}", (parts,), back, expected=(Exactly(whole),))
    same = {"dtype": corpus.dtype.name}
    yield Case("large", (corpus.ordinary((LARGE,)),), same)
    for wrong_name in ("bool", "string"):
        inputs = (corpus.ordinary((2,)),)
        yield Case(f"to {wrong_name}", inputs, {"dtype": wrong_name}, expected=DTypeError)


@cases.gradients(specs.BITCAST, "input")
def bitcast_points(corpus: Corpus) -> Iterator[Case]:
    """To the same dtype, and between complex numbers and their parts."""
    own = corpus.dtype
    part = dt.real_part(own)
    for target in sorted(dt.INEXACT, key=str):
        if dt.real_part(target) is not part:
            continue
        tail = (2,) if target.itemsize > own.itemsize else ()
        for shape in ((), (3,), (2, 1, 3), (0, 2)):
            inputs = (corpus.ordinary((*shape, *tail)),)
            yield Case(f"{len(shape)} axes to {target.name}", inputs, {"dtype": target.name})
