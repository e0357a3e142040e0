"""Gradients far from 0, near it, and at large magnitudes, where other points do not reach.

Points are derived from the smooth ones of a kernel: inputs that the corpus drew get values up to
1e12 and down to 1e-30, others, which may have a structure, are scaled. Slopes differ by many
orders of magnitude there. So each element is judged relative to itself, and the differences of
the oracle take steps that fit the element. Elements at which no two steps agree, where a function
jumps, has no value or varies too fast, say nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import flat
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.comparing.vendor import ToleratedError, excess_allowed, flushed
from tensorplug_conformance.floats import finfo
from tensorplug_conformance.points.gradient_points import (
    STENCIL,
    Point,
    WrongGradientError,
    widened,
)
from tensorplug_conformance.variants.sizes import is_call

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.plugin import DType
    from tensorplug_conformance.case import Array, Case, Operand
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.corpus import Corpus
    from tensorplug_conformance.session import Session


_DTYPES: Final = (dt.float32, dt.float64)
# (what, values, factor for inputs that may have a structure)
_MAGNITUDES: Final = (
    ("medium", (1.3, -1.3, 2.3, -2.3, 2.8, -2.8, 3.7, -3.7, 5.3, -5.3), 1.75),
    ("far", (4.5, -4.5, 8.0, -8.0, 12.5, -12.5, 20.0, -20.0, 50.0, -50.0), 8.0),
    ("large", (150.0, -150.0, 1e3, -1e3, 3e4, -3e4, 1e7, -1e7, 1e12, -1e12), 2.0**20),
    ("tiny", (1e-3, -1e-3, 1e-5, -1e-5, 1e-9, -1e-9, 1e-20, -1e-20, 1e-30, -1e-30), 2.0**-20),
)
_ELEMENTS: Final = 48  # of the inputs of a point
_STEPS: Final = tuple(2.0**-exponent for exponent in (6, 9, 12, 15, 18))
_CENTRAL: Final = tuple((sign * k, sign * w) for k, w in STENCIL for sign in (1, -1))
_ONWARD: Final = ((0, -25 / 12), (1, 4.0), (2, -3.0), (3, 4 / 3), (4, -1 / 4))
_AGREED: Final = 1e-9  # of two differences, relative
_ROUGHLY: Final = 1 << 10  # eps by which a difference may be off; it counts as error
_LOST: Final = 2.0 * float(np.finfo(np.longdouble).eps)  # of a term


def far_cases(entry: CaseEntry, corpus: Corpus, near: Sequence[Case]) -> Iterator[Case]:
    """Yield the cases derived from ``near``: one for each magnitude, of all inputs together."""
    if corpus.dtype not in _DTYPES or entry.near_only:
        return
    fitting = [case for case in near if _fits(entry, case)]
    rows = [case for case in fitting if all(x.ndim == 1 for x in flat(case.inputs))]
    for base in (rows or fitting)[:1]:
        for what, values, factor in _MAGNITUDES:
            moved = _moved(entry, corpus, base, values, factor)
            yield replace(moved, id=f"{base.id}, {what}", relative=True)


def _fits(entry: CaseEntry, case: Case) -> bool:
    positions = [entry.spec.input_names.index(name) for name in entry.wrt]
    arrays = flat(case.inputs[position] for position in positions)
    return (
        case.expected is None
        and bool(arrays)
        and all(x.size > 0 for x in flat(case.inputs))
        and sum(x.size for x in arrays) <= _ELEMENTS
    )


def _moved(
    entry: CaseEntry, corpus: Corpus, case: Case, values: Sequence[float], factor: float
) -> Case:
    """Return the case with other values in the inputs that are differentiated."""
    row = np.array(values)
    # In a sum of products, what is smaller by more digits than floats have would not show.
    alike = np.sign(row) * (1 + np.arange(row.size) / 8) * np.abs(row[row.size // 2])
    drawn = all(corpus.redrawn(x) is not None for x in flat(case.inputs))

    def filled(array: Array, turn: int, shape: tuple[int, ...], row: Array) -> Array:
        if not drawn:
            return corpus.of(array.astype(np.longdouble) * factor)
        count = int(np.prod(shape))
        apart = 1 + np.arange(count) // row.size / 16  # no two are equal
        return corpus.of((np.resize(np.roll(row, 3 * turn), count) * apart).reshape(shape))

    def anew(length: int | None) -> Iterator[Operand]:
        for at, (name, operand) in enumerate(
            zip(entry.spec.input_names, case.inputs, strict=True)
        ):
            if operand is None:
                yield None
                continue
            several = operand if isinstance(operand, list) else [operand]
            shapes = [x.shape if length is None else (length,) for x in several]
            pairs = zip(several, shapes, strict=True)
            if name in entry.wrt:
                chosen = alike if length is None else row
                items = [filled(x, at + k, shape, chosen) for k, (x, shape) in enumerate(pairs)]
            else:
                items = [np.resize(x, shape) for x, shape in pairs]
            yield items if isinstance(operand, list) else items[0]

    whole = replace(case, inputs=tuple(anew(row.size)))
    if drawn and len({x.shape for x in flat(case.inputs)}) == 1 and is_call(entry, whole):
        return whole  # a row of all values
    return replace(case, inputs=tuple(anew(None)))


class Slopes:
    """The slopes of the oracle by one array, and the errors of the differences that they are.

    ``size``: the sum of the sizes of the slopes of all terms, which may cancel.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.value = np.zeros(shape, np.longdouble)
        self.error = np.full(shape, np.inf, np.longdouble)
        self.size = np.zeros(shape, np.longdouble)

    def known(self, eps: float) -> Array:
        """Return where the slope is known as well as floats of this ``eps`` show, 0 perhaps."""
        near_zero = (self.value == 0) & np.isfinite(self.error)
        share = max(_AGREED, _ROUGHLY * eps)
        return np.asarray(near_zero | (self.error <= share * np.abs(self.value)))


