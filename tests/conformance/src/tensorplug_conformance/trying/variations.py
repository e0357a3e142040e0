"""Variations of a kernel's cases: other sizes, attributes, layouts and values.

What may vary follows from the cases themselves. Inputs that a case takes from the corpus as they
are can be drawn again, in other sizes too: those that were equal stay equal, a size of 1 stays 1.
Attributes come from other cases of the kernel. Special values are those that cases with
the same attributes put into the same input: no rule says, for example, what a NaN in padding
becomes. The spec decides whether a variation is a call; the oracle gives the expected outputs.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from tensorplug.plugin import TensorplugError
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import MARK, Presentation, Relation, flat, mapped
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.floats import finfo, kind_of
from tensorplug_conformance.variants.derivation import all_cases
from tensorplug_conformance.variants.presentations import fitting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.plugin import DType
    from tensorplug_conformance.case import Array, Case, Layout
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.denominator import Row


PREFIX: Final = "example "
DRAWS: Final = 3
"""Seeds from which a case is made anew as a whole."""

SIZES: Final = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65, 127)

_LARGEST: Final = 512  # elements of any input: oracles are slow
_PRODUCTS: Final = 1 << 20  # elements of all operands in a list, multiplied
_SHOWN: Final = 4096  # elements of inputs in which special values are looked for


@dataclass(frozen=True, slots=True)
class Variation:
    """How a case is varied, as plain data that can be written down.

    ``case``: the id of the case. ``draw``: the seed it is made from. ``layout``: of its inputs.
    ``sizes``: what each size of more than 1 becomes, in the order in which they occur.
    ``attributes``: the id of a case whose value of an attribute it takes, by name. ``values``:
    input, place of an element and number of a special value that is put there. ``presented``: the
    id of a presentation in which it is called, too.
    """

    case: str
    draw: int = 0
    layout: Layout = "dense"
    sizes: tuple[int, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[int, int, int], ...] = ()
    presented: str = ""

    @property
    def id(self) -> str:
        """The id of the case that comes of it, from which it can be made again."""
        parts: list[Any] = [self.case, self.draw, self.layout, self.sizes, self.attributes]
        parts += [self.values] if not self.presented else [self.values, self.presented]
        return PREFIX + json.dumps(parts, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the variation with the id ``text``."""
        parts = json.loads(text.removeprefix(PREFIX))
        case, draw, layout, sizes, attributes, values, *presented = parts
        return cls(
            case,
            draw,
            layout,
            tuple(sizes),
            tuple((name, other) for name, other in attributes),
            tuple((at, place, which) for at, place, which in values),
            *presented,
        )


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The cases of a kernel that can be varied, made from one seed."""

    ledger: Corpus
    cases: Mapping[str, Case]


class Variations:
    """All variations of the cases of one kernel in one dtype."""

    def __init__(self, entry: CaseEntry, dtype: DType, seed: int = 0) -> None:
        self.entry = entry
        self.spec = entry.spec
        self.dtype = dtype
        self.seed = seed
        self._drawings: dict[int, _Drawing] = {}
        self._pools: dict[tuple[int, str], Array] = {}

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """The ids of the cases that can be varied; there may be none."""
        return tuple(self._drawing(0).cases)

    @cached_property
    def attributes(self) -> dict[str, tuple[str, ...]]:
        """By attribute, one case for each value that it has in any of them.

        None where the oracle is a relation: attributes may decide which relation it is.
        """
        by_name: dict[str, dict[str, str]] = {}
        if self._is_related():
            return {}
        for case in self._drawing(0).cases.values():
            for name, value in case.attributes.items():
                by_name.setdefault(name, {}).setdefault(repr(value), case.id)
        return {name: tuple(by_value.values()) for name, by_value in by_name.items()}

    @cached_property
    def _answered(self) -> dict[str, list[Case]]:
        """The cases that have an answer, by their attributes."""
        by_attribute: dict[str, list[Case]] = {}
        for case in all_cases(self.entry, Corpus(self.dtype, self.seed, self.spec.name)):
            if not case.refused:
                by_attribute.setdefault(_key(case), []).append(case)
        return by_attribute

    def _specials(self, at: int, case: Case) -> Array:
        """Return the special values that cases of the same attributes put into an input."""
        known = at, _key(case)
        if known not in self._pools:
            alike = self._answered.get(known[1], ())
            shown = [array for one in alike for array in flat(one.inputs[at : at + 1])]
            closed = self.spec.input_names[at] in self.entry.ordinary
            self._pools[known] = np.zeros(0) if closed else _specials(shown)
        return self._pools[known]

    def sizes(self, case: str) -> int:
        """Return how many different sizes above 1 a case has."""
        return len(_sizes(self._drawing(0).cases[case]))

    def made(self, variation: Variation) -> Case:
        """Return the case; parts of the variation that the spec refuses are left out.

        Raises:
            KeyError: there is no such case.

        """
        drawing = self._drawing(variation.draw)
        case = drawing.cases[variation.case]
        base = Variation(case.id, variation.draw, variation.layout)
        if self._is_free(drawing, case):
            base, case = self._resized(drawing, variation, base, case)
            base, case = self._with_attributes(drawing, variation, base, case)
            base, case = self._with_specials(variation, base, case)
        if variation.presented:
            presentation = fitting(self.spec, case, Presentation.of(variation.presented))
            base = replace(base, presented=presentation.id)
            case = replace(case, presentations=(presentation,))
        return replace(case, id=base.id, layout=base.layout)

    def _is_related(self) -> bool:
        oracle, cases = self.entry.oracle, self._drawing(0).cases.values()
        first = next((case for case in cases if case.expected is None), None)
        if oracle is None or first is None:
            return True
        return isinstance(oracle(*first.inputs, **first.attributes), Relation)

    def _drawing(self, draw: int) -> _Drawing:
        if draw not in self._drawings:
            seed = self.seed if not draw else (self.seed + 1) * 1000 + draw
            ledger = Corpus(self.dtype, seed, self.spec.name)
            by_id = {case.id: case for case in self.entry.generate(ledger) if _fits(case)}
            self._drawings[draw] = _Drawing(ledger, by_id)
        return self._drawings[draw]

    def _is_free(self, drawing: _Drawing, case: Case) -> bool:
        """Return whether every input can be drawn again."""
        arrays = flat(case.inputs)
        return case.expected is None and all(
            drawing.ledger.redrawn(array) is not None for array in arrays
        )

    def _resized(
        self, drawing: _Drawing, variation: Variation, base: Variation, case: Case
    ) -> tuple[Variation, Case]:
        old = _sizes(case)
        if not variation.sizes or len(variation.sizes) != len(old):
            return base, case
        sizes = _bearable(case, old, variation.sizes)
        new = dict(zip(old, sizes, strict=True))
        corpus = Corpus(self.dtype, self.seed + variation.draw, f"{self.spec.name}:variation")

        def again(array: Array) -> Array:
            return _resize(drawing.ledger, corpus, array, new)

        changed = replace(case, inputs=tuple(mapped(again, one) for one in case.inputs))
        if not self._is_call(changed):
            return base, case
        return replace(base, sizes=sizes), changed

    def _with_attributes(
        self, drawing: _Drawing, variation: Variation, base: Variation, case: Case
    ) -> tuple[Variation, Case]:
        for name, other in variation.attributes:
            value = drawing.cases[other].attributes.get(name)
            changed = replace(case, attributes={**case.attributes, name: value})
            if value is not None and self._is_call(changed):
                base = replace(base, attributes=(*base.attributes, (name, other)))
                case = changed
        return base, case

    def _with_specials(
        self, variation: Variation, base: Variation, case: Case
    ) -> tuple[Variation, Case]:
        for at, place, which in variation.values:
            pool = self._specials(at, case)
            target = case.inputs[at]
            if isinstance(target, np.ndarray) and target.size and pool.size:
                array = target.copy()
                array.flat[place % array.size] = pool[which % pool.size]
                case = replace(case, inputs=(*case.inputs[:at], array, *case.inputs[at + 1 :]))
                base = replace(base, values=(*base.values, (at, place, which)))
        return base, case

    def _is_call(self, case: Case) -> bool:
        """Return whether the spec accepts the case, and the oracle is quick."""
        if any(array.size > _LARGEST for array in flat(case.inputs)):
            return False
        try:
            _, outputs = self.spec.resolve(case.types, case.attributes)
        except (TensorplugError, ValueError, TypeError, IndexError):
            return False
        return all(not output.known or math.prod(output.shape) <= _LARGEST for output in outputs)


def _fits(case: Case) -> bool:
    return not case.refused and all(array.size <= _LARGEST for array in flat(case.inputs))


def _key(case: Case) -> str:
    return repr(sorted(case.attributes.items()))


def _specials(arrays: Sequence[Array]) -> Array:
    """Return the distinct values that are not finite, subnormal, or zero."""
    small = [np.ravel(array) for array in arrays if 0 < array.size <= _SHOWN]
    if not small or any(kind_of(array.dtype) != "f" for array in small):
        return np.zeros(0)
    values = np.concatenate(small)
    tiny = finfo(values.dtype).smallest_normal
    special = values[~np.isfinite(values) | (np.abs(values) < tiny)]
    bits = special.view(np.dtype(f"u{special.dtype.itemsize}"))
    return np.asarray(special[np.unique(bits, return_index=True)[1]])


def _sizes(case: Case) -> list[int]:
    """Return the different sizes above 1, in the order in which they occur."""
    return list(dict.fromkeys(n for array in flat(case.inputs) for n in array.shape if n > 1))


def _bearable(case: Case, old: Sequence[int], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``sizes``, halved until every input with them is small enough.

    The elements of operands in one list may all be multiplied with one another.
    """
    while True:
        new = dict(zip(old, sizes, strict=True))

        def elements(array: Array, new: Mapping[int, int] = new) -> int:
            return math.prod(new.get(n, n) for n in array.shape)

        most = max(map(elements, flat(case.inputs)))
        lists = [operand for operand in case.inputs if isinstance(operand, list)]
        products = max((math.prod(map(elements, listed)) for listed in lists), default=0)
        if most <= _LARGEST and products <= _PRODUCTS:
            return sizes
        sizes = tuple((n + 1) // 2 for n in sizes)


def _resize(ledger: Corpus, corpus: Corpus, array: Array, new: Mapping[int, int]) -> Array:
    again = ledger.redrawn(array)
    assert again is not None  # a free case
    return again(corpus, tuple(new.get(n, n) for n in array.shape), new)


def example(entry: CaseEntry, row: Row, seed: int, name: str) -> Case | None:
    """Return the example of that name; None if the name is not an example's."""
    if not name.startswith(PREFIX):
        return None
    return Variations(entry, dt.of(row.dtype), seed).made(Variation.of(name.partition(MARK)[0]))
