"""Cases whose inputs can share memory, derived from other cases of the kernel.

Equal inputs: ``x - x``, ``x == x``, ``x @ x``. Inputs that are parts or views of one: ``x + x.T``,
``x + x[0]``, or each begins one element later in one buffer. Inputs that repeat themselves along
an axis, as a tensor does that was broadcast.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import TensorplugError
from tensorplug_conformance.case import flat, refilled
from tensorplug_conformance.variants.histories import is_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry


_FEW: Final = 512  # elements: the oracle is asked again
_ENOUGH: Final = 16  # elements, so that their places matter
_BEST: Final = 4  # score of a case: enough elements, and one shape
_RANKS: Final = 4
_MANY: Final = 128
_CHOICES: Final = 4  # of attributes, of one rank
_LINE: Final = 32  # elements of a column, of which a row makes a square


def relatives(entry: CaseEntry, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the cases whose inputs can share memory."""
    spec = entry.spec
    small = [case for case in cases if _is_small(case)]
    groups = list(_groups(entry))
    for names in groups:
        yield from _first(spec, small, names, _equal, "equal", each=True)
    for what, change in _PARTS.items():
        several = (list(_first(spec, small, names, change, what)) for names in groups)
        yield from next(filter(None, several), ())
    yield from _of_indices(entry, small)
    data = tuple(
        name
        for name in spec.input_names
        if name not in entry.ordinary and not is_index(spec, name)
    )
    if not data and not entry.ordinary and len(spec.input_names) == 1:  # indices alone
        data = tuple(spec.input_names)
    if data:
        for what, axis in (("rows repeated", 0), ("planes repeated", 1), ("columns repeated", -1)):
            yield from _first(spec, small, data, partial(_repeated, axis=axis), what, each=True)


