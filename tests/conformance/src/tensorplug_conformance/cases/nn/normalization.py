"""Cases for normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.nn import normalization as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shape = tuple[int, ...]


def _batch(
    corpus: Corpus, name: str, shape: Shape, of: Shape, *, present: str = "so", **more: Any
) -> Case:
    """Return a case with statistics of shape ``of``; ``present``: scale, offset, both or none."""
    scale = corpus.ordinary(of) if "s" in present else None
    offset = corpus.ordinary(of) if "o" in present else None
    mean, variance = corpus.ordinary(of, -1.0, 1.0), corpus.ordinary(of, 0.25, 4.0)
    return Case(name, (corpus.ordinary(shape), scale, offset, mean, variance), **more)


# Kernels may divide by an infinite variance, or multiply by its reciprocal.
@cases.of(specs.FUSED_BATCH_NORM, oracle=oracle.batch_norm, ordinary=("variance",))
def batch_norm(corpus: Corpus) -> Iterator[Case]:
    """Statistics per channel, per element and in one number; scale and offset may be absent."""
    yield _batch(corpus, "NHWC", (2, 3, 4, 3), (3,))
    yield _batch(corpus, "rank 2", (5, 7), (7,))
    yield _batch(corpus, "rank 1", (7,), (7,))
    yield _batch(corpus, "rank 0", (), ())
    yield _batch(corpus, "rank 5", (1, 2, 2, 3, 2), (2,))
    yield _batch(corpus, "no scale", (2, 3, 3), (3,), present="o")
    yield _batch(corpus, "no offset", (2, 3, 3), (3,), present="s")
    yield _batch(corpus, "mean and variance only", (2, 3, 3), (3,), present="")
    yield _batch(corpus, "one number", (2, 3, 3), (1,))
    yield _batch(corpus, "numbers of rank 0", (2, 3, 3), ())
    yield _batch(corpus, "each element", (2, 3, 3), (2, 3, 3))
    yield _batch(corpus, "kept axes", (2, 3, 3), (1, 1, 3))
    yield _batch(corpus, "NCHW", (2, 3, 4, 2), (1, 3, 1, 1))
    yield _batch(corpus, "empty batch", (0, 3, 3), (3,))
    yield _batch(corpus, "no channels", (2, 0), (0,))
    yield _batch(corpus, "one channel", (6, 1), (1,))
    yield _batch(corpus, "large", (3, 91, 83, 3), (3,))
    yield _batch(corpus, "many channels", (33, 600), (600,))
    for layout in ("transposed", "sliced"):
        yield _batch(corpus, layout, (2, 4, 3), (3,), layout=layout)
    yield _batch(
        corpus, "epsilon", (2, 3), (3,), attributes={"variance_epsilon": 0.5}, present="o"
    )
    one = corpus.of([1.0])
    far = corpus.of([[256.0], [257.0], [255.0]])
    yield Case("far from 0", (far, one, one, corpus.of([256.0]), one))
    x = corpus.of([[1.0, -1.0, 2.0, np.inf, np.nan, 0.0]])
    none = corpus.of([0.0] * 6)
    yield Case("variance 0", (x, None, None, none, none), {"variance_epsilon": 0.0})


@cases.gradients(specs.FUSED_BATCH_NORM, "x", "scale", "offset", "mean", "variance")
def batch_norm_points(corpus: Corpus) -> Iterator[Case]:
    yield _batch(corpus, "per channel", (2, 2, 3), (3,))
    yield _batch(corpus, "kept axes", (2, 2, 2), (1, 2, 1))
    yield _batch(corpus, "rank 0", (), ())
    yield _batch(corpus, "one number", (2, 3), (1,))
    yield _batch(corpus, "numbers of rank 0", (2, 3), ())
    yield _batch(corpus, "each element", (2, 1, 2), (2, 1, 2))
    for present, what in (("o", "no scale"), ("s", "no offset"), ("", "neither")):
        yield _batch(corpus, what, (3, 2), (2,), present=present)
    yield _batch(corpus, "empty batch", (0, 3), (3,))
    yield _batch(corpus, "no channels", (2, 0), (0,))


_OPTIONS: tuple[tuple[str, Shape, dict[str, Any]], ...] = (
    ("defaults", (1, 2, 2, 7), {}),
    ("rank 3", (2, 2, 12), {}),
    ("narrow", (1, 2, 3, 5), {"depth_radius": 1, "bias": 2, "alpha": 0.5, "beta": 0.75}),
    ("alone", (1, 2, 2, 3), {"depth_radius": 0}),
    ("all channels", (1, 1, 2, 4), {"depth_radius": 9}),
    ("almost all", (1, 1, 2, 5), {"depth_radius": 3, "alpha": 0.25}),
    ("AlexNet", (1, 2, 2, 9), {"depth_radius": 2, "bias": 2.0, "alpha": 1e-2, "beta": 0.75}),
    ("power", (1, 2, 2, 5), {"depth_radius": 2, "beta": 1.3}),
    ("growing", (1, 2, 2, 5), {"depth_radius": 1, "beta": -0.5}),
    ("constant", (1, 1, 2, 3), {"depth_radius": 1, "beta": 0}),
    ("rank 1", (6,), {"depth_radius": 2}),
    ("rank 2", (3, 6), {"depth_radius": 2}),
    ("rank 5", (1, 2, 1, 2, 5), {"depth_radius": 1}),
    ("one channel", (2, 3, 1), {}),
    ("no batch", (0, 2, 2, 3), {}),
    ("no channels", (2, 2, 0), {}),
)


@cases.of(specs.LRN, oracle=oracle.lrn)
def lrn(corpus: Corpus) -> Iterator[Case]:
    """Windows narrower and wider than the channels, and powers with and without roots."""
    for name, shape, options in _OPTIONS:
        yield Case(name, (corpus.ordinary(shape),), options)
    yield Case("large", (corpus.ordinary((1, 37, 91, 23)),), {"depth_radius": 4})
    yield Case("zeros", (corpus.of(np.zeros((2, 3))),))
    yield Case("no bias", (corpus.ordinary((2, 4), 0.5, 2.0),), {"bias": 0, "depth_radius": 1})
    yield Case("infinite", (corpus.of([[1, np.inf, 2, 3], [0, 1, 2, np.nan]]),), _NARROW)
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.ordinary((2, 4, 6)),), _NARROW, layout=layout)


_NARROW = {"depth_radius": 1}


def _pulled(corpus: Corpus, name: str, x: Array, options: dict[str, Any]) -> Case:
    y = corpus.of(oracle.lrn(x, **options).value)
    return Case(name, (x, y, corpus.ordinary(x.shape)), options)


# The output must be that of the input: no normalization gives other values.
@cases.of(specs.LRN_GRAD, oracle=oracle.lrn_grad, ordinary=("x", "y"))
def lrn_grad(corpus: Corpus) -> Iterator[Case]:
    """The windows of LRN."""
    for name, shape, options in _OPTIONS:
        yield _pulled(corpus, name, corpus.ordinary(shape), options)
    yield _pulled(corpus, "large", corpus.ordinary((1, 37, 91, 23)), {"depth_radius": 4})
    for layout in ("transposed", "sliced"):
        inputs = tuple(corpus.ordinary((2, 4, 6)) for _ in range(3))
        yield Case(layout, inputs, _NARROW, layout=layout)


@cases.gradients(specs.LRN, "x")
def lrn_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape, options in (*_OPTIONS[2:7], *_OPTIONS[10:]):
        yield Case(name, (corpus.ordinary(shape, -1.0, 1.0),), options)


@cases.gradients(specs.LRN_GRAD, "x", "y", "dy")
def lrn_grad_points(corpus: Corpus) -> Iterator[Case]:
    for name, options in (
        ("narrow", {"depth_radius": 1, "bias": 2, "alpha": 0.5, "beta": 0.75}),
        ("wide", {"depth_radius": 2}),
    ):
        inputs = tuple(corpus.ordinary((1, 2, 4), -1.0, 1.0) for _ in range(3))
        yield Case(name, inputs, options)
    for name, shape in (("rank 1", (5,)), ("one channel", (3, 1)), ("no batch", (0, 2, 3))):
        inputs = tuple(corpus.ordinary(shape, -1.0, 1.0) for _ in range(3))
        yield Case(name, inputs, {"depth_radius": 1})
