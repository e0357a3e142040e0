"""Cases for activation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug import dtypes as dt
from tensorplug.ops import activation as ops
from tensorplug_conformance import patterns
from tensorplug_conformance.oracle import activation as oracle
from tensorplug_conformance.tables import Case, CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

cases.of(ops.RELU, oracle=oracle.relu)(patterns.unary)


@cases.of(ops.SIGMOID, oracle=oracle.sigmoid)
def sigmoid(corpus: Corpus) -> Iterator[Case]:
    """Far out on both sides, where the naive formula overflows."""
    if corpus.dtype in dt.COMPLEX:  # away from the poles at i * pi
        for case in patterns.unary(corpus, lambda shape: corpus.ordinary(shape, -2.0, 2.0)):
            if "edges" not in case.id:
                yield case
    else:
        yield from patterns.unary(corpus)
    if corpus.floating:
        yield Case("far", (corpus.of([-9.5, -8.0, 8.0, 9.5, 50.0, -1000.0, 1000.0]),))


for spec, reference, name in (
    (ops.SOFTMAX, oracle.softmax, "dim"),
    (ops.LOG_SOFTMAX, oracle.log_softmax, "axis"),
):

    @cases.of(spec, oracle=reference)
    def normalized(corpus: Corpus, name: str = name) -> Iterator[Case]:
        """Every axis, one class, scores that overflow when they are not shifted first."""
        yield Case("last axis", (corpus.ordinary((3, 4)),))
        yield Case("first axis", (corpus.ordinary((4, 4)),), {name: 0})
        yield Case("middle axis", (corpus.ordinary((3, 3, 3)),), {name: 1})
        yield Case("negative axis", (corpus.ordinary((2, 3, 2)),), {name: -2})
        yield Case("one class", (corpus.ordinary((3, 1)),))
        yield Case("rank 1", (corpus.ordinary((7,)),))
        yield Case("rank 6", (corpus.ordinary((1, 2, 1, 3, 1, 2)),), {name: 3})
        yield Case("empty", (corpus.ordinary((0, 3)),))
        yield Case("shifted", (corpus.of([[1000.0, 1001, 999], [-1000, -1001, -1000]]),))
        yield Case("uniform", (corpus.of(np.zeros((2, 5))),))
        yield Case("infinities", (corpus.of([[-np.inf, 0, 1], [np.inf, 0, 1], [np.nan, 0, 1]]),))
        yield Case("large", (corpus.ordinary((257, 259)),))
        yield Case("many classes", (corpus.ordinary((2, 1000)),))
        yield Case("transposed", (corpus.ordinary((3, 4)),), layout="transposed")
        yield Case("sliced", (corpus.ordinary((3, 4)),), layout="sliced")

    @cases.gradients(spec, "logits")
    def normalized_points(corpus: Corpus, name: str = name) -> Iterator[Case]:
        yield Case("last axis", (corpus.ordinary((2, 3), -1.0, 1.0),))
        yield Case("first axis", (corpus.ordinary((3, 2), -1.0, 1.0),), {name: 0})
        yield Case("middle axis", (corpus.ordinary((2, 2, 2), -1.0, 1.0),), {name: -2})


@cases.gradients(ops.RELU, "x")
def relu_points(corpus: Corpus) -> Iterator[Case]:
    yield Case("both sides", (corpus.of([-2.0, -0.5, 0.5, 3.0]),))
    yield Case("at 0", (corpus.of([0.0, -0.0]),), expected=(corpus.of([0.0, 0.0]),))


@cases.gradients(ops.SIGMOID, "x")
def sigmoid_points(corpus: Corpus) -> Iterator[Case]:
    yield Case("row", (corpus.ordinary((5,), -2.0, 2.0),))
    yield Case("rank 3", (corpus.ordinary((2, 1, 3), -2.0, 2.0),))