def slopes(point: Point, name: str) -> list[Slopes]:
    """Return the slopes with respect to each array of an input."""
    if point.entry.slopes is not None:
        return [_by_formula(point, name)]
    position = point.entry.spec.input_names.index(name)
    operand = point.case.inputs[position]
    items = []
    inputs = [widened(operand) for operand in point.case.inputs]
    here = [np.atleast_1d(term.real) for term in point.terms(inputs, point.weights)]
    for index, member in enumerate(flat([operand])):
        target = inputs[position][index] if isinstance(operand, list) else inputs[position]
        probes = {at: _probe(point, inputs, target, at, here) for at in np.ndindex(member.shape)}
        # Where one element changes several terms, it may change others by less than digits show.
        coupled = any(np.count_nonzero(probe.moved) > 1 for probe in probes.values())
        slope = Slopes(member.shape)
        for at, probe in probes.items():
            slope.value[at], slope.error[at], slope.size[at] = _slope(probe, coupled=coupled)
        items.append(slope)
    return items


def _by_formula(point: Point, name: str) -> Slopes:
    assert point.entry.slopes is not None  # who calls has asked
    inputs = [widened(operand) for operand in point.case.inputs]
    with np.errstate(all="ignore"):
        value, size = point.entry.slopes(*map(widened, point.weights), *inputs)[name]
    slopes = Slopes(value.shape)
    slopes.value, slopes.size = value, size
    slopes.error = np.zeros(value.shape, np.longdouble)
    return slopes


@dataclass(frozen=True, slots=True)
class _Probe:
    """What several steps along one element change.

    ``tries``: steps, and by how much each term changes at each. ``terms``: the sizes of those
    that have a value; ``whole``: whether all have. ``moved``: which of them change at all.
    """

    tries: list[tuple[list[float], list[Array]]]
    terms: Array
    whole: bool
    moved: Array


def _probe(
    point: Point, inputs: list[Any], target: Array, at: tuple[int, ...], here: Sequence[Array]
) -> _Probe:
    value = target[at]
    scale = float(np.ldexp(1.0, int(np.frexp(value)[1]) - 1)) if value else 1.0
    stencils = [(_CENTRAL, [scale * step for step in _STEPS])]
    if scale < _STEPS[0] and target.ndim == 1 and len(flat(inputs)) == 1:
        # Where a function is not small itself, such steps vanish in it. Larger ones lead away
        # from 0, where it may have a kink; among several inputs there may be others.
        sign = -1.0 if value < 0 else 1.0
        stencils.append((_ONWARD, [sign * step for step in _STEPS[1:]]))
    counted = [np.isfinite(term) for term in here]
    with np.errstate(all="ignore"):
        tries = [
            (steps, [_changes(point, inputs, target, at, stencil, step, here) for step in steps])
            for stencil, steps in stencils
        ]
        moved = np.any([change != 0 for _, changes in tries for change in changes], axis=0)
    terms = np.concatenate([np.abs(x[some]) for x, some in zip(here, counted, strict=True)])
    return _Probe(tries, terms, all(map(np.all, counted)), moved)


