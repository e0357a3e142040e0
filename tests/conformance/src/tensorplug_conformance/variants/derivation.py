"""Cases that every kernel needs, derived from its own cases where it lacks them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Exactly, flat, mapped
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.floats import computing, finfo, kind_of
from tensorplug_conformance.variants.sizes import is_call, resized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.corpus import Corpus

    _Loss = tuple[str, Callable[..., Array], Callable[[Array], Array]]

from tensorplug_conformance.variants.special_values import EXACT, LOSSES, VALUES, is_lucky

_SMALL: Final = 4096  # elements of an input that is laid out anew
_FEW: Final = 512  # elements of an input that gets other values
_ENOUGH: Final = 4  # elements, to have room for special values beside ordinary ones
_DRAWS: Final = 8  # of close values, until they make a difference
_LAYOUTS: Final = ("sliced", "transposed", "stepped")


def all_cases(entry: CaseEntry, corpus: Corpus) -> Iterator[Case]:
    """Yield the cases of a kernel for the dtype of ``corpus``, then those derived from them.

    Raises:
        RegistrationError: when two have one id, or one has no oracle.

    """
    own = list(entry.checked(entry.generate(corpus)))
    return entry.checked((*own, *_derived(entry, own), *resized(entry, corpus, own)))


def _derived(entry: CaseEntry, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield what ``cases`` lack.

    Layouts: inputs that do not lie densely on the device. Values, in each input that takes
    them: a NaN, infinities, floats that fewer digits cannot tell apart, integers that no float
    holds; but not in those inputs that ``entry.ordinary`` names. And one case at least in which
    the last element of the result differs from the one before.
    """
    yield from _laid_out(cases)
    yield from _of_all_magnitudes(entry, cases)
    small = [case for case in cases if _is_small(case)]
    for position, name in enumerate(entry.spec.input_names):
        if name not in entry.ordinary and entry.spec.accepted(name) not in (dt.INTEGER, dt.BOOL):
            yield from _valued(entry, cases, small, position)
    if not any(_ends_apart(entry, case) for case in small):
        yield from _turned(entry, small)
    if entry.moves:
        yield from _undefined(entry, small)


# Layouts.


def _laid_out(cases: Sequence[Case]) -> Iterator[Case]:
    present = {case.layout for case in cases}
    fitting = [case for case in cases if _has_rows(case)]
    for layout in _LAYOUTS:
        enough = 2 if layout == "transposed" else 1
        items = [case for case in fitting if max(_ranks(case)) >= enough]
        if layout not in present and items:
            yield replace(items[0], id=f"{items[0].id}, {layout}", layout=layout)


def _has_rows(case: Case) -> bool:
    """Return whether the oracle answers, and an input has elements that can lie apart."""
    arrays = _arrays(case)
    # Of two elements or one column, other strides make no difference.
    return (
        _is_answered(case)
        and any(array.size > 2 for array in arrays)
        and all(0 < array.size <= _SMALL for array in arrays)
    )


def _ranks(case: Case) -> list[int]:
    return [array.ndim for array in _arrays(case)]


# Values.


def _valued(
    entry: CaseEntry, cases: Sequence[Case], small: Sequence[Case], position: int
) -> Iterator[Case]:
    base = _base(small, position)
    if base is None:
        return
    name = entry.spec.input_names[position]
    tried = [
        array
        for case in cases
        if _is_answered(case) and not (case.period or case.light)  # others hold the same values
        for array in _operand_arrays(case, position)
    ]
    dtype = _operand_arrays(base, position)[0].dtype
    exact = tolerances().of(entry, dt.of(dtype)) == 0
    items = []
    for what, fits, shown, put in (*VALUES, *(EXACT if exact else ())):
        if all(map(fits, _operand_arrays(base, position))) and not any(map(shown, tried)):
            several = [_changed(base, position, change, f"{what} in {name}") for change in put]
            items.append(next((case for case in several if _shows(entry, case)), several[0]))
    losses = LOSSES if exact or dtype.kind in "iu" else {}
    items += _telling(entry, (*small, *items), base, position, losses.get(kind_of(dtype), ()))
    yield from items


