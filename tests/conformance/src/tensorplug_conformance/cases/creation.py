"""Cases for tensors made from nothing but attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.floats import finfo
from tensorplug_conformance.oracle import creation as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


@cases.of(specs.FILL, oracle=oracle.fill, signed_zero=True)
def fill(corpus: Corpus) -> Iterator[Case]:
    """Every special value as the constant; shapes from rank 0 to 6."""
    dtype = corpus.dtype.name
    one: Any = True if corpus.dtype is dt.bool_ else 1
    for name, shape in (
        ("rank 0", ()),
        ("odd", (7,)),
        ("empty", (2, 0)),
        ("rank 6", (1, 2, 1, 3, 1, 2)),
        ("large", (LARGE,)),
    ):
        yield Case(name, (), {"shape": shape, "value": one, "dtype": dtype})
    yield Case("rank 0 of 0", (), {"shape": (), "value": False, "dtype": dtype})
    yield Case("text", (), {"shape": (2, 3), "value": "a text of many letters", "dtype": "string"})
    for at, value in enumerate(corpus.edges().tolist()):
        yield Case(f"edge {at}", (), {"shape": (3,), "value": value, "dtype": dtype})
    shapes: Any = ((3,), (1, 2, 3), ())
    for at, value in enumerate(corpus.far()):
        shape = shapes[at % len(shapes)]
        yield Case(f"value {value}", (), {"shape": shape, "value": value, "dtype": dtype})


@cases.of(specs.RANGE, oracle=oracle.range_, dtypes=sorted(dt.REAL, key=str))
def range_(corpus: Corpus) -> Iterator[Case]:
    """Up, down, nothing, a last step that just fits or just does not."""
    dtype = corpus.dtype.name
    rows: list[tuple[str, dict[str, Any]]] = [
        ("up", {"start": 0, "stop": 7}),
        ("from 3", {"start": 3, "stop": 9}),
        ("by 2", {"start": 1, "stop": 8, "step": 2}),
        ("by 3, just short", {"start": 0, "stop": 9, "step": 3}),
        ("nothing", {"start": 5, "stop": 2, "step": 2}),
        ("one", {"start": 2, "stop": 3}),
    ]
    if corpus.dtype in dt.INTEGER:
        rows.append(("from a fraction", {"start": 0.5, "stop": 3.6}))
        rows.append(("by fractions", {"start": 1, "stop": 4, "step": 0.75}))
    if corpus.dtype in dt.SIGNED:
        rows.append(("below 0 by fractions", {"start": -2.5, "stop": 2, "step": 0.75}))
    if corpus.dtype not in dt.UNSIGNED:
        rows.append(("down", {"start": 5, "stop": -4, "step": -2}))
        rows.append(("down by itself", {"start": 5, "stop": -2}))
    if corpus.dtype.itemsize >= 4:
        rows.append(("large", {"start": 0, "stop": LARGE}))
    if corpus.floating:
        rows.append(("halves", {"start": 0.5, "stop": 3.0, "step": 0.5}))
        rows.append(("tenths", {"start": 0.0, "stop": 1.05, "step": 0.1}))
        # Steps that no float represents: their sum drifts away.
        many = 20011 if corpus.dtype.itemsize >= 4 else 999
        rows.append(("many tenths", {"start": 0.3, "stop": 0.1 * many + 0.05, "step": 0.1}))
        rows.append(("many thirds down", {"start": 2.0, "stop": -many / 3 - 0.1, "step": -1 / 3}))
    elif corpus.dtype.itemsize >= 4:
        limits: Any = np.iinfo(corpus.dtype.numpy)
        high = int(limits.max)
        for at, start in enumerate((high // 1024 + 2, high // 2 + 2, high - 8)):
            rows.append((f"far {at}", {"start": start, "stop": start + 7}))
            rows.append((f"far {at}, by 3", {"start": start, "stop": start + 7, "step": 3}))
        rows.append(("wide steps", {"start": 1, "stop": high - 1, "step": high // 7}))
    for name, attributes in rows:
        yield Case(name, (), {**attributes, "dtype": dtype})


for spec, number in ((specs.ZEROS_LIKE, 0), (specs.ONES_LIKE, 1)):
    cases.of(spec, oracle=oracle.constant_like(number), signed_zero=True)(patterns.unary)

    @cases.gradients(spec, "x")
    def constant(corpus: Corpus) -> Iterator[Case]:
        """No gradients: zeros are returned where the caller accepts them."""
        point = corpus.ordinary((3,))
        yield Case("row", (point,), expected=(np.zeros_like(point),))


@cases.of(specs.LIN_SPACE, oracle=oracle.linspace, dtypes=sorted(dt.INEXACT, key=str))
def linspace(corpus: Corpus) -> Iterator[Case]:
    """Up, down, of one number, of none; both ends exact."""
    dtype = corpus.dtype.name
    for name, start, stop, num in (
        ("up", 0, 1, 5),
        ("down", 3.5, -2.25, 7),
        ("thirds", 0.1, 0.7, 4),
        ("one", 2, 5, 1),
        ("two", -1, 1, 2),
        ("none", 0, 1, 0),
        ("constant", 0.1, 0.1, 6),
        ("large", -1, 1, LARGE),
        ("many thirds", 0.1, 0.7, 20011),
    ):
        for endpoint in (True, False):
            attributes = {"start": start, "stop": stop, "num": num, "endpoint": endpoint}
            label = name if endpoint else f"{name}, without the end"
            yield Case(label, (), {**attributes, "dtype": dtype})
    if corpus.floating:
        about: Any = finfo(corpus.dtype.numpy)
        most = float(about.max)
        yield Case("all", (), {"start": -most, "stop": most, "num": 5, "dtype": dtype})
    else:
        ends = {"start": 1 + 2j, "stop": -1 - 1j, "num": 5, "dtype": dtype}
        yield Case("plane", (), ends)


@cases.of(specs.EYE, oracle=oracle.eye, dtypes=sorted(dt.FIXED, key=str))
def eye(corpus: Corpus) -> Iterator[Case]:
    """Square, wide, high, empty; each diagonal, those outside of the matrix among them."""
    dtype = corpus.dtype.name
    yield Case("square", (), {"n_rows": 3, "dtype": dtype})
    for rows, columns in ((3, 5), (5, 2), (0, 3), (2, 0), (1, 1), (259, 257)):
        for k in (0,) if rows > 9 else (-9, -2, -1, 0, 1, 4, 1 << 40):
            attributes = {"n_rows": rows, "n_cols": columns, "k": k, "dtype": dtype}
            yield Case(f"{rows} by {columns}, {k}", (), attributes)
