"""Conformance cases, with which the suite certifies the kernels of every backend.

Only the suite imports this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tensorplug.plugin import ArgumentError
from tensorplug_conformance import Bounded, Case, CaseTable, computing, finfo
from tensorplug_conformance.corpus import LARGE, wide

from tensorplug_example_swish.op import SWISH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance import Corpus
    from tensorplug_conformance.tables import Array

cases = CaseTable()


# REPLACE: an independent way to compute the op, and the accuracy that a kernel must have.
def oracle(x: Array, *, beta: float = 1.0) -> Bounded:
    """Return ``x / (1 + e**-(beta x))`` in wide arithmetic.

    The exponential makes a relative error of beta x |beta x| times as large; the other steps cost
    a few eps. All are eps of the dtype that kernels compute in: bfloat16 is rounded to at the end
    alone. A sigmoid below the smallest normal number has an error of up to the smallest subnormal
    number, which is then multiplied by x.
    """
    limits = finfo(computing(x.dtype))
    z = wide(x)
    scaled = z * wide(np.asarray(beta, x.dtype))
    with np.errstate(all="ignore"):
        value = np.where(np.isneginf(z), 0, z) / (1 + np.exp(-scaled))
        relative = (np.abs(scaled) + 8) * limits.eps
        bound = np.abs(value) * relative + np.abs(z) * limits.smallest_subnormal
    return Bounded(np.asarray(value), np.asarray(bound))


# REPLACE: the calls to test.
@cases.of(SWISH, oracle=oracle)
def swish(corpus: Corpus) -> Iterator[Case]:
    """Cover both tails, both infinities, several betas, and invalid betas."""
    yield Case("edges", (corpus.edges(),))
    yield Case("steep", (corpus.edges(),), {"beta": 1.702})
    yield Case("flat", (corpus.ordinary((5, 3)),), {"beta": 0.125})
    yield Case("tails", (corpus.of([-90.0, -20.0, -9.0, 9.0, 20.0, 90.0]),))
    yield Case("rank 0", (corpus.ordinary(()),))
    yield Case("rank 6", (corpus.ordinary((2, 1, 3, 1, 2, 3)),))
    yield Case("empty", (corpus.ordinary((0, 3)),))
    yield Case("large", (corpus.ordinary((LARGE,)),))
    yield Case("transposed", (corpus.ordinary((3, 4)),), layout="transposed")
    yield Case("sliced", (corpus.ordinary((3, 4)),), layout="sliced")
    for beta in (0.0, -1.0, float("inf"), float("nan"), "1", True):
        x = corpus.ordinary((2,))
        yield Case(f"beta {beta!r}", (x,), {"beta": beta}, expected=ArgumentError)


# REPLACE: points for each gradient.
@cases.gradients(SWISH, "x")
def smooth(corpus: Corpus) -> Iterator[Case]:
    """Cover ordinary points: the op is smooth everywhere."""
    yield Case("row", (corpus.ordinary((5,)),))
    yield Case("matrix", (corpus.ordinary((2, 3)),), {"beta": 2.0})
