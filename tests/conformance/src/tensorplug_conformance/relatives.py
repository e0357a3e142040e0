"""Cases whose inputs can share memory, derived from other cases of the kernel.

Equal inputs: ``x - x``, ``x == x``, ``x @ x``. Inputs that overlap: each begins one element later
in one buffer. Inputs that repeat themselves along an axis, as a tensor does that was broadcast.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import TensorplugError
from tensorplug_conformance.case import flat
from tensorplug_conformance.histories import is_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry

__all__ = ["relatives"]

_FEW: Final = 512  # elements: the oracle is asked again
_ENOUGH: Final = 4  # elements, so that their places matter


def relatives(entry: CaseEntry, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the cases whose inputs can share memory."""
    spec = entry.spec
    small = [case for case in cases if _is_small(case)]
    groups = list(_groups(entry))
    for names in groups:
        yield from _first(spec, small, names, _equal, "equal")
    for names in groups[:1]:
        yield from _first(spec, small, names, _overlapping, "overlapping")
    data = tuple(
        name
        for name in spec.input_names
        if name not in entry.ordinary and not is_index(spec, name)
    )
    if not data and not entry.ordinary and len(spec.input_names) == 1:  # indices alone
        data = tuple(spec.input_names)
    if data:
        for what, axis in (("rows repeated", 0), ("columns repeated", -1)):
            yield from _first(spec, small, data, partial(_repeated, axis=axis), what)


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
    pairs = [(a, b) for a, b in pairwise(singles) if spec.accepted(a) == spec.accepted(b)]
    yield from pairs
    if len(pairs) > 1 and len(pairs) == len(singles) - 1:
        yield tuple(singles)


def _first(
    spec: KernelSpec,
    cases: Sequence[Case],
    names: tuple[str, ...],
    change: Callable[[list[Array]], list[Array] | None],
    what: str,
) -> Iterator[Case]:
    """Yield the first case whose changed inputs the spec takes, one with enough elements first."""
    fallback = None
    for case in cases:
        known = dict(zip(spec.input_names, case.inputs, strict=True))
        chosen = [name for name in names if known[name] is not None]
        arrays = flat([known[name] for name in chosen])
        changed = change(arrays)
        if changed is None:
            continue
        rest = iter(changed)
        for name in chosen:
            old = known[name]
            known[name] = [next(rest) for _ in old] if isinstance(old, list) else next(rest)
        alike = () if "repeated" in what else names
        found = replace(
            case,
            id=f"{case.id}, {what} {' and '.join(chosen)}".removesuffix(" "),
            inputs=tuple(known.values()),
            alike=alike,
            overlapping=what == "overlapping",
        )
        if _is_call(spec, found):
            if max(array.size for array in changed) >= _ENOUGH:
                yield found
                return
            fallback = fallback or found
    if fallback is not None:
        yield fallback


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


def _repeated(arrays: list[Array], axis: int) -> list[Array] | None:
    """Return arrays that repeat their first row or column; None if there is nothing to repeat."""
    if not any(array.ndim and array.shape[axis] > 1 for array in arrays):
        return None
    return [
        np.repeat(np.take(array, [0], axis), array.shape[axis], axis)
        if array.ndim and array.size
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