def _slope(probe: _Probe, *, coupled: bool) -> tuple[Any, Any, Any]:
    """Return the slope along one element, its error, and the size of what it is the sum of."""
    unknown = np.longdouble(0), np.longdouble(np.inf), np.longdouble(0)
    if not probe.moved.any():
        if not probe.whole:
            return unknown  # what changes has no value, perhaps
        lost = _LOST * probe.terms.sum() / max(probe.tries[0][0])
        return np.longdouble(0), lost, np.longdouble(0)
    size = probe.terms.sum() if coupled else probe.terms[probe.moved].sum()
    best = unknown
    with np.errstate(all="ignore"):
        for steps, changes in probe.tries:
            slopes = [change / step for change, step in zip(changes, steps, strict=True)]
            for (larger, smaller), step in zip(pairwise(slopes), steps[1:], strict=True):
                error = abs(larger.sum() - smaller.sum()) + _LOST * size / abs(step)
                if error < best[1]:
                    best = smaller.sum(), error, np.abs(smaller).sum()
            if best[1] <= _AGREED * abs(best[0]):
                return best
    return best if best[0] else unknown


def _changes(
    point: Point,
    inputs: list[Any],
    target: Array,
    at: tuple[int, ...],
    stencil: Sequence[tuple[int, float]],
    step: float,
    here: Sequence[Array],
) -> Array:
    """Return by how much each term changes that counts, weighted as the difference says."""
    value = target[at]
    changes: list[Any] = []
    for k, weight in stencil:
        target[at] = value + k * np.longdouble(step)
        terms = [np.atleast_1d(term.real) for term in point.terms(inputs, point.weights)]
        # Without the value itself, what does not change is 0, whatever the weights' rounding.
        shares = [weight * (term - x) for term, x in zip(terms, here, strict=True)]
        changes = [a + b for a, b in zip(changes, shares, strict=True)] if changes else shares
    target[at] = value
    return np.concatenate([x[np.isfinite(term)] for x, term in zip(changes, here, strict=True)])


def judge_far(session: Session, point: Point, right: list[list[Slopes]]) -> float:
    """Compare the tape's gradients with the slopes that are known; return the worst error in eps.

    Raises:
        ToleratedError: one of them is wrong strictly, and within a vendor's bounds.
        WrongGradientError: one of them is wrong.
        GradientNotFoundError: one of them has no rule.

    """
    worst, tolerated = 0.0, ""
    zeros = flushed(session.device)
    for name, gradients, references in zip(
        point.wrt, point.gradients(session), right, strict=True
    ):
        for dtype, gradient, slope in zip(point.dtypes(name), gradients, references, strict=True):
            if gradient.shape != slope.value.shape or dt.of(gradient.dtype) is not dtype:
                raise WrongGradientError(
                    f"gradient of {name!r} is {gradient.dtype}{list(gradient.shape)}, must be "
                    f"{dtype}{list(slope.value.shape)}"
                )
            try:
                worst = max(worst, _judged(name, point, gradient, slope, zeros))
            except ToleratedError as fault:
                tolerated = tolerated or str(fault)
    if tolerated:
        raise ToleratedError(tolerated)
    return worst


def _judged(
    name: str, point: Point, gradient: Array, slope: Slopes, zeros: frozenset[DType]
) -> float:
    about = finfo(gradient.dtype)
    meant = slope.value
    size = slope.size
    usable = slope.known(float(about.eps)) & (size <= float(about.max))
    least = max(float(about.smallest_normal), point.entry.cancelled)
    with np.errstate(all="ignore"):
        error = np.abs(widened(gradient) - meant) / np.maximum(size, least)
    factor = tolerances().of_gradients(dt.of(gradient.dtype))
    allowed = factor * float(about.eps) + 4 * (_AGREED + slope.error / np.maximum(size, least))
    wrong = np.atleast_1d(usable & ~(error <= allowed))
    if wrong.any():
        at = tuple(int(number) for number in np.argwhere(wrong)[0])
        position = point.entry.spec.input_names.index(name)
        operand: Any = point.case.inputs[position]
        where = (
            "" if isinstance(operand, list) else f", where it is {np.atleast_1d(operand)[at]!s}"
        )
        excess = (error - allowed) * np.maximum(size, least)
        excused = excess_allowed(point.entry, point.case, gradient, excess, zeros)
        fault = ToleratedError if np.all(~wrong | np.atleast_1d(excused)) else WrongGradientError
        raise fault(
            f"gradient of {name!r}: {int(wrong.sum())} of {int(usable.sum())} wrong; first at "
            f"{list(at)}{where}: got {np.atleast_1d(gradient)[at]!s}, must be "
            f"{np.atleast_1d(meant)[at]!s}"
        )
    return float(np.max(np.where(usable, error, 0), initial=0)) / float(about.eps)
