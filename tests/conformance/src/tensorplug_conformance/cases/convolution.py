"""Cases for convolution and its two transposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.ops import convolution as ops
from tensorplug_conformance.oracle import convolution as oracle
from tensorplug_conformance.oracle.windows import both
from tensorplug_conformance.tables import Case, CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shape = tuple[int, ...]
_PAIRS = ((0, 0), (1, 2), (0, 1), (0, 0))
# (case, shape of x, shape of filter, attributes)
GEOMETRIES: tuple[tuple[str, Shape, Shape, dict[str, Any]], ...] = (
    ("valid", (2, 5, 6, 3), (3, 2, 3, 4), {"strides": 1, "pad": "valid"}),
    ("same", (1, 5, 5, 2), (3, 3, 2, 3), {"strides": 1, "pad": "same"}),
    ("same, even taps", (1, 5, 4, 2), (2, 4, 2, 2), {"strides": 1, "pad": "same"}),
    ("strided same", (1, 7, 6, 2), (3, 3, 2, 2), {"strides": 2, "pad": "same"}),
    ("uneven strides", (1, 7, 8, 1), (2, 3, 1, 2), {"strides": (2, 3), "pad": "valid"}),
    ("stride over taps", (1, 9, 9, 1), (2, 2, 1, 1), {"strides": 4, "pad": "valid"}),
    ("dilated", (1, 7, 8, 2), (2, 3, 2, 2), {"strides": 1, "pad": "valid", "dilations": (2, 3)}),
    ("dilated same", (1, 6, 6, 1), (3, 3, 1, 2), {"strides": 1, "pad": "same", "dilations": 2}),
    ("1x1", (2, 3, 3, 4), (1, 1, 4, 2), {"strides": 1, "pad": "valid"}),
    ("explicit pad", (1, 4, 5, 2), (3, 3, 2, 2), {"strides": 1, "pad": _PAIRS}),
    ("numeric pad", (1, 4, 4, 1), (3, 3, 1, 2), {"strides": 2, "pad": 1}),
    (
        "rounded up",
        (1, 6, 6, 1),
        (3, 3, 1, 1),
        {"strides": 2, "pad": 0, "dim_rounding_mode": "ceil"},
    ),
    ("whole", (1, 3, 4, 2), (3, 4, 2, 3), {"strides": 1, "pad": "valid"}),
    ("no batch", (0, 4, 4, 2), (2, 2, 2, 3), {"strides": 1, "pad": "valid"}),
    ("large", (1, 83, 83, 2), (3, 3, 2, 10), {"strides": 1, "pad": "same"}),
)
NCHW: dict[str, Any] = {"strides": (2, 1), "pad": "same", "data_format": "NCHW"}


def _out(x: Shape, filter: Shape, options: dict[str, Any]) -> Shape:
    """Return the shape of the result, in the data format of ``x``."""
    nchw = options.get("data_format") == "NCHW"
    sizes = (x[2], x[3]) if nchw else (x[1], x[2])
    height, width = both(sizes, (filter[0], filter[1]), **options)
    if nchw:
        return (x[0], filter[3], height.out, width.out)
    return (x[0], height.out, width.out, filter[3])


def _rows(*, small: bool = False) -> Iterator[tuple[str, Shape, Shape, dict[str, Any]]]:
    for row in GEOMETRIES:
        if not (small and row[0] in ("large", "no batch")):
            yield row
    yield "NCHW", (2, 3, 5, 4), (2, 3, 3, 2), NCHW
    # Every axis as long as the others: a layout that is read wrongly still fits.
    cube = {"strides": 1, "pad": "same", "data_format": "NCHW"}
    yield "NCHW, equal axes", (1, 3, 3, 3), (2, 2, 3, 3), cube


@cases.of(ops.CONV2D, oracle=oracle.conv2d)
def conv2d(corpus: Corpus) -> Iterator[Case]:
    """Every padding, stride, dilation and data format."""
    for name, x, taps, options in _rows():
        yield Case(name, (corpus.ordinary(x, -1, 1), corpus.ordinary(taps, -1, 1)), options)
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((2, 4, 4, 2), -1, 1), corpus.ordinary((2, 3, 2, 2), -1, 1))
        options = {"strides": 1, "pad": "same"}
        yield Case(layout, inputs, options, layout=layout)


@cases.of(ops.CONV2D_BACKPROP_INPUT, oracle=oracle.conv2d_backprop_input)
def backprop_input(corpus: Corpus) -> Iterator[Case]:
    """The same geometries; what no window touched gets zero."""
    for name, x, taps, options in _rows():
        dy = corpus.ordinary(_out(x, taps, options), -1, 1)
        attributes = {**options, "input_shape": x}
        yield Case(name, (dy, corpus.ordinary(taps, -1, 1)), attributes)


@cases.of(ops.CONV2D_BACKPROP_FILTER, oracle=oracle.conv2d_backprop_filter)
def backprop_filter(corpus: Corpus) -> Iterator[Case]:
    """The same geometries."""
    for name, x, taps, options in _rows():
        dy = corpus.ordinary(_out(x, taps, options), -1, 1)
        attributes = {**options, "filter_shape": taps}
        yield Case(name, (corpus.ordinary(x, -1, 1), dy), attributes)


# Gradients: all three kernels are bilinear, so any point will do; small ones save time.
_SMALL: tuple[tuple[str, Shape, Shape, dict[str, Any]], ...] = (
    ("valid", (1, 3, 4, 2), (2, 2, 2, 1), {"strides": 1, "pad": "valid"}),
    ("strided same", (1, 4, 3, 1), (3, 2, 1, 2), {"strides": 2, "pad": "same"}),
    ("dilated", (1, 4, 4, 1), (2, 2, 1, 1), {"strides": 1, "pad": "valid", "dilations": 2}),
    ("NCHW", (1, 2, 3, 3), (2, 2, 2, 1), {"strides": 1, "pad": 1, "data_format": "NCHW"}),
)


@cases.gradients(ops.CONV2D, "x", "filter")
def conv2d_points(corpus: Corpus) -> Iterator[Case]:
    for name, x, taps, options in _SMALL:
        yield Case(name, (corpus.ordinary(x, -1, 1), corpus.ordinary(taps, -1, 1)), options)


@cases.gradients(ops.CONV2D_BACKPROP_INPUT, "dy", "filter")
def backprop_input_points(corpus: Corpus) -> Iterator[Case]:
    for name, x, taps, options in _SMALL:
        dy = corpus.ordinary(_out(x, taps, options), -1, 1)
        attributes = {**options, "input_shape": x}
        yield Case(name, (dy, corpus.ordinary(taps, -1, 1)), attributes)


@cases.gradients(ops.CONV2D_BACKPROP_FILTER, "x", "dy")
def backprop_filter_points(corpus: Corpus) -> Iterator[Case]:
    for name, x, taps, options in _SMALL:
        dy = corpus.ordinary(_out(x, taps, options), -1, 1)
        attributes = {**options, "filter_shape": taps}
        yield Case(name, (corpus.ordinary(x, -1, 1), dy), attributes)
