"""Cases for convolution and its two transposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.algorithms import CONVOLUTION_2D
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.nn import convolution as oracle
from tensorplug_conformance.oracle.nn.windows import all_axes
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.algorithms import ConvolutionFamily
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shape = tuple[int, ...]


class Geometry(NamedTuple):
    """One convolution: the shapes of x and filter, and how the window moves."""

    name: str
    x: Shape
    filter: Shape
    options: dict[str, Any]

    def out(self, channels: int) -> Shape:
        """Return the shape of the result, in the data format of ``x``."""
        first = oracle.channels_first(self.options)
        sizes = self.x[2:] if first else self.x[1:-1]
        outs = tuple(
            axis.out
            for axis in all_axes(sizes, self.filter[:-2], **{"data_format": "C", **self.options})
        )
        return (self.x[0], channels, *outs) if first else (self.x[0], *outs, channels)


_PAIRS = ((0, 0), (1, 2), (0, 1), (0, 0))
_FIRST: dict[str, Any] = {"data_format": "NCHW"}
GEOMETRIES = (
    Geometry("valid", (2, 5, 6, 3), (3, 2, 3, 4), {"strides": 1, "pad": "valid"}),
    Geometry("same", (1, 5, 5, 2), (3, 3, 2, 3), {"strides": 1, "pad": "same"}),
    Geometry("same, even taps", (1, 5, 4, 2), (2, 4, 2, 2), {"strides": 1, "pad": "same"}),
    Geometry("strided same", (1, 7, 6, 2), (3, 3, 2, 2), {"strides": 2, "pad": "same"}),
    Geometry("uneven strides", (1, 7, 8, 1), (2, 3, 1, 2), {"strides": (2, 3), "pad": "valid"}),
    Geometry("stride over taps", (1, 9, 9, 1), (2, 2, 1, 1), {"strides": 4, "pad": "valid"}),
    Geometry(
        "dilated",
        (1, 7, 8, 2),
        (2, 3, 2, 2),
        {"strides": 1, "pad": "valid", "dilations": (2, 3)},
    ),
    Geometry(
        "dilated same", (1, 6, 6, 1), (3, 3, 1, 2), {"strides": 1, "pad": "same", "dilations": 2}
    ),
    Geometry("1x1", (2, 3, 3, 4), (1, 1, 4, 2), {"strides": 1, "pad": "valid"}),
    Geometry("1x1, strided", (1, 5, 4, 35), (1, 1, 35, 3), {"strides": 2, "pad": "valid"}),
    Geometry("many channels, 3x3", (1, 17, 16, 19), (3, 3, 19, 2), {"strides": 1, "pad": "valid"}),
    Geometry("explicit pad", (1, 4, 5, 2), (3, 3, 2, 2), {"strides": 1, "pad": _PAIRS}),
    Geometry("numeric pad", (1, 4, 4, 1), (3, 3, 1, 2), {"strides": 2, "pad": 1}),
    Geometry("pad over taps", (1, 3, 3, 1), (2, 2, 1, 1), {"strides": 1, "pad": 3}),
    Geometry(
        "rounded up",
        (1, 6, 6, 1),
        (3, 3, 1, 1),
        {"strides": 2, "pad": 0, "dim_rounding_mode": "ceil"},
    ),
    Geometry(
        "rounded",
        (1, 6, 7, 1),
        (3, 2, 1, 1),
        {"strides": (2, 3), "pad": 0, "dim_rounding_mode": "round"},
    ),
    Geometry(
        "rounded down",
        (1, 6, 6, 1),
        (3, 3, 1, 1),
        {"strides": 2, "pad": 1, "dim_rounding_mode": "floor"},
    ),
    Geometry("whole", (1, 3, 4, 2), (3, 4, 2, 3), {"strides": 1, "pad": "valid"}),
    Geometry("no batch", (0, 4, 4, 2), (2, 2, 2, 3), {"strides": 1, "pad": "valid"}),
    Geometry("odd channels", (2, 4, 5, 7), (2, 3, 7, 5), {"strides": 1, "pad": "same"}),
    Geometry("many channels", (1, 3, 3, 17), (2, 2, 17, 31), {"strides": 1, "pad": "valid"}),
    Geometry("many images", (67, 3, 4, 2), (2, 2, 2, 3), {"strides": 1, "pad": "same"}),
    Geometry("taps beyond the input", (2, 3, 2, 3), (5, 7, 3, 2), {"strides": 1, "pad": "same"}),
    Geometry("images, strided", (3, 7, 9, 3), (3, 2, 3, 5), {"strides": (3, 2), "pad": "same"}),
    Geometry(
        "images, dilated and padded",
        (3, 6, 5, 3),
        (3, 2, 3, 5),
        {"strides": 1, "pad": _PAIRS, "dilations": (2, 3)},
    ),
    Geometry(
        "strided, dilated and padded",
        (1, 11, 13, 2),
        (3, 3, 2, 2),
        {"strides": 2, "pad": ((0, 0), (1, 1), (2, 2), (0, 0)), "dilations": (2, 3)},
    ),
    Geometry("wide taps", (1, 17, 23, 1), (11, 13, 1, 2), {"strides": 1, "pad": "valid"}),
    Geometry("NCHW", (2, 3, 5, 4), (2, 3, 3, 2), {"strides": (2, 1), "pad": "same", **_FIRST}),
    # All axes have one length, and nothing is padded, so that a misread layout still fits.
    Geometry(
        "NCHW, equal axes", (1, 3, 3, 3), (1, 1, 3, 3), {"strides": 1, "pad": "valid", **_FIRST}
    ),
    Geometry(
        "NCHW, explicit pad",
        (1, 2, 4, 5),
        (3, 3, 2, 1),
        {"strides": 1, "pad": ((0, 0), (0, 0), (1, 2), (0, 1)), "dilations": 2, **_FIRST},
    ),
)
# More windows than libraries copy at once: they copy some images, or a part of one.
IN_PARTS = (
    Geometry("images in parts", (7, 24, 25, 12), (3, 3, 12, 2), {"strides": 1, "pad": "same"}),
    Geometry("many windows", (2, 99, 103, 12), (3, 3, 12, 2), {"strides": 1, "pad": "same"}),
)
# Gradients: all three kernels are bilinear, so any point suffices; small ones save time.
SMALL = (
    Geometry("valid", (1, 3, 4, 2), (2, 2, 2, 1), {"strides": 1, "pad": "valid"}),
    Geometry("strided same", (1, 4, 3, 1), (3, 2, 1, 2), {"strides": 2, "pad": "same"}),
    Geometry(
        "dilated", (1, 4, 4, 1), (2, 2, 1, 1), {"strides": 1, "pad": "valid", "dilations": 2}
    ),
    Geometry("NCHW", (1, 2, 3, 3), (2, 2, 2, 1), {"strides": 1, "pad": 1, **_FIRST}),
    Geometry(
        "rounded up, explicit pad",
        (1, 4, 4, 1),
        (2, 2, 1, 1),
        {"strides": 2, "pad": ((0, 0), (1, 0), (0, 1), (0, 0)), "dim_rounding_mode": "ceil"},
    ),
    *(
        Geometry(
            f"pad 1, {how}",
            (1, 4, 4, 1),
            (3, 2, 1, 1),
            {"strides": 2, "pad": 1, "dim_rounding_mode": how},
        )
        for how in ("floor", "round")
    ),
    Geometry("no batch", (0, 3, 3, 2), (2, 2, 2, 1), {"strides": 1, "pad": "valid"}),
)


def enter(
    cases: CaseTable,
    family: ConvolutionFamily,
    oracles: tuple[Any, Any, Any],
    geometries: tuple[Geometry, ...],
    small: tuple[Geometry, ...],
    large: tuple[Geometry, ...],
    outputs: Callable[[Shape], int],
) -> None:
    """Enter the three kernels of ``family``.

    ``large``: only the first of these is tried in dtypes other than float32.
    """

    def ordinary(corpus: Corpus, shape: Shape) -> Any:
        return corpus.ordinary(shape, -1, 1)

    def tried(corpus: Corpus) -> tuple[Geometry, ...]:
        return (*geometries, *(large if corpus.dtype is dt.float32 else large[:1]))

    def forward(corpus: Corpus, rows: tuple[Geometry, ...]) -> Iterator[Case]:
        for row in rows:
            inputs = (ordinary(corpus, row.x), ordinary(corpus, row.filter))
            yield Case(row.name, inputs, row.options)

    def backprop_input(corpus: Corpus, rows: tuple[Geometry, ...]) -> Iterator[Case]:
        for row in rows:
            dy = ordinary(corpus, row.out(outputs(row.filter)))
            attributes = {**row.options, "input_shape": row.x}
            yield Case(row.name, (dy, ordinary(corpus, row.filter)), attributes)

    def backprop_filter(corpus: Corpus, rows: tuple[Geometry, ...]) -> Iterator[Case]:
        for row in rows:
            dy = ordinary(corpus, row.out(outputs(row.filter)))
            attributes = {**row.options, "filter_shape": row.filter}
            yield Case(row.name, (ordinary(corpus, row.x), dy), attributes)

    @cases.of(family.forward, oracle=oracles[0])
    def forwards(corpus: Corpus) -> Iterator[Case]:
        """Every padding, stride, dilation, data format and layout."""
        yield from forward(corpus, tried(corpus))
        first = geometries[0]
        for layout in ("transposed", "sliced"):
            inputs = (ordinary(corpus, first.x), ordinary(corpus, first.filter))
            yield Case(layout, inputs, first.options, layout=layout)

    # Taps beyond the edge may be multiplied by zeros or left out.
    @cases.of(family.backprop_input, oracle=oracles[1], ordinary=("filter",))
    def backprop_inputs(corpus: Corpus) -> Iterator[Case]:
        """The same geometries; elements that no window touches get zero."""
        yield from backprop_input(corpus, tried(corpus))

    @cases.of(family.backprop_filter, oracle=oracles[2])
    def backprop_filters(corpus: Corpus) -> Iterator[Case]:
        """The same geometries."""
        yield from backprop_filter(corpus, tried(corpus))

    cases.gradients(family.forward, "x", "filter")(lambda corpus: forward(corpus, small))
    cases.gradients(family.backprop_input, "dy", "filter")(
        lambda corpus: backprop_input(corpus, small)
    )
    cases.gradients(family.backprop_filter, "x", "dy")(
        lambda corpus: backprop_filter(corpus, small)
    )


enter(
    cases,
    CONVOLUTION_2D,
    (oracle.conv2d, oracle.conv2d_backprop_input, oracle.conv2d_backprop_filter),
    GEOMETRIES,
    SMALL,
    (Geometry("large", (1, 83, 83, 2), (3, 3, 2, 10), {"strides": 1, "pad": "same"}), *IN_PARTS),
    lambda taps: taps[3],
)
