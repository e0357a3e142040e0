"""Cases for pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.nn import pooling as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Window = tuple[str, tuple[int, ...], dict[str, Any]]  # case, shape of x, attributes

_PAIRS = ((0, 0), (1, 0), (0, 1), (0, 0))
WINDOWS: tuple[Window, ...] = (
    ("2x2", (2, 4, 6, 3), {"filter_size": 2, "strides": 2, "pad": "valid"}),
    ("left over", (1, 5, 5, 2), {"filter_size": 2, "strides": 2, "pad": "valid"}),
    ("overlapping", (1, 5, 6, 1), {"filter_size": 3, "strides": 1, "pad": "valid"}),
    ("same", (1, 5, 4, 2), {"filter_size": 3, "strides": 2, "pad": "same"}),
    ("uneven", (1, 6, 7, 1), {"filter_size": (2, 3), "strides": (3, 2), "pad": "same"}),
    ("gaps, padded", (1, 9, 9, 1), {"filter_size": 2, "strides": 3, "pad": 1}),
    ("same, 4x4 on 10", (1, 10, 10, 1), {"filter_size": 4, "strides": 3, "pad": "same"}),
    ("gaps", (1, 7, 7, 1), {"filter_size": 1, "strides": 3, "pad": "valid"}),
    ("numeric pad", (1, 4, 4, 1), {"filter_size": 3, "strides": 2, "pad": 1}),
    ("explicit pad", (1, 4, 4, 2), {"filter_size": 2, "strides": 1, "pad": _PAIRS}),
    ("whole", (2, 3, 4, 2), {"filter_size": (3, 4), "strides": 1, "pad": "valid"}),
    ("wide window", (1, 9, 11, 1), {"filter_size": (5, 7), "strides": 1, "pad": "same"}),
    ("odd channels", (3, 5, 4, 7), {"filter_size": (2, 3), "strides": 2, "pad": "same"}),
    ("many channels", (1, 3, 3, 31), {"filter_size": 2, "strides": 1, "pad": "valid"}),
    ("many images", (67, 3, 4, 2), {"filter_size": 2, "strides": 1, "pad": "valid"}),
    ("beyond the input", (2, 3, 2, 3), {"filter_size": (5, 7), "strides": 1, "pad": "same"}),
    ("images, far strides", (3, 9, 7, 3), {"filter_size": 2, "strides": 4, "pad": "valid"}),
    ("long window", (1, 37, 29, 1), {"filter_size": (37, 29), "strides": 1, "pad": "valid"}),
    ("no batch", (0, 4, 4, 1), {"filter_size": 2, "strides": 2, "pad": "valid"}),
    ("no channels", (1, 4, 4, 0), {"filter_size": 2, "strides": 2, "pad": "valid"}),
)
_ROUNDED: tuple[Window, ...] = tuple(
    (
        f"{how} {size}, pad {pad}",
        (1, size, size + 1, 2),
        {"filter_size": 3, "strides": 2, "pad": pad, "dim_rounding_mode": how},
    )
    for how, size, pad in (
        ("floor", 6, 0),
        ("ceil", 6, 0),
        ("ceil", 5, 1),
        ("round", 6, 1),
        ("round", 4, 0),
    )
)
_ONLY_PADDING: Window = (
    "windows of padding",
    (1, 3, 3, 1),
    {"filter_size": 2, "strides": 1, "pad": ((0, 0), (2, 0), (0, 3), (0, 0))},
)
_LARGE: Window = ("large", (1, 128, 128, 5), {"filter_size": 2, "strides": 1, "pad": "same"})

VOLUMES: tuple[Window, ...] = (
    ("2x2x2", (1, 4, 4, 2, 2), {"filter_size": 2, "strides": 2, "pad": "valid"}),
    ("same", (1, 3, 4, 5, 1), {"filter_size": 3, "strides": 2, "pad": "same"}),
    ("uneven", (1, 4, 3, 5, 1), {"filter_size": (2, 1, 3), "strides": (1, 2, 1), "pad": "same"}),
    ("numeric pad", (1, 3, 3, 3, 1), {"filter_size": 2, "strides": 2, "pad": 1}),
    (
        "ceil",
        (1, 4, 5, 4, 1),
        {"filter_size": 3, "strides": 2, "pad": 0, "dim_rounding_mode": "ceil"},
    ),
    (
        "channels first",
        (2, 3, 4, 3, 2),
        {"filter_size": 2, "strides": 1, "pad": "same", "data_format": "NCDHW"},
    ),
    ("no batch", (0, 2, 2, 2, 1), {"filter_size": 2, "strides": 2, "pad": "valid"}),
)
_LARGE_VOLUME: Window = (
    "large",
    (1, 24, 24, 24, 5),
    {"filter_size": 2, "strides": 1, "pad": "valid"},
)


def _chosen(corpus: Corpus, *windows: Window) -> Iterator[Window]:
    """Yield all for floats; every third and the last for integers, which take the same paths."""
    for at, window in enumerate(windows):
        if corpus.floating or at % 3 == 0 or window is windows[-1]:
            yield window


def _specials(corpus: Corpus) -> Array:
    inf, nan = np.inf, np.nan
    x = corpus.of([[1, nan, 3, 4], [5, 6, -inf, -inf], [inf, 1, -1, -2], [0, 2, -3, nan]])
    return x.reshape(1, 4, 4, 1)


def _layouts(corpus: Corpus) -> Iterator[Case]:
    options = {"filter_size": 2, "strides": 2, "pad": "valid"}
    yield Case("transposed", (corpus.ordinary((2, 4, 4, 3)),), options, layout="transposed")
    yield Case("sliced", (corpus.ordinary((2, 4, 4, 3)),), options, layout="sliced")


@cases.of(specs.MAX_POOL, oracle=oracle.max_pool)
def max_pool(corpus: Corpus) -> Iterator[Case]:
    """Padding never wins, not even over negative numbers; NaN always does."""
    for name, shape, options in _chosen(corpus, *WINDOWS, *_ROUNDED, _ONLY_PADDING, _LARGE):
        yield Case(name, (corpus.ordinary(shape),), options)
    lowest = np.min(corpus.edges()[~_missing(corpus)])
    same = {"filter_size": 3, "strides": 1, "pad": "same"}
    yield Case("all lowest", (np.full((1, 3, 3, 1), lowest),), same)
    yield from _layouts(corpus)
    if corpus.floating:
        yield Case("specials", (_specials(corpus),), {**same, "filter_size": 2})


def _missing(corpus: Corpus) -> Any:
    edges = corpus.edges()
    return np.isnan(edges) if corpus.floating else np.zeros(edges.shape, dtype=bool)


@cases.of(specs.AVG_POOL, oracle=oracle.avg_pool)
def avg_pool(corpus: Corpus) -> Iterator[Case]:
    """Divided by the number of elements that exist; NaN where there are none."""
    for name, shape, options in (*WINDOWS, *_ROUNDED, _ONLY_PADDING, _LARGE):
        yield Case(name, (corpus.ordinary(shape),), options)
    yield from _layouts(corpus)
    yield Case("specials", (_specials(corpus),), {"filter_size": 2, "strides": 1, "pad": "same"})


@cases.of(specs.MAX_POOL_WITH_ARGMAX, oracle=oracle.max_pool_with_argmax)
def max_pool_with_argmax(corpus: Corpus) -> Iterator[Case]:
    """The index of the first largest, with and without the image's part; -1 over padding."""
    for name, shape, options in _chosen(corpus, *WINDOWS, _ONLY_PADDING, _LARGE):
        yield Case(name, (corpus.ordinary(shape),), options)
    _, shape, options = WINDOWS[0]
    yield Case("batch", (corpus.ordinary(shape),), {**options, "include_batch_in_index": True})
    many = corpus.ordinary((5, 6, 4, 3))
    yield Case("several images", (many,), {**options, "include_batch_in_index": True})
    same = {"filter_size": 2, "strides": 1, "pad": "same"}
    yield Case("tied", (np.ones_like(corpus.ordinary((2, 3, 3, 2))),), same)
    yield from _layouts(corpus)
    if corpus.floating:
        yield Case("specials", (_specials(corpus),), same)


