"""Cases for dilation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.oracle.nn import morphology as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

_PAIRS = ((0, 0), (1, 0), (0, 2), (0, 0))
# (case, shape of x, shape of filter, attributes)
WINDOWS: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ("valid", (2, 4, 5, 3), (2, 3, 3), {"strides": 1, "pad": "valid"}),
    ("same", (1, 4, 5, 2), (3, 3, 2), {"strides": 1, "pad": "same"}),
    ("strided", (1, 5, 6, 2), (2, 2, 2), {"strides": (2, 3), "pad": "same"}),
    ("dilated", (1, 6, 7, 1), (2, 3, 1), {"strides": 1, "pad": "valid", "dilations": (3, 2)}),
    ("dilated same", (1, 5, 4, 1), (3, 2, 1), {"strides": 2, "pad": "same", "dilations": 2}),
    ("numeric pad", (1, 3, 4, 1), (2, 2, 1), {"strides": 1, "pad": 1}),
    ("explicit pad", (1, 3, 3, 2), (2, 2, 2), {"strides": 1, "pad": _PAIRS}),
    ("only padding", (1, 2, 2, 1), (2, 2, 1), {"strides": 1, "pad": 3}),
    ("1x1", (2, 3, 2, 2), (1, 1, 2), {"strides": 1, "pad": "valid"}),
    ("no batch", (0, 3, 3, 1), (2, 2, 1), {"strides": 1, "pad": "valid"}),
)
_SAME: dict[str, Any] = {"strides": 1, "pad": "same"}


@cases.of(specs.DILATION2D, oracle=oracle.dilation2d)
def dilation2d(corpus: Corpus) -> Iterator[Case]:
    """Padding never wins, not even over negative numbers; NaN always does; integers wrap."""
    for name, x, taps, options in WINDOWS:
        yield Case(name, (corpus.ordinary(x), corpus.ordinary(taps)), options)
    yield Case("large", (corpus.ordinary((1, 128, 128, 5)), corpus.ordinary((2, 2, 5))), _SAME)
    low = corpus.of(np.full((1, 3, 3, 1), np.min(corpus.ordinary((50,)))))
    yield Case("all low", (low, corpus.of(np.zeros((3, 3, 1)))), _SAME)
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((2, 4, 4, 3)), corpus.ordinary((2, 2, 3)))
        yield Case(layout, inputs, _SAME, layout=layout)
    if corpus.floating:
        inf, nan = np.inf, np.nan
        image = corpus.of([[1, nan, 3, 4], [5, 6, -inf, -inf], [inf, 1, -1, -2], [0, 2, -3, nan]])
        for name, rows in (("specials", [[0, 1], [-1, 2]]), ("taps", [[0, inf], [-inf, nan]])):
            inputs = (image.reshape(1, 4, 4, 1), corpus.of(rows).reshape(2, 2, 1))
            yield Case(f"special {name}", inputs, _SAME)


def _apart(corpus: Corpus, x: tuple[int, ...], taps: tuple[int, ...]) -> tuple[Array, Array]:
    """Return an image and a filter whose sums are all different."""
    count = int(np.prod(taps))
    offsets = np.arange(count) * 7 % count / (2.5 * count)
    return corpus.distinct(x), corpus.of(offsets.reshape(taps))


def _pulled(corpus: Corpus, name: str, x: Array, filter: Array, options: dict[str, Any]) -> Case:
    shape = oracle.dilation2d(x, filter, **options).shape
    return Case(name, (x, filter, corpus.ordinary(shape)), options)


for spec, reference in (
    (specs.DILATION2D_BACKPROP_INPUT, oracle.backprop_input),
    (specs.DILATION2D_BACKPROP_FILTER, oracle.backprop_filter),
):

    @cases.of(spec, oracle=reference)
    def backprop(corpus: Corpus) -> Iterator[Case]:
        """Ties go to the first in row-major order; overlapping windows add up."""
        for name, x, taps, options in WINDOWS:
            yield _pulled(corpus, name, *_apart(corpus, x, taps), options)
        image, elements = corpus.ordinary((1, 128, 128, 5)), corpus.ordinary((2, 2, 5))
        if corpus.floating:  # sums are exact in every dtype: ties do not depend on their rounding
            image, elements = (corpus.of(np.round(16 * wide(x)) / 16) for x in (image, elements))
        yield _pulled(corpus, "large", image, elements, _SAME)
        tied, flat = corpus.of(np.ones((1, 4, 4, 2))), corpus.of(np.zeros((2, 2, 2)))
        yield _pulled(corpus, "all tied", tied, flat, {"strides": 2, "pad": "valid"})
        yield _pulled(corpus, "tied same", tied, flat, _SAME)
        infinite = corpus.of(np.full((1, 2, 3, 1), -np.inf))
        yield _pulled(corpus, "all -inf", infinite, flat[..., :1], _SAME)
        rows = [[1, np.nan, 3], [np.nan, 2, np.inf], [0, 1, np.nan]]
        image = corpus.of(rows).reshape(1, 3, 3, 1)
        yield _pulled(corpus, "specials", image, flat[..., :1], _SAME)


_POINTS = (
    ("valid", (1, 3, 4, 2), (2, 2, 2), {"strides": 1, "pad": "valid"}),
    ("dilated", (1, 4, 4, 1), (2, 2, 1), {"strides": 1, "pad": "same", "dilations": 2}),
    ("strided", (1, 4, 5, 1), (2, 3, 1), {"strides": 2, "pad": 1}),
    # No window covers only padding, of which the largest element is -inf.
    ("explicit pad", (1, 3, 3, 2), (2, 3, 2), {"strides": 1, "pad": _PAIRS}),
    ("1x1", (2, 3, 2, 2), (1, 1, 2), {"strides": 1, "pad": "valid"}),
    ("no batch", (0, 3, 3, 1), (2, 2, 1), {"strides": 1, "pad": "valid"}),
)


@cases.gradients(specs.DILATION2D, "x", "filter")
def dilation2d_points(corpus: Corpus) -> Iterator[Case]:
    for name, x, taps, options in _POINTS:
        yield Case(name, _apart(corpus, x, taps), options)


@cases.gradients(specs.DILATION2D_BACKPROP_INPUT, "dy")
def backprop_input_points(corpus: Corpus) -> Iterator[Case]:
    for name, x, taps, options in _POINTS:
        yield _pulled(corpus, name, *_apart(corpus, x, taps), options)


@cases.gradients(specs.DILATION2D_BACKPROP_FILTER, "dy")
def backprop_filter_points(corpus: Corpus) -> Iterator[Case]:
    for name, x, taps, options in _POINTS:
        yield _pulled(corpus, name, *_apart(corpus, x, taps), options)
