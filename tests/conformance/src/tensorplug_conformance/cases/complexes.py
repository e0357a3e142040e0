"""Cases for the parts of complex numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.floats import finfo
from tensorplug_conformance.oracle import complexes as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

cases.of(specs.COMPLEX, oracle=oracle.joined)(patterns.binary)
cases.gradients(specs.COMPLEX, "real", "imag")(patterns.pairs(-2.0, 2.0))


for spec, reference in ((specs.REAL, oracle.real), (specs.IMAG, oracle.imag)):

    @cases.of(spec, oracle=reference, signed_zero=True)
    def part(corpus: Corpus) -> Iterator[Case]:
        """Each part is exact, whatever the other one is."""
        yield from patterns.unary(corpus)
        if corpus.dtype in dt.COMPLEX:
            yield Case("special parts", (corpus.special_parts(),))


@cases.of(specs.CONJ, oracle=oracle.conjugate)
def conj(corpus: Corpus) -> Iterator[Case]:
    """Special parts too."""
    yield from patterns.unary(corpus)
    if corpus.dtype in dt.COMPLEX:
        yield Case("special parts", (corpus.special_parts(),))


@cases.of(specs.COMPLEX_ABS, oracle=oracle.modulus)
def complex_abs(corpus: Corpus) -> Iterator[Case]:
    """Parts whose squares overflow or vanish; infinities count for more than NaN."""
    yield from patterns.unary(corpus)
    about: Any = finfo(corpus.dtype.numpy)
    sizes = np.array([0.0, about.tiny, about.max / 4, about.max / 2])
    yield Case("sizes", (corpus.of(sizes[:, None] + 1j * sizes),))
    digits = np.arange(np.log10(about.tiny), np.log10(about.max), 3)
    yield Case("all magnitudes", (corpus.of((0.75 + 0.5j) * 10.0**digits),))
    infinite = corpus.of([complex(np.inf, np.nan), complex(np.nan, -np.inf), complex(-np.inf, 1)])
    special = (corpus.of([np.inf, np.inf, np.inf]).real,)
    yield Case("infinite", (infinite,), expected=special)
    plain = corpus.of([complex(np.nan, 1), complex(2, np.nan)])
    yield Case("not numbers", (plain,), expected=(corpus.of([np.nan, np.nan]).real,))


for spec in (specs.REAL, specs.IMAG, specs.CONJ):
    cases.gradients(spec, "input" if "input" in spec.input_names else "x")(patterns.near(-2, 2))


@cases.gradients(specs.COMPLEX_ABS, "x")
def modulus_points(corpus: Corpus) -> Iterator[Case]:
    """Far from 0, where it has a kink; there the gradient is 0."""
    yield from patterns.near(1, 2)(corpus)
    nothing = corpus.of([0, 0])
    yield Case("at 0", (nothing,), expected=(nothing,))