def _telling(
    entry: CaseEntry,
    cases: Sequence[Case],
    base: Case,
    position: int,
    losses: Sequence[_Loss],
) -> Iterator[Case]:
    """Yield cases whose results change where digits are lost, if no case has such results.

    A kernel that compares and picks elements may be given such numbers, and pick others.
    """
    name = entry.spec.input_names[position]
    for what, put, lost in losses:
        lucky = any(map(is_lucky, _operand_arrays(base, position)))
        if not lucky and any(_suffers(entry, case, position, lost) for case in cases):
            continue
        for seed in range(_DRAWS):
            case = _changed(base, position, partial(put, seed=seed), f"telling {what} in {name}")
            if _suffers(entry, case, position, lost):
                yield case
                break


def _suffers(entry: CaseEntry, case: Case, position: int, lost: Callable[[Array], Array]) -> bool:
    """Return whether the result changes if ``lost`` changes an input.

    Where ``lost`` changes the dtype, all inputs of the dtype are changed.
    """
    arrays = _operand_arrays(case, position)
    if not arrays:
        return False
    changed = [lost(array) for array in arrays]
    dtype = arrays[0].dtype
    concerned = [position]
    if changed[0].dtype != dtype:
        inputs = range(len(case.inputs))
        concerned = [
            at for at in inputs if any(x.dtype == dtype for x in _operand_arrays(case, at))
        ]
    elif all(map(_same, changed, arrays)):
        return False
    other = case
    for at in concerned:
        other = _changed(other, at, lost, "lost")
    if changed[0].dtype != dtype and not is_call(entry, other):
        return True  # they cannot be mistaken for those
    answers, without = _answers(entry, case), _answers(entry, other)
    if answers is None or without is None:
        return True  # the oracle says nothing of single elements
    return not all(map(_same, without, answers))


def _same(x: Array, other: Array) -> bool:
    """Return whether two arrays are equal, NaN to NaN, as integers of one kind."""
    if x.dtype.kind == "i" and other.dtype.kind == "u":
        x = x.view(other.dtype)
    if x.shape != other.shape:
        return False
    with np.errstate(invalid="ignore"):  # of signalling NaN
        same = (x == other) | ((x != x) & (other != other))  # noqa: PLR0124  # NaN is not itself, in Python's objects either
    return bool(np.all(same))


def _base(small: Sequence[Case], position: int) -> Case | None:
    """Return the first case whose input has room for more values, else the one with most room."""
    sized = [
        (max(array.size for array in _operand_arrays(case, position)), case)
        for case in small
        if _operand_arrays(case, position)
    ]
    roomy = [case for size, case in sized if size >= _ENOUGH]
    if roomy:
        return roomy[0]
    return max(sized, key=lambda pair: pair[0])[1] if sized else None


def _changed(case: Case, position: int, put: Callable[[Array], Array], what: str) -> Case:
    inputs = tuple(
        mapped(put, operand) if at == position else operand
        for at, operand in enumerate(case.inputs)
    )
    return replace(case, id=f"{case.id}, {what}", inputs=inputs)


def _shows(entry: CaseEntry, case: Case) -> bool:
    """Return whether a special value reaches the result; kernels that pick elements drop some."""
    answers = _answers(entry, case)
    return answers is None or any(
        kind_of(array.dtype) not in "fc" or not bool(np.isfinite(array).all()) for array in answers
    )


# Magnitudes.


