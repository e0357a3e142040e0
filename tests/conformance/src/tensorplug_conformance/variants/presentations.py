"""How else each case of a row is called: layouts, shared buffers and calls before, by pairs.

The oracle's answer is the expensive part of a case, so each case is called in several ways. A row
covers each pair of a property of its calls with another one, and with a property of its cases:
sizes, ranks, kinds of values, attributes. See ``covering``.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import chain, combinations_with_replacement
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import TensorplugError
from tensorplug_conformance.case import Presentation, flat
from tensorplug_conformance.floats import kind_of
from tensorplug_conformance.variants.covering import Offer, Pairs, cover, possible
from tensorplug_conformance.variants.histories import NOTHING, befores
from tensorplug_conformance.variants.layouts import layouts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case import Array, Case


_SIZES: Final = (1, 16, 256, 4096, 1 << 17)  # elements, of the largest input; more take too long
_RANKS: Final = 5  # and more
_DISTINCT: Final = 6  # values of an attribute; of one with more, each case has another
_LARGE: Final = 4096
_SMALL: Final = 256  # elements, of which all calls before take no time
_FOR_LARGE: Final = frozenset({
    "dense", "transposed", "sliced", "end sliced", "stepped", "slice reshaped", "joined",
    "rows broadcast", "columns broadcast",
})  # fmt: skip
_FOR_LARGE_BEFORE: Final = ("nothing", "last", "one")
_FOR_DECOMPOSED: Final = frozenset({
    "dense", "transposed", "sliced", "stepped", "row", "rows broadcast",
})  # fmt: skip
_SOME_ATTRIBUTES: Final = 16  # of other cases, tried as those of a call before
_UNLIKE: Final = ("flipped", "sign", "rounding")  # the least like a case's call first
_ALIKE: Final = 3  # cases that come after a call that gives a result of the same type

_Joined = tuple[tuple[int, ...], tuple[int, ...]]
_Property = tuple[str, str]
"""What has levels, and of what: ``("layout", "x")``, ``("size", "")``."""


@dataclass(slots=True)
class Presented:
    """The cases of a row with their presentations, and the levels of properties that these join.

    ``joined``: by case and presentation, the levels of the case and those chosen. ``kinds``: the
    property of each level.
    """

    cases: list[Case]
    joined: dict[tuple[str, Presentation], _Joined] = field(default_factory=dict)
    offers: tuple[Offer, ...] = ()
    kinds: list[str] = field(default_factory=list)

    def coverage(self, done: Iterable[tuple[str, Presentation]]) -> dict[str, list[int]]:
        """Return, by pair of properties, how many pairs of levels ``done`` covers, of how many."""
        goal = possible(self.offers)
        covered = Pairs(len(goal.others))
        for key in done:
            if key in self.joined:
                covered.join(*self.joined[key])
        masks: dict[str, int] = {}
        for level, kind in enumerate(self.kinds):
            masks[kind] = masks.get(kind, 0) | 1 << level
        counts = {}
        for a, b in combinations_with_replacement(sorted(masks), 2):
            # Levels of one property are those of several inputs; their pairs are seen twice.
            twice = 1 + (a == b)
            had, of = (pairs.count(masks[a], masks[b]) // twice for pairs in (covered, goal))
            if of:
                counts[f"{a} x {b}"] = [had, of]
        return counts


class _Levels:
    """Numbers for the levels of properties."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[_Property, str], int] = {}
        self.known: list[tuple[_Property, str]] = []

    def of(self, property_: _Property, level: str) -> int:
        key = property_, level
        if key not in self._numbers:
            self._numbers[key] = len(self.known)
            self.known.append(key)
        return self._numbers[key]


@dataclass(slots=True)
class _Choices:
    """What one case can be combined with in one arrangement of buffers."""

    case: Case
    buffers: Any
    names: tuple[str, ...]
    offer: Offer


