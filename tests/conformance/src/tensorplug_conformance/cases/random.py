"""Cases for random numbers: keys and counters at their limits, sizes that end within a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug import dtypes as dt
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops import random as ops
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import random as oracle
from tensorplug_conformance.tables import Case, CaseTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.spec import KernelSpec
    from tensorplug_conformance.corpus import Corpus
    from tensorplug_conformance.tables import Array, Reference

cases = CaseTable()

_KEYS: Final = {
    "zeros": (0, 0, 0, 0),
    "ones": (0xFFFFFFFF,) * 4,
    "pi": (0xA4093822, 0x299F31D0, 0x13198A2E, 0x03707344),
}
_STARTS: Final = (2**32 - 2, 2**63, 2**64 - 1)  # the lower word overflows, both of them do
_SHAPES: Final[dict[str, tuple[int, ...]]] = {
    "rank 0": (),
    "empty": (2, 0, 3),
    "one": (1,),
    "odd": (7,),
    "rank 6": (1, 2, 1, 3, 1, 2),
    "large": (LARGE,),
}


def _key(name: str) -> Array:
    return np.array(_KEYS[name], dtype=np.uint32)


@cases.of(ops.RANDOM_BITS, oracle=oracle.bits)
def random_bits(_corpus: Corpus) -> Iterator[Case]:
    """Every key, the counter's limits, and what is no key."""
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


_real(ops.RANDOM_UNIFORM, oracle.uniform)
_real(ops.RANDOM_EXPONENTIAL, oracle.exponential)
_real(ops.RANDOM_NORMAL, oracle.normal)


@cases.of(ops.RANDOM_INTEGERS, oracle=oracle.integers, dtypes=(dt.uint32, dt.uint64))
def random_integers(corpus: Corpus) -> Iterator[Case]:
    """Spans from 1 to all integers there are (0), one for all elements and one for each."""
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
