"""Cases of other sizes and ranks, derived from those cases whose inputs the corpus drew.

The spec decides which inputs fit together: a size is changed in one axis of one input, else in
the same axis of all inputs, else wherever it occurs. What the spec refuses is left out.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from dataclasses import replace
from itertools import chain, product
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import TensorplugError
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import flat, refilled
from tensorplug_conformance.corpus import JUST_LARGER, PERIOD, VAST
from tensorplug_conformance.variants.ranks import other_ranks, ranks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.corpus import Corpus


# 7 modulo 8: all lanes of a vector but one; a prime; a power of two
_TAILS: Final = (15, 23, 31, 63, 1009, 7, 1023, 15_007, 192, 1024)
_MANY: Final = (65, 129, 257)  # more rows than a work group has
_LONG: Final = (1 << 17) + 7  # half of the places are beyond 16 bits
_HUGE: Final = (1 << 20) + 11  # of kernels that only move elements, whose reference is quick
# The references of these take a microsecond for an element, or there is an output for each.
_TEDIOUS: Final = ("BatchToSpaceND", "SparseToDense", "TensorScatterUpdate", "Unpack")
_RANKS: Final = (7, 8, 9)
_BASES: Final = 6  # cases from which other pairs of ranks are made
_THICK: Final = (2, 3, 2)  # what becomes of further axes up to rank 4
_PREFIX: Final = (2, 1, 2, 1, 1, 2, 1, 2, 1)  # what becomes of further axes
_SIDES: Final = {2: 4, 3: 3, 4: 3, 5: 2, 6: 2}  # of cubes, by rank
_CUBES: Final = {2: 2, 3: 6, 4: 6, 5: 6, 6: 6}  # how many of each rank

_CHOICES: Final = 8  # of attributes, beside the first of each rank
_SOME: Final = 3  # of them
_SMALL: Final = 512  # elements of an input that is drawn anew
_MOST: Final = 1 << 14  # elements of an input, or of a result, in cases for every dtype
_MOST_LONG: Final = 9 * _LONG
_OUTPUTS: Final = 300
_PRODUCTS: Final = 1 << 18  # of all operands in a list

_Shapes = tuple[tuple[int, ...], ...]


def is_call(entry: CaseEntry, case: Case, most: float = math.inf) -> bool:
    """Return whether the spec takes the inputs, and neither they nor results are too large."""
    if sum(array.size for array in flat(case.inputs)) > 2 * most:
        return False
    try:
        _, outputs = entry.spec.resolve(case.types, case.attributes)
    except TensorplugError:
        return False
    return len(outputs) <= _OUTPUTS and all(
        not type_.known or math.prod(type_.shape) <= most for type_ in outputs
    )


def resized(entry: CaseEntry, corpus: Corpus, own: Sequence[Case]) -> Iterator[Case]:
    """Yield cases of other sizes than ``own``.

    In one dtype, float32 if the kernel takes it, each axis gets many elements, more than 16 bits
    count, and none; in the others a choice that differs from one to the next.
    """
    bases = _by_rank(corpus, own)
    if not bases or not entry.grown:
        return
    made = _Made(entry, corpus)
    first = bases[min(bases)]
    turn = zlib.crc32(f"{entry.spec.name}:{corpus.dtype.name}".encode())
    leading = corpus.dtype is entry.leading
    for size in _TAILS if leading else (_TAILS[turn % len(_TAILS)],):
        yield from made.stretched(first, size, turn, most=_MOST, count=1)
    for at, base in enumerate(bases.values()):
        many = _MANY[(turn + at) % len(_MANY)]
        yield from made.stretched(base, many, turn, most=_MOST, count=9 if leading else 1)
        if leading:
            yield from made.stretched(base, 0, turn, most=_MOST, count=9)
    if leading or corpus.dtype is dt.int32:
        yield from chain(_thick(made, own), made.cubes(own), made.apart(own))
    for rank in _RANKS if leading else _RANKS[-1:]:
        yield from made.raised(own, rank)
    if leading:
        yield from made.ranked(own)
    whole = corpus.dtype in (dt.float32, dt.int32) and _has_axes(entry)
    if whole:
        for base in list(bases.values())[-2:]:
            yield from made.stretched(base, _LONG, turn, most=_MOST_LONG, count=9, native=True)
    if leading:
        yield from _by_turns(made, _by_attributes(corpus, own), turn, whole=whole)
    if corpus.dtype is dt.float32 and entry.moves:
        yield from _of_millions(made, first, turn)


def _by_turns(made: _Made, bases: Sequence[Case], turn: int, *, whole: bool) -> Iterator[Case]:
    """Yield each case with many elements along one axis, which differs from case to case."""
    for at, base in enumerate(bases):
        many = _MANY[(turn + at) % len(_MANY)]
        yield from made.stretched(base, many, turn + at, most=_MOST, count=1)
        if whole and at < _SOME:
            yield from made.stretched(
                base, _LONG, turn + at, most=_MOST_LONG, count=1, native=True
            )


def _of_millions(made: _Made, first: Case, turn: int) -> Iterator[Case]:
    """Yield cases of more elements than work is divided for, and than float32 can count."""
    yield from made.stretched(first, _HUGE, turn, most=2 * _HUGE, count=2, native=True)
    for size in () if made.entry.spec.name in _TEDIOUS else (*JUST_LARGER, VAST):
        for case in made.stretched(first, size, turn, most=2 * size, count=1, native=True):
            yield replace(case, light=True)


def _has_axes(entry: CaseEntry) -> bool:
    """Return whether the kernel works along axes that it is told: by attribute or by index."""
    spec = entry.spec
    return (
        entry.moves
        or any("rank of" in attribute.form for attribute in spec.attributes.values())
        or any(spec.accepted(name) == dt.INTEGER for name in spec.input_names)
    )


def _thick(made: _Made, own: Sequence[Case]) -> Iterator[Case]:
    """Yield cases of rank 3 and 4 with more than one element along each axis."""
    for rank in (3, 4):
        if not any(_is_thick(case, rank) for case in own):
            yield from made.raised(own, rank, _THICK, bare=False)


def _is_thick(case: Case, rank: int) -> bool:
    """Return whether the inputs have this rank, and more than one element along each axis."""
    return (
        case.layout == "dense"
        and case.expected is None
        and all(0 < array.size <= _SMALL for array in flat(case.inputs))
        and any(array.ndim == rank and min(array.shape) > 1 for array in flat(case.inputs))
    )


def _by_rank(corpus: Corpus, own: Sequence[Case]) -> dict[int, Case]:
    """Return the first small case of each rank up to 4 whose inputs can be drawn again."""
    cases: dict[int, Case] = {}
    for case in own:
        if not _is_free(corpus, case):
            continue
        rank = max(array.ndim for array in flat(case.inputs))
        if 0 < rank <= 4 and all(0 < array.size <= _SMALL for array in flat(case.inputs)):
            cases.setdefault(rank, case)
    return dict(sorted(cases.items()))


def _by_attributes(corpus: Corpus, own: Sequence[Case]) -> list[Case]:
    """Return a small case for each choice of attributes, few of those that have many."""
    cases: dict[str, Case] = {}
    for case in own:
        if _is_free(corpus, case) and all(0 < x.size <= _SMALL for x in flat(case.inputs)):
            cases.setdefault(repr(case.attributes), case)
    return list(cases.values())[:_CHOICES]


def _is_free(corpus: Corpus, case: Case, *, indices: bool = True) -> bool:
    """Return whether every input can be drawn again, and the oracle answers."""
    arrays = flat(case.inputs)
    return (
        bool(arrays)
        and case.expected is None
        and case.layout == "dense"
        and not case.period
        and all(corpus.redrawn(array, indices=indices) is not None for array in arrays)
    )


class _Made:
    """Cases made from those of one kernel, each of other shapes than all before."""

    def __init__(self, entry: CaseEntry, corpus: Corpus) -> None:
        self.entry = entry
        self.corpus = corpus
        self._seen: set[str] = set()

    def stretched(
        self, base: Case, size: int, turn: int, *, most: float, count: int, native: bool = False
    ) -> Iterator[Case]:
        """Yield up to ``count`` cases with another size in one axis, from axis ``turn`` on."""
        if not size and not _is_free(self.corpus, base, indices=False):
            return  # there is nothing that an index could name
        arrays = flat(base.inputs)
        places = [(at, axis) for at, array in enumerate(arrays) for axis in range(array.ndim)]
        made = 0
        for number in range(len(places)):
            at, axis = places[(number + turn) % len(places)]
            for shapes in _changed(arrays, at, axis, size):
                old = arrays[at].shape[axis]
                kept = any(old in shape for shape in shapes)
                case = self._drawn(base, shapes, {} if kept else {old: size}, most, native=native)
                if case is not None:
                    made += 1
                    yield case
                    break
            if made == count:
                return

    def raised(
        self,
        own: Sequence[Case],
        rank: int,
        sizes: tuple[int, ...] = _PREFIX,
        *,
        bare: bool = True,
    ) -> Iterator[Case]:
        """Yield a case of this rank: one of the highest rank, with more axes before or behind.

        ``bare``: also of indices, which fit more axes of size 1 and 2 alone.
        """
        free = [case for case in own if _is_free(self.corpus, case)]
        small = [c for c in free if all(0 < array.size <= _SMALL for array in flat(c.inputs))]
        ranked = sorted(small, key=lambda case: -max(array.ndim for array in flat(case.inputs)))
        lower = [c for c in ranked if max(array.ndim for array in flat(c.inputs)) < rank]
        for base in lower[:2]:
            arrays = flat(base.inputs)
            highest = max(array.ndim for array in arrays)
            more = sizes[: rank - highest]
            before = tuple((*more, *array.shape) for array in arrays)
            some = [more * (array.ndim == highest) for array in arrays]
            highest_before = tuple((*m, *x.shape) for m, x in zip(some, arrays, strict=True))
            behind = tuple((*x.shape, *m) for m, x in zip(some, arrays, strict=True))
            # Indices name places along an axis, which would be another with more axes before.
            plain = _is_free(self.corpus, base, indices=False)
            for shapes in (before, highest_before, behind) if plain else (behind,) * bare:
                case = self._drawn(base, shapes, {}, _MOST) if more else None
                if case is not None:
                    yield case
                    return

    def cubes(self, own: Sequence[Case]) -> Iterator[Case]:
        """Yield cases of inputs with one size along all axes, some of each rank.

        Where axes are taken for one another there, the shape of the result is right.
        """
        left = Counter(_CUBES)
        for base in own:
            if not _is_free(self.corpus, base):
                continue
            arrays = flat(base.inputs)
            rank = max(array.ndim for array in arrays)
            if left[rank] and all(0 < array.size <= _SMALL for array in arrays):
                shapes = tuple((_SIDES[rank],) * array.ndim for array in arrays)
                case = self._drawn(base, shapes, {}, _MOST)
                if case is not None and _is_answered(self.entry, case):
                    left[rank] -= 1
                    yield case

    def apart(self, own: Sequence[Case]) -> Iterator[Case]:
        """Yield a case of high rank in which the inputs are stretched along axes by turns."""
        for base, behind in product(own, ((2,), ())):
            arrays = flat(base.inputs)
            if len(arrays) < 2 or not _is_free(self.corpus, base):
                continue
            ranks = {array.ndim for array in arrays}
            if ranks in ({1}, {2}) and all(1 < array.size <= _SMALL for array in arrays):
                turns = ((2, 1, 3, 1, 2), (1, 3, 1, 2, 1))
                shapes = tuple((*turns[at % 2], *x.shape, *behind) for at, x in enumerate(arrays))
                case = self._drawn(base, shapes, {}, _MOST)
                if case is not None and _is_answered(self.entry, case):
                    yield case
                    return

    def ranked(self, own: Sequence[Case]) -> Iterator[Case]:
        """Yield a case for each pair of ranks of the first two inputs that no case has."""
        had = {ranks_of(case) for case in own if not case.refused}
        known = {ranks for ranks in had if ranks is not None}
        free = [case for case in own if _is_free(self.corpus, case) and ranks_of(case)]
        small = [case for case in free if all(0 < x.size <= _SMALL for x in flat(case.inputs))]
        for base in sorted(small, key=_axes_of)[:_BASES]:
            for shapes in other_ranks(base, known):
                case = self._drawn(base, shapes, {}, _MOST)
                if case is not None and _is_answered(self.entry, case):
                    ranks = ranks_of(case)
                    assert ranks is not None  # as its base
                    known.add(ranks)
                    yield case

    def _drawn(
        self,
        base: Case,
        shapes: _Shapes,
        sizes: Mapping[int, int],
        most: float,
        *,
        native: bool = False,
    ) -> Case | None:
        """Return the case with inputs of these shapes; None if the spec refuses it."""
        said = "; ".join("x".join(map(str, shape)) or "rank 0" for shape in shapes)
        if f"{base.attributes}, {said}" in self._seen:
            return None
        self._seen.add(f"{base.attributes}, {said}")
        arrays = flat(base.inputs)
        if sum(map(math.prod, shapes)) > 2 * most:
            return None
        # The spec reads types alone, so that none of these needs elements.
        bare = [
            np.broadcast_to(np.empty((), array.dtype), shape)
            for array, shape in zip(arrays, shapes, strict=True)
        ]
        if not is_call(self.entry, _with(base, bare), most) or self._is_slow(base, shapes):
            return None
        drawn = []
        for array, shape in zip(arrays, shapes, strict=True):
            again = self.corpus.redrawn(array, indices=True)
            assert again is not None  # a free case
            count = math.prod(shape)
            if count > _HUGE:  # so many numbers take longer to draw than to move
                drawn.append(np.resize(again(self.corpus, (PERIOD,), sizes), shape))
            else:
                drawn.append(again(self.corpus, shape, sizes))
        return replace(_with(base, drawn), id=f"{base.id}, as {said}", native=native)

    def _is_slow(self, base: Case, shapes: _Shapes) -> bool:
        """Return whether the reference may multiply all elements of a list with one another."""
        several = any(isinstance(operand, list) for operand in base.inputs)
        counts = [max(math.prod(shape), 1) for shape in shapes]
        return several and not self.entry.moves and math.prod(counts) > _PRODUCTS


def _axes_of(case: Case) -> int:
    """Return minus the number of axes of all inputs: high ranks first, which can be lowered."""
    ranks: list[int] = [array.ndim for array in flat(case.inputs)]
    return -sum(ranks)


def _is_answered(entry: CaseEntry, case: Case) -> bool:
    """Return whether the reference takes the inputs: indices may name no place in other axes."""
    if not any(entry.spec.accepted(name) == dt.INTEGER for name in entry.spec.input_names):
        return True
    try:
        entry.answer(case)
    except (IndexError, ValueError):
        return False
    return True


def _with(case: Case, arrays: Iterable[Array]) -> Case:
    """Return a case with other arrays, in the order of ``flat``."""
    return replace(case, inputs=tuple(refilled(case.inputs, arrays)))


def _changed(arrays: Sequence[Array], at: int, axis: int, size: int) -> Iterator[_Shapes]:
    """Yield shapes with another size in one axis: of one input, of all, or wherever it occurs."""
    old, end = arrays[at].shape[axis], axis - arrays[at].ndim

    def with_size(fits: Callable[[int, int, int], bool]) -> _Shapes:
        return tuple(
            tuple(
                size if n == old and fits(number, place, place - array.ndim) else n
                for place, n in enumerate(array.shape)
            )
            for number, array in enumerate(arrays)
        )

    yield with_size(lambda number, place, _: (number, place) == (at, axis))
    yield with_size(lambda _, place, __: place == axis)
    yield with_size(lambda _, __, from_end: from_end == end)
    yield with_size(lambda _, __, ___: True)