def presented(
    spec: KernelSpec, cases: Sequence[Case], *, whole: bool = True, few: bool = False
) -> Presented:
    """Return the cases of a row with their presentations, ``whole``: such that all pairs occur.

    Otherwise each layout and each call before occurs once; of ``few``, some layouts.
    """
    levels = _Levels()
    attributes = _distinct(cases)
    plain: list[Case] = []
    choices: list[_Choices] = []
    used: Counter[str] = Counter()
    for case in cases:
        if case.refused:
            plain.append(case)
            continue
        otherwise, alike = _other_attributes(spec, case, cases)
        prepared = replace(case, otherwise=otherwise)
        names = _befores(spec, prepared)
        prelude = min(names[1:], key=lambda name: used[name], default="")
        if alike and used["attributes"] < _ALIKE:
            prelude = "attributes"
        used[prelude] += 1
        several = whole and not few and _largest(case) <= _SMALL
        # What is kept from the first one shows most if that call is the least like the case's.
        rest = sorted((name for name in names[1:] if name != prelude), key=_likeness)
        prepared = replace(prepared, prelude=prelude, preludes=tuple(rest) if several else ())
        plain.append(prepared)
        if spec.input_names and _largest(case) <= (_SIZES[-1] if whole else _LARGE):
            choices += _choices(spec, prepared, names, levels, attributes, few=few)
    offers = tuple(one.offer for one in choices)
    by_case: dict[str, list[Presentation]] = {}
    joined: dict[tuple[str, Presentation], _Joined] = {}

    def noted(one: _Choices, chosen: tuple[int, ...]) -> Presentation:
        made = _presentation(one, [levels.known[level][1] for level in chosen])
        joined[one.case.id, made] = one.offer.fixed, chosen
        return made

    for one in choices:
        for chosen in one.offer.covered:
            noted(one, chosen)
    for at, chosen in cover(offers, once=not whole):
        one = choices[at]
        by_case.setdefault(one.case.id, []).append(noted(one, chosen))
    cases = [replace(case, presentations=tuple(by_case.get(case.id, ()))) for case in plain]
    if not whole:
        return Presented(cases)
    return Presented(cases, joined, offers, [name for (name, _), _ in levels.known])


def _likeness(before: str) -> int:
    """Return how much a call before is like the case's, of those that share a weak key with it."""
    change = before.partition(" of ")[0]
    return _UNLIKE.index(change) if change in _UNLIKE else len(_UNLIKE)


def _presentation(one: _Choices, chosen: Sequence[str]) -> Presentation:
    *layouts, before = chosen
    laid_out: Any = tuple(
        (name, layout)
        for name, layout in zip(one.names, layouts, strict=True)
        if layout != "dense"
    )
    return Presentation(laid_out, one.buffers, before)


def _choices(
    spec: KernelSpec,
    case: Case,
    names: Sequence[str],
    levels: _Levels,
    attributes: Sequence[str],
    *,
    few: bool,
) -> Iterator[_Choices]:
    large = _largest(case) > _LARGE
    if few:  # what comes before is tried by preludes
        names = [NOTHING]
    taken = _FOR_LARGE if large else _FOR_DECOMPOSED if few else frozenset[str]()
    before = tuple(levels.of(("before", ""), name) for name in names)
    own = [levels.of((name, ""), level) for name, level in _properties(case)]
    own += [
        levels.of(("attribute", name), repr(case.attributes[name]))
        for name in attributes
        if name in case.attributes
    ]

    def layouts(name: str, arrays: Sequence[Array]) -> tuple[int, ...]:
        # In a list, those arrays that cannot lie so are dense.
        chosen = dict.fromkeys(layout for array in arrays for layout in layouts_of(array))
        return tuple(
            levels.of(("layout", name), layout)
            for layout in chosen
            if not taken or layout in taken
        )

    def offered(
        buffers: str, free: dict[str, tuple[int, ...]], *, prelude: bool = False
    ) -> _Choices:
        fixed = (*own, levels.of(("buffers", ""), buffers))
        covered: tuple[tuple[int, ...], ...] = ()
        number = levels.of(("before", ""), case.prelude)
        if prelude and number in before and case.layout == "dense":
            dense = [levels.of(("layout", name), "dense") for name in free]
            covered = ((*dense, number),)
        offer = Offer(fixed, (*free.values(), before), covered)
        return _Choices(case, buffers, tuple(free), offer)

    operands = {
        name: flat([operand]) for name, operand in zip(spec.input_names, case.inputs, strict=True)
    }
    free = {name: layouts(name, arrays) for name, arrays in operands.items() if arrays}
    yield offered("apart", free, prelude=True)
    if len(_packable(case)) > 1:
        yield offered("packed", {})
    if case.overlapping:
        yield offered("overlapping", {})
    elif case.alike:
        shared = {case.alike[0]: free[case.alike[0]]}
        yield offered("one tensor", shared)
        yield offered("views", shared)


def _packable(case: Case) -> list[Array]:
    """Return the arrays that can lie in one buffer: those of the first dtype, with elements."""
    arrays = [array for array in flat(case.inputs) if array.size]
    return [array for array in arrays if array.dtype == arrays[0].dtype]