for spec, reference in (
    (specs.MAX_POOL_3D, oracle.max_pool),
    (specs.AVG_POOL_3D, oracle.avg_pool),
):

    @cases.of(spec, oracle=reference)
    def volumes(corpus: Corpus) -> Iterator[Case]:
        for name, shape, options in _chosen(corpus, *VOLUMES, _LARGE_VOLUME):
            yield Case(name, (corpus.ordinary(shape),), options)


def _pulled(corpus: Corpus, name: str, x: Any, options: dict[str, Any]) -> Case:
    output = oracle.max_pool(x, **options)
    return Case(name, (corpus.ordinary(output.shape), x, output), options)


# The output must be that of the input: no pooling gives other values.
_TOGETHER = ("input", "output")


@cases.of(specs.MAX_POOL_GRAD, oracle=oracle.max_pool_grad, ordinary=_TOGETHER)
def max_pool_grad(corpus: Corpus) -> Iterator[Case]:
    """Ties go to the first in row-major order; overlapping windows add up."""
    for name, shape, options in (*WINDOWS, *_ROUNDED, _ONLY_PADDING):
        yield _pulled(corpus, name, corpus.distinct(shape), options)
    tied = corpus.of(np.ones((1, 4, 4, 2)))
    yield _pulled(corpus, "all tied", tied, {"filter_size": 2, "strides": 2, "pad": "valid"})
    yield _pulled(corpus, "tied same", tied, {"filter_size": 3, "strides": 2, "pad": "same"})
    low = corpus.of(-np.ones((1, 3, 3, 1)))
    yield _pulled(corpus, "all negative", low, {"filter_size": 3, "strides": 1, "pad": "same"})
    same = {"filter_size": 2, "strides": 1, "pad": "same"}
    yield _pulled(corpus, "specials", _specials(corpus), same)
    apart = {"filter_size": 2, "strides": 2, "pad": "valid"}
    yield _pulled(corpus, "specials apart", _specials(corpus), apart)
    yield _pulled(corpus, "large, tied", corpus.small((1, 96, 128, 6)), apart)
    for name, shape in (("few", (2, 6, 8, 3)), ("many", (1, 4, 6, 67))):
        yield _pulled(corpus, f"NaN, {name} channels", _spotted(corpus, shape), apart)


