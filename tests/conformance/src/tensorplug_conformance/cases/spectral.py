"""Cases for Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle import spectral as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

_SHAPES = (
    (1,),
    (2,),
    (3,),
    (4,),
    (7,),
    (8,),
    (12,),
    (2, 5),
    (3, 2, 6),
    (1, 2, 1, 2, 1, 4),
    (0, 4),
    (2, 67),  # a prime
    (1, 180),
    (1, 521),  # a large prime
    (513, 128),  # more than 2**16 elements
)


def _named(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


for spec, reference in ((specs.FFT, oracle.fft), (specs.IFFT, oracle.ifft)):

    @cases.of(spec, oracle=reference)
    def transform(corpus: Corpus) -> Iterator[Case]:
        """Powers of two, composite numbers, primes; impulses and constants."""
        for shape in _SHAPES:
            yield Case(_named(shape), (corpus.ordinary(shape),))
        yield Case("zeros", (corpus.of([0] * 6),))
        yield Case("impulse", (corpus.of([0, 1, 0, 0, 0, 0, 0, 0]),))
        yield Case("constant", (corpus.of([1 + 2j] * 9),))
        yield Case("wide range", (corpus.of([1e4, 1e-4, -1e4j, 1e-4j, 1, 0]),))
        for layout in ("transposed", "sliced"):
            yield Case(layout, (corpus.ordinary((3, 5)),), layout=layout)
        yield Case("empty axis", (corpus.ordinary((2, 0)),), expected=ShapeError)
        yield Case("scalar", (corpus.ordinary(()),), expected=ShapeError)


# How far an infinity spreads depends on how the sum is split.
@cases.of(specs.RFFT, oracle=oracle.rfft, ordinary=("input",))
def real_transform(corpus: Corpus) -> Iterator[Case]:
    """Even and odd lengths, cut and filled up."""
    for shape in _SHAPES:
        yield Case(_named(shape), (corpus.ordinary(shape),))
    for length in (1, 2, 5, 6, 9, 16):
        yield Case(f"6 as {length}", (corpus.ordinary((2, 6)),), {"fft_length": length})
    yield Case("filled from nothing", (corpus.ordinary((2, 0)),), {"fft_length": 3})
    yield Case("impulse", (corpus.of([0, 1, 0, 0, 0, 0, 0, 0]),))
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.ordinary((3, 5)),), layout=layout)
    yield Case("empty axis", (corpus.ordinary((2, 0)),), expected=ShapeError)
    yield Case("no points", (corpus.ordinary((4,)),), {"fft_length": 0}, expected=ShapeError)
    yield Case("scalar", (corpus.ordinary(()),), expected=ShapeError)


@cases.of(specs.IRFFT, oracle=oracle.irfft)
def inverse_real_transform(corpus: Corpus) -> Iterator[Case]:
    """Imaginary parts that are ignored; even and odd lengths, cut and filled up."""
    for shape in _SHAPES:
        if shape[-1] > 1:
            yield Case(_named(shape), (corpus.ordinary(shape),))
        odd = {"fft_length": 2 * shape[-1] - 1}
        yield Case(f"{_named(shape)} odd", (corpus.ordinary(shape),), odd)
    for length in (1, 2, 5, 6, 9, 16):
        yield Case(f"4 as {length}", (corpus.ordinary((2, 4)),), {"fft_length": length})
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.ordinary((3, 5)),), layout=layout)
    yield Case("one element", (corpus.ordinary((1,)),), expected=ShapeError)
    yield Case("scalar", (corpus.ordinary(()),), expected=ShapeError)


# Gradients: the functions are linear, so any point suffices. --------------------------------

_SMALL = ((1,), (2,), (5,), (2, 3), (1, 2, 1, 4), (0, 3))


for spec in (specs.FFT, specs.IFFT):

    @cases.gradients(spec, "input")
    def transform_points(corpus: Corpus) -> Iterator[Case]:
        for shape in _SMALL:
            yield Case(_named(shape), (corpus.ordinary(shape),))


for spec in (specs.RFFT, specs.IRFFT):

    @cases.gradients(spec, "input")
    def real_transform_points(corpus: Corpus) -> Iterator[Case]:
        """Lengths even and odd, cut and filled up."""
        for shape in _SMALL:
            for length in (1, 2, 3, 4, 7):
                inputs = (corpus.ordinary(shape),)
                yield Case(f"{_named(shape)} as {length}", inputs, {"fft_length": length})