def _of_indices(entry: CaseEntry, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield a case in which an input of indices is the data as well: ``x[x]``."""
    spec = entry.spec
    indices = [name for name in spec.input_names if is_index(spec, name)]
    data = [
        declared.name
        for declared in spec.declared
        if not is_index(spec, declared.name)
        and not declared.variadic
        and declared.name not in entry.ordinary
    ]
    for index, name in product(indices, data):
        places = spec.input_names.index(index), spec.input_names.index(name)
        for case in cases:
            one, other = (case.inputs[place] for place in places)
            if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
                continue
            if one.dtype != other.dtype or one.size < _ENOUGH or not _holds(one, other):
                continue
            inputs = list(case.inputs)
            inputs[places[1]] = one
            label = f"{case.id}, equal {index} and {name}"
            relative = replace(case, id=label, inputs=tuple(inputs), alike=(index, name))
            if _is_call(spec, relative) and _has_answer(entry, relative):
                yield relative
                break


def _holds(one: Array, other: Array) -> bool:
    """Return whether an array has all places that another has, which indices may name."""
    return one.ndim == other.ndim and all(
        new >= old for new, old in zip(one.shape, other.shape, strict=True)
    )


def _has_answer(entry: CaseEntry, case: Case) -> bool:
    """Return whether all indices name places."""
    try:
        entry.answer(case)
    except (IndexError, ValueError):
        return False
    return True


def _groups(entry: CaseEntry) -> Iterator[tuple[str, ...]]:
    """Yield the names of inputs that may be equal: neighbours, all of them, those of a list."""
    spec = entry.spec
    singles = []
    for declared in spec.declared:
        if is_index(spec, declared.name) or declared.name in entry.ordinary:
            continue
        if declared.variadic:
            yield (declared.name,)
        else:
            singles.append(declared.name)
    pairs = [(a, b) for a, b in pairwise(singles) if spec.accepted(a) & spec.accepted(b)]
    yield from pairs
    if len(pairs) > 1 and len(pairs) == len(singles) - 1:
        yield tuple(singles)


def _first(
    spec: KernelSpec,
    cases: Sequence[Case],
    names: tuple[str, ...],
    change: Callable[[list[Array]], list[Array] | None],
    what: str,
    *,
    each: bool = False,
) -> Iterator[Case]:
    """Yield the first case whose changed inputs the spec takes.

    With ``each``, one of each rank; large ones are told from others, and equal inputs are tried
    with several choices of attributes. One with enough elements comes first, and one whose arrays
    have one shape.
    """
    best: dict[tuple[int, bool, str], tuple[int, Case]] = {}
    repeated = "repeated" in what  # sums of many equal terms may cancel
    for case in cases:
        known = dict(zip(spec.input_names, case.inputs, strict=True))
        chosen = [name for name in names if known[name] is not None]
        if len(chosen) < len(names) and not repeated:
            continue  # those that there are make a group of their own
        arrays = flat([known[name] for name in chosen])
        rank = max((array.ndim for array in arrays), default=0)
        many = not repeated and any(array.size > _MANY for array in arrays)
        chosen_by = "" if repeated else repr(case.attributes)
        place = (rank, many, chosen_by) if each else (0, False, "")
        if best.get(place, (0,))[0] == _BEST or rank > _RANKS:
            continue
        changed = change(arrays)
        if changed is None:
            continue
        reshaped = any(a.shape != b.shape for a, b in zip(arrays, changed, strict=True))
        if reshaped and any(is_index(spec, name) for name in spec.input_names):
            continue  # indices name places in the old shape
        operands = refilled([known[name] for name in chosen], changed)
        known.update(zip(chosen, operands, strict=True))
        text = replace(
            case,
            id=f"{case.id}, {what} {' and '.join(chosen)}".removesuffix(" "),
            inputs=tuple(known.values()),
            alike=() if repeated else names,
            overlapping=what in _PARTS and what != "ends equal",
        )
        if not _is_call(spec, text):
            continue
        shapes = {array.shape for array in changed}
        enough = max(array.size for array in changed) >= _ENOUGH
        score = 1 + 2 * enough + (len(shapes) == 1)
        if score > best.get(place, (0,))[0]:
            best[place] = score, text
    made = Counter[tuple[int, bool]]()
    for (rank, many, _), (_, text) in best.items():
        made[rank, many] += 1
        if made[rank, many] <= _CHOICES:
            yield text


def _equal(arrays: list[Array]) -> list[Array] | None:
    """Return the largest array in the place of each; None if they have several dtypes."""
    if len(arrays) < 2 or len({array.dtype for array in arrays}) > 1:
        return None
    return [max(arrays, key=lambda array: array.size)] * len(arrays)


def _overlapping(arrays: list[Array]) -> list[Array] | None:
    """Return arrays each of which begins one element later among the same ones."""
    equal = _equal(arrays)
    if equal is None or equal[0].size < 2:
        return None
    first = equal[0].reshape(-1)
    return [np.roll(first, -at).reshape(equal[0].shape) for at in range(len(arrays))]


def _overlapping_back(arrays: list[Array]) -> list[Array] | None:
    """Return arrays each of which begins one element earlier."""
    overlap = _overlapping(arrays)
    return None if overlap is None else overlap[::-1]


def _changed_by(
    change: Callable[[Array], Array], fits: Callable[[Array], bool]
) -> Callable[[list[Array]], list[Array] | None]:
    """Return what puts the first fitting array, and a change of it for all others."""

    def make(arrays: list[Array]) -> list[Array] | None:
        equal = _equal(arrays)
        if equal is None or equal[0].size < 2 or not fits(equal[0]):
            return None
        return [equal[0], *(change(array) for array in equal[1:])]

    return make


def _transposed(arrays: list[Array]) -> list[Array] | None:
    """Return a square of elements, and it transposed for all other arrays."""
    equal = _equal(arrays)
    side = 0 if equal is None else math.isqrt(equal[0].size)
    if equal is None or side < 2:
        return None
    square = equal[0].reshape(-1)[: side * side].reshape(side, side)
    return [square, *(square.T for _ in equal[1:])]


def _column_and_row(arrays: list[Array]) -> list[Array] | None:
    """Return the same elements as a column and as a row."""
    equal = _equal(arrays)
    if equal is None or not 1 < equal[0].size <= _LINE:
        return None
    shapes = ((-1, 1), (1, -1))
    return [array.reshape(shapes[at % 2]) for at, array in enumerate(equal)]


def _ends_equal(arrays: list[Array]) -> list[Array] | None:
    """Return the first array once more in the place of the last, others between them."""
    if len(arrays) < 3 or arrays[0].shape == () or arrays[0].dtype != arrays[-1].dtype:
        return None
    return [*arrays[:-1], arrays[0]]


# What makes arrays that are parts or views of one: see ``layouts.overlapping``.
_PARTS: Final[dict[str, Callable[[list[Array]], list[Array] | None]]] = {
    "overlapping": _overlapping,
    "overlapping backwards": _overlapping_back,
    "transposed": _transposed,
    "reversed": _changed_by(np.flip, lambda x: x.ndim > 0),
    "beginning": _changed_by(lambda x: x[0], lambda x: x.ndim > 1 and len(x) > 1),
    "column and row": _column_and_row,
    "ends equal": _ends_equal,
}


def _repeated(arrays: list[Array], axis: int) -> list[Array] | None:
    """Return arrays that repeat their first row or column; None if there is nothing to repeat."""
    least = 2 if axis == 1 else 0  # with two axes, the second is the last
    if not any(array.ndim > least and array.shape[axis] > 1 for array in arrays):
        return None
    return [
        np.repeat(np.take(array, [0], axis), array.shape[axis], axis)
        if array.ndim > least and array.size
        else array
        for array in arrays
    ]


def _is_call(spec: KernelSpec, case: Case) -> bool:
    """Return whether the spec takes the inputs."""
    try:
        spec.resolve(case.types, case.attributes)
    except (TensorplugError, ValueError, TypeError, IndexError):
        return False
    return True


def _is_small(case: Case) -> bool:
    """Return whether the oracle answers, and quickly; the case is dense."""
    return (
        case.expected is None
        and case.layout == "dense"
        and not case.period
        and all(0 < array.size <= _FEW for array in flat(case.inputs))
    )