@cases.of(specs.MAX_POOL_3D_GRAD, oracle=oracle.max_pool_grad, ordinary=_TOGETHER)
def max_pool_3d_grad(corpus: Corpus) -> Iterator[Case]:
    for name, shape, options in VOLUMES:
        yield _pulled(corpus, name, corpus.distinct(shape), options)
    options = {"filter_size": 2, "strides": 1, "pad": "same"}
    yield _pulled(corpus, "tied", corpus.small((1, 3, 3, 3, 2)), options)
    yield _pulled(corpus, "large", corpus.small((1, 16, 32, 32, 5)), {**options, "strides": 2})
    volume = {"filter_size": 2, "strides": 2, "pad": "valid"}
    yield _pulled(corpus, "NaN", _spotted(corpus, (2, 4, 6, 4, 3)), volume)


def _spotted(corpus: Corpus, shape: tuple[int, ...]) -> Any:
    """Return numbers with a NaN in every 37th place."""
    x = corpus.distinct(shape)
    x.flat[::37] = np.nan
    return x


def _averaged(corpus: Corpus, window: Window) -> Case:
    name, shape, options = window
    x = corpus.ordinary(shape)
    positions = oracle.avg_pool(x, **options).value.shape
    return Case(name, (corpus.ordinary(positions), x), options)


@cases.of(specs.AVG_POOL_GRAD, oracle=oracle.avg_pool_grad)
def avg_pool_grad(corpus: Corpus) -> Iterator[Case]:
    """Each dy is divided by the number of elements in its window, not by the taps."""
    for window in (*WINDOWS, *_ROUNDED, _ONLY_PADDING, _LARGE):
        yield _averaged(corpus, window)


@cases.of(specs.AVG_POOL_3D_GRAD, oracle=oracle.avg_pool_grad)
def avg_pool_3d_grad(corpus: Corpus) -> Iterator[Case]:
    for window in (*VOLUMES, _LARGE_VOLUME):
        yield _averaged(corpus, window)