def _befores(spec: KernelSpec, case: Case) -> tuple[str, ...]:
    """Return the calls before that are tried: few of large inputs, none of huge ones."""
    size = _largest(case)
    if size > _SIZES[-1]:
        return (NOTHING,)
    names = befores(spec, case)
    if size <= _LARGE:
        return names
    return tuple(name for name in names if name.partition(" of ")[0] in _FOR_LARGE_BEFORE)


def _largest(case: Case) -> int:
    """Return the elements of the largest input; strings count for more, as they take longer."""
    arrays = flat(case.inputs)
    return max(
        (array.size * (32 if array.dtype.kind == "T" else 1) for array in arrays), default=0
    )


def fitting(spec: KernelSpec, case: Case, presentation: Presentation) -> Presentation:
    """Return what a case can take of a presentation."""
    layouts = []
    for name, layout in presentation.layouts:
        operand = case.inputs[spec.input_names.index(name)]
        if any(layout in layouts_of(array) for array in flat([operand])):
            layouts.append((name, layout))
    packed = presentation.buffers == "packed" and len(_packable(case)) > 1
    before = presentation.before if presentation.before in befores(spec, case) else NOTHING
    return Presentation(() if packed else tuple(layouts), "packed" if packed else "apart", before)


# Properties of cases.


def _properties(case: Case) -> Iterator[tuple[str, str]]:
    arrays = flat(case.inputs)
    size = _largest(case)
    yield "size", "0" if not size else f"to {next(most for most in _SIZES if size <= most)}"
    rank = min(max(array.ndim for array in arrays), _RANKS)
    yield "rank", str(rank)
    sides = {n for array in arrays for n in array.shape}
    yield "sides", f"equal, rank {rank}" if rank > 2 and len(sides) == 1 else "different"
    yield "values", _VALUES[max(map(_special, arrays))]


_VALUES: Final = ("common", "extreme", "infinite", "NaN")


def _special(array: Array) -> int:
    """Return the place in ``_VALUES`` of an array's most special value."""
    kind = kind_of(array.dtype)
    if kind in "fc" and array.size <= _LARGE:
        with np.errstate(invalid="ignore"):
            if np.isfinite(array).all():
                return 0
            return 3 if np.isnan(array).any() else 2
    if array.dtype.kind in "iu" and array.size:
        limits: Any = np.iinfo(array.dtype)
        return int(int(array.max()) > int(limits.max) // 2)
    return 0


def _distinct(cases: Iterable[Case]) -> list[str]:
    """Return the attributes that have a few values among the cases."""
    values: dict[str, set[str]] = {}
    for case in cases:
        for name, value in case.attributes.items():
            values.setdefault(name, set()).add(repr(value))
    return [name for name, several in values.items() if 1 < len(several) <= _DISTINCT]


def _other_attributes(
    spec: KernelSpec, case: Case, cases: Iterable[Case]
) -> tuple[Mapping[str, Any] | None, bool]:
    """Return other attributes that the inputs can be called with; None if none fit.

    They differ from the case's in one respect, or are those of another case. Those that give
    results of the same types come first: such results can be mistaken for one another. The second
    value says whether these do. Of several, each case has its turn.
    """
    tried: list[Any] = [case.attributes]
    known, outputs = spec.resolve(case.types, case.attributes)
    fitting: list[Mapping[str, Any]] = []
    alike: list[Mapping[str, Any]] = []
    others = (other.attributes for other in cases if not other.refused)
    for attributes in chain(_neighbours(case.attributes, known), others):
        if attributes in tried:
            continue
        tried.append(attributes)
        try:
            made = spec.resolve(case.types, attributes)[1]
        except (TensorplugError, ValueError, TypeError, IndexError):
            continue
        (alike if made == outputs else fitting).append(attributes)
        if len(tried) > _SOME_ATTRIBUTES:
            break
    candidates = alike or fitting
    if not candidates:
        return None, False
    return candidates[zlib.crc32(case.id.encode()) % len(candidates)], bool(alike)


def _neighbours(
    attributes: Mapping[str, Any], known: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield attributes that differ in one: the other truth, its last two members exchanged."""
    for name, value in known.items():
        if isinstance(value, bool):
            yield {**attributes, name: not value}
        elif isinstance(value, tuple) and len(value) > 1:
            yield {**attributes, name: (*value[:-2], value[-1], value[-2])}