def _of_all_magnitudes(entry: CaseEntry, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the case of special values with numbers between these, most of them near 1."""
    edges = next((case for case in cases if case.id == "edges" and _is_answered(case)), None)
    if edges is None or entry.spec.expression is None or edges.attributes or entry.ordinary:
        return
    arrays = _arrays(edges)
    if any(array.dtype != np.float32 for array in arrays):
        return
    steps = np.arange(-12 * _PER_OCTAVE, 25 * _PER_OCTAVE)
    octaves = [*range(-120, -12, 2), *range(25, 125, 2)]
    sizes = np.exp2([*(steps + 0.37) / _PER_OCTAVE, *(at + 0.37 for at in octaves)])
    values = np.concatenate([sizes, -sizes[::-1]]).astype(np.float32)
    inputs = tuple(np.roll(values, 67 * at) for at in range(len(edges.inputs)))
    yield replace(edges, id="magnitudes", inputs=inputs)


_PER_OCTAVE: Final = 11  # no divisor of what values are rolled by


# Bits.


def _undefined(entry: CaseEntry, small: Sequence[Case]) -> Iterator[Case]:
    """Yield a case with many kinds of NaN; a kernel that moves elements keeps all their bits."""
    spec = entry.spec
    data = [at for at, name in enumerate(spec.input_names) if spec.accepted(name) == dt.STORED]
    base = _base(small, data[0])
    if base is None or kind_of(_operand_arrays(base, data[0])[0].dtype) not in "fc":
        return
    case = base
    for position in data:
        case = _changed(case, position, partial(_nan_of_all_kinds, turn=position), "")
    answers = _answers(entry, case)
    assert answers is not None  # the reference moves elements too
    yield replace(case, id=f"{base.id}, bits of NaN", expected=tuple(map(Exactly, answers)))


def _nan_of_all_kinds(x: Array, turn: int = 0) -> Array:
    """Return NaN of both signs, quiet and signalling, each with another payload.

    Narrow floats get quiet ones: where the engine computes in a wider dtype, it converts them.
    """
    part = x.real.dtype if x.dtype.kind == "c" else x.dtype
    about: Any = finfo(part)
    number = np.dtype(f"u{part.itemsize}")
    infinity = int(np.array(np.inf, part).view(number))
    quiet = 1 << (int(about.nmant) - 1)
    count = x.size * (x.dtype.itemsize // part.itemsize)
    payloads = [1 + (5 * turn + 11 * at) % (quiet - 1) for at in range(count)]
    narrow = computing(part) != part and dt.of(part) in dt.WIDENED
    bits = [
        infinity
        | payload
        | quiet * (narrow or at % 2)
        | (1 << (8 * part.itemsize - 1)) * (at // 2 % 2)
        for at, payload in enumerate(payloads)
    ]
    return np.array(bits, number).view(part).view(x.dtype).reshape(x.shape)


# The last element.


def _ends_apart(entry: CaseEntry, case: Case) -> bool:
    """Return whether the last two elements of every result that has two are different."""
    answers = _answers(entry, case)
    if answers is None:
        return True  # the oracle says nothing of single elements
    several = [np.ravel(array) for array in answers if array.size > 1]
    return bool(several) and all(array[-1] != array[-2] for array in several)


def _turned(entry: CaseEntry, small: Sequence[Case]) -> Iterator[Case]:
    """Yield a case with its values rotated until the last result differs from its neighbour."""
    for case in small:
        data = [
            at
            for at, name in enumerate(entry.spec.input_names)
            if name not in entry.ordinary and entry.spec.accepted(name) != dt.INTEGER
        ]
        most = max((array.size for array in _arrays(case)), default=0)
        for by in range(1, most):
            turned = case
            for position in data:
                turned = _changed(turned, position, partial(_rolled, by=by), "turned")
            if _ends_apart(entry, turned):
                yield replace(turned, id=f"{case.id}, turned by {by}")
                return


def _rolled(x: Array, by: int) -> Array:
    return np.roll(x.reshape(-1), by).reshape(x.shape)


def _answers(entry: CaseEntry, case: Case) -> list[Array] | None:
    """Return what the oracle says, as arrays; None if it determines no elements."""
    answer: Any = case.expected
    if answer is None:
        answer = entry.answer(case)
    outputs = answer if isinstance(answer, tuple) else (answer,)
    arrays: list[Any] = [getattr(output, "value", output) for output in outputs]
    return arrays if all(isinstance(array, np.ndarray) for array in arrays) else None


# Cases.


def _is_answered(case: Case) -> bool:
    return not case.refused


def _is_small(case: Case) -> bool:
    """Return whether the case has an oracle, is dense, and takes other values."""
    arrays = _arrays(case)
    return (
        case.expected is None
        and case.layout == "dense"
        and all(0 < array.size <= _FEW for array in arrays)
    )


def _operand_arrays(case: Case, position: int) -> list[Array]:
    return flat([case.inputs[position]])


def _arrays(case: Case) -> list[Array]:
    return flat(case.inputs)
