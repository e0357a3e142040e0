"""Cases for random numbers: keys and counters at their limits, sizes that end within a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import ArgumentError, DTypeError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import random as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case import Array, Reference
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

_KEYS: Final = {
    "zeros": (0, 0, 0, 0),
    "ones": (0xFFFFFFFF,) * 4,
    "pi": (0xA4093822, 0x299F31D0, 0x13198A2E, 0x03707344),
}
_STARTS: Final = (2**32 - 2, 2**63, 2**64 - 1)  # the lower word overflows, both words overflow
_SHAPES: Final[dict[str, tuple[int, ...]]] = {
    "rank 0": (),
    "empty": (2, 0, 3),
    "one": (1,),
    "odd": (7,),
    "rank 6": (1, 2, 1, 3, 1, 2),
    "large": (LARGE,),
    "larger": (4 * LARGE,),
}


def _key(name: str) -> Array:
    return np.array(_KEYS[name], dtype=np.uint32)


@cases.of(specs.RANDOM_BITS, oracle=oracle.bits)
def random_bits(_corpus: Corpus) -> Iterator[Case]:
    """Every key, the counter's limits, and tensors that are not keys."""
    for name in _KEYS:
        yield Case(f"key {name}", (_key(name),), {"shape": (9,)})
    for start in _STARTS:
        yield Case(f"start {start:x}", (_key("pi"),), {"shape": (13,), "start": start})
    for name, shape in _SHAPES.items():
        yield Case(name, (_key("pi"),), {"shape": shape})
    yield Case("sliced", (_key("pi"),), {"shape": (5,)}, "sliced")
    yield Case("no key", (_key("pi")[:3],), {"shape": (5,)}, expected=ShapeError)
    wrong = {"shape": (5,), "start": 2**64}
    yield Case("no counter", (_key("pi"),), wrong, expected=ArgumentError)


def _real(spec: KernelSpec, reference: Callable[..., Reference]) -> None:
    """Add the cases of a kernel that draws floats."""

    @cases.of(spec, oracle=reference, dtypes=sorted(dt.FLOATING, key=str))
    def draw(corpus: Corpus) -> Iterator[Case]:
        dtype = corpus.dtype.name
        for name in _KEYS:
            yield Case(f"key {name}", (_key(name),), {"shape": (9,), "dtype": dtype})
        for start in _STARTS:
            attributes = {"shape": (13,), "start": start, "dtype": dtype}
            yield Case(f"start {start:x}", (_key("pi"),), attributes)
        for name, shape in _SHAPES.items():
            yield Case(name, (_key("pi"),), {"shape": shape, "dtype": dtype})
        wrong = {"shape": (5,), "dtype": "int32"}
        yield Case("no float", (_key("pi"),), wrong, expected=DTypeError)


_real(specs.RANDOM_UNIFORM, oracle.uniform)
_real(specs.RANDOM_EXPONENTIAL, oracle.exponential)
_real(specs.RANDOM_NORMAL, oracle.normal)


@cases.of(specs.RANDOM_INTEGERS, oracle=oracle.integers, dtypes=(dt.uint32, dt.uint64))
def random_integers(corpus: Corpus) -> Iterator[Case]:
    """Spans from 1 to all integers (0), one for all elements and one per element."""
    key = _key("pi")
    for span in corpus.edges().tolist():
        yield Case(f"span {span}", (key, corpus.of(span)), {"shape": (9,)})
    for name, shape in _SHAPES.items():
        yield Case(name, (key, corpus.of(1000)), {"shape": shape})
    spans = corpus.edges()[:8]
    yield Case("spans", (key, spans), {"shape": (8,)})
    yield Case("spans of rank 2", (key, spans.reshape(2, 4)), {"shape": (2, 4)})
    yield Case("spans, transposed", (key, spans.reshape(2, 4)), {"shape": (2, 4)}, "transposed")
    for start in _STARTS:
        yield Case(f"start {start:x}", (key, corpus.of(10)), {"shape": (5,), "start": start})
    yield Case("broadcast", (key, spans[:4]), {"shape": (2, 4)}, expected=ShapeError)


@cases.of(specs.MULTINOMIAL, oracle=oracle.multinomial, ordinary=("logits",))
def multinomial(corpus: Corpus) -> Iterator[Case]:
    """One row and several, outcomes of probability 0, seeds of every kind."""
    for seed in (0, 1, 2**64 - 1, 5.0, 0.25):
        how = {"num_samples": 50, "seed": seed}
        yield Case(f"seed {seed}", (corpus.ordinary((3, 5)),), how)
    how = {"num_samples": 40, "seed": 3}
    yield Case("one row", (corpus.ordinary((4,)),), how)
    yield Case("one outcome", (corpus.ordinary((2, 1)),), how)
    yield Case("no samples", (corpus.ordinary((2, 3)),), {**how, "num_samples": 0})
    yield Case("no rows", (corpus.ordinary((0, 3)),), how)
    yield Case("many outcomes", (corpus.ordinary((2, 999)),), how)
    yield Case("large", (corpus.ordinary((2, 3)),), {**how, "num_samples": LARGE // 2 + 1})
    yield Case("transposed", (corpus.ordinary((3, 4)),), how, layout="transposed")
    far = corpus.of([[1000.0, 998.0, -np.inf], [-1000.0, -np.inf, -999.0]])
    yield Case("far", (far,), how)
    for name, chances in (
        ("probabilities", [[0.1, 0.2, 0.7], [0.5, 0.0, 0.5]]),
        ("weights", [[1, 2, 5], [0, 0, 3]]),
    ):
        yield Case(name, (corpus.of(chances),), {**how, "normalized": True})
    yield Case("rank 3", (corpus.ordinary((1, 2, 3)),), how, expected=ShapeError)
    yield Case("no outcomes", (corpus.ordinary((2, 0)),), how, expected=ShapeError)
    negative = {**how, "num_samples": -1}
    yield Case("fewer", (corpus.ordinary((2, 2)),), negative, expected=ArgumentError)
    wrong = {**how, "seed": -1}
    yield Case("negative seed", (corpus.ordinary((2, 2)),), wrong, expected=ArgumentError)