_POOLS: tuple[Window, ...] = (
    ("defaults", (1, 4, 5, 2), {"window_shape": 2, "pad": "valid"}),
    ("dilated", (1, 6, 7, 2), {"window_shape": (2, 3), "pad": "valid", "dilations": 2}),
    ("dilated, same", (1, 5, 4, 1), {"window_shape": 2, "pad": "same", "dilations": (2, 3)}),
    ("strided", (1, 6, 6, 2), {"window_shape": 2, "pad": "same", "strides": 3}),
    (
        "both",
        (1, 9, 9, 1),
        {"window_shape": 2, "pad": 1, "strides": 2, "dilations": 3, "dim_rounding_mode": "ceil"},
    ),
    ("one axis", (2, 7, 3), {"window_shape": 3, "pad": "same", "strides": 2}),
    ("three axes", (1, 4, 3, 4, 1), {"window_shape": 2, "pad": "valid", "dilations": 2}),
    ("explicit pad", (1, 4, 4, 1), {"window_shape": 2, "pad": _PAIRS, "dilations": 2}),
    (
        "far apart, padded behind",
        (1, 9, 9, 1),
        {"window_shape": 2, "pad": ((0, 0), (0, 2), (0, 2), (0, 0)), "dilations": 3},
    ),
    ("no batch", (0, 4, 4, 1), {"window_shape": 2, "pad": "same"}),
    ("large", (1, 128, 128, 5), {"window_shape": 2, "pad": "same", "dilations": 2}),
)


@cases.of(specs.POOL, oracle=oracle.pool)
def pool(corpus: Corpus) -> Iterator[Case]:
    """One to three axes, taps apart, for the average and the largest."""
    for kind in ("max", "avg"):
        for name, shape, options in _chosen(corpus, *_POOLS):
            attributes = {**options, "pooling_type": kind}
            yield Case(f"{kind}: {name}", (corpus.ordinary(shape),), attributes)


# Gradients -----------------------------------------------------------------------------------

_POINTS: tuple[Window, ...] = (
    ("2x2", (1, 4, 4, 1), {"filter_size": 2, "strides": 2, "pad": "valid"}),
    ("overlapping", (1, 4, 4, 1), {"filter_size": 2, "strides": 1, "pad": "same"}),
    (
        "ceil",
        (1, 4, 4, 1),
        {"filter_size": 3, "strides": 2, "pad": 0, "dim_rounding_mode": "ceil"},
    ),
    ("padded", (1, 3, 3, 2), {"filter_size": 2, "strides": 1, "pad": _PAIRS}),
    *(
        (
            f"pad 1, {how}",
            (1, 4, 4, 1),
            {"filter_size": 3, "strides": 2, "pad": 1, "dim_rounding_mode": how},
        )
        for how in ("floor", "round")
    ),
    ("odd channels", (3, 5, 4, 7), {"filter_size": (2, 3), "strides": 2, "pad": "same"}),
    ("many channels", (1, 3, 3, 31), {"filter_size": 2, "strides": 1, "pad": "valid"}),
    # bfloat16 has no more numbers that are 0.5 apart.
    ("many images", (67, 2, 2, 1), {"filter_size": 2, "strides": 1, "pad": "valid"}),
    ("beyond the input", (2, 3, 2, 3), {"filter_size": (5, 7), "strides": 1, "pad": "same"}),
    ("images, far strides", (3, 9, 7, 3), {"filter_size": 2, "strides": 4, "pad": "valid"}),
    ("no batch", (0, 4, 4, 1), {"filter_size": 2, "strides": 2, "pad": "valid"}),
)
_VOLUME_POINTS: tuple[Window, ...] = (
    ("2x2x2", (1, 2, 4, 2, 1), {"filter_size": 2, "strides": 2, "pad": "valid"}),
    ("same", (1, 2, 3, 2, 1), {"filter_size": 2, "strides": 1, "pad": "same"}),
    (
        "channels first",
        (1, 2, 2, 2, 3),
        {"filter_size": 2, "strides": 1, "pad": 1, "data_format": "NCDHW"},
    ),
    (
        "ceil",
        (1, 2, 3, 4, 1),
        {"filter_size": 2, "strides": 2, "pad": 0, "dim_rounding_mode": "ceil"},
    ),
    (
        "padded",
        (1, 2, 3, 2, 1),
        {"filter_size": 2, "strides": 1, "pad": ((0, 0), (1, 0), (0, 1), (0, 0), (0, 0))},
    ),
    ("no batch", (0, 2, 2, 2, 1), {"filter_size": 2, "strides": 2, "pad": "valid"}),
)
_PLACED_POINTS: tuple[Window, ...] = (
    *_POINTS[:2],
    ("numeric pad", (1, 4, 3, 1), {"filter_size": 3, "strides": 2, "pad": 1}),
    ("padded", (1, 3, 3, 2), {"filter_size": 2, "strides": 1, "pad": _PAIRS}),
    (
        "batch",
        (2, 2, 2, 1),
        {"filter_size": 2, "strides": 1, "pad": "valid", "include_batch_in_index": True},
    ),
    _POINTS[-1],
)


def _at(points: tuple[Window, ...]) -> Callable[[Corpus], Iterator[Case]]:
    def generate(corpus: Corpus) -> Iterator[Case]:
        for name, shape, options in points:
            yield Case(name, (corpus.distinct(shape),), options)

    return generate


def _at_averages(points: tuple[Window, ...]) -> Callable[[Corpus], Iterator[Case]]:
    def generate(corpus: Corpus) -> Iterator[Case]:
        for window in points:
            yield _averaged(corpus, window)

    return generate


def _at_winners(points: tuple[Window, ...]) -> Callable[[Corpus], Iterator[Case]]:
    def generate(corpus: Corpus) -> Iterator[Case]:
        for name, shape, options in points:
            yield _pulled(corpus, name, corpus.distinct(shape), options)

    return generate


_SMOOTH: tuple[tuple[KernelSpec, str, Callable[[Corpus], Iterator[Case]]], ...] = (
    (specs.MAX_POOL, "x", _at(_POINTS)),
    (specs.AVG_POOL, "x", _at(_POINTS)),
    (specs.MAX_POOL_3D, "x", _at(_VOLUME_POINTS)),
    (specs.AVG_POOL_3D, "x", _at(_VOLUME_POINTS)),
    (specs.MAX_POOL_WITH_ARGMAX, "x", _at(_PLACED_POINTS)),
    (specs.MAX_POOL_GRAD, "dy", _at_winners(_POINTS)),
    (specs.MAX_POOL_3D_GRAD, "dy", _at_winners(_VOLUME_POINTS)),
    (specs.AVG_POOL_GRAD, "dy", _at_averages(_POINTS)),
    (specs.AVG_POOL_3D_GRAD, "dy", _at_averages(_VOLUME_POINTS)),
)
for spec, wrt, points in _SMOOTH:
    cases.gradients(spec, wrt)(points)


@cases.gradients(specs.POOL, "input")
def pool_points(corpus: Corpus) -> Iterator[Case]:
    options = {"window_shape": 2, "pad": "same", "dilations": 2}
    for kind in ("max", "avg"):
        attributes = {**options, "pooling_type": kind}
        yield Case(f"{kind}: image", (corpus.distinct((1, 4, 3, 1)),), attributes)
        yield Case(f"{kind}: row", (corpus.distinct((1, 6, 2)),), attributes)
        for name, shape, options in (
            ("valid", (1, 4, 3, 1), {"window_shape": 2, "pad": "valid", "strides": 2}),
            (
                "numeric pad, ceil",
                (1, 5, 4, 1),
                {
                    "window_shape": 2,
                    "pad": 1,
                    "strides": 2,
                    "dilations": 3,
                    "dim_rounding_mode": "ceil",
                },
            ),
            ("explicit pad", (1, 3, 3, 1), {"window_shape": 2, "pad": _PAIRS}),
            ("three axes", (1, 2, 3, 2, 1), {"window_shape": 2, "pad": "valid"}),
            ("no batch", (0, 4, 4, 1), {"window_shape": 2, "pad": "same"}),
        ):
            attributes = {**options, "pooling_type": kind}
            yield Case(f"{kind}: {name}", (corpus.distinct(shape),), attributes)
