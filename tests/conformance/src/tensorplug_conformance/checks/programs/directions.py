"""jvp = slope: forward mode passes tangents through each kernel as its oracle says.

Slopes are central differences of the oracle along one uneven direction of all inputs. Errors are
relative to the largest slope, or the largest value: slopes may cancel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.checks.check import Check, CheckFailedError
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.points.gradient_points import STENCIL, STEP, Point, WrongGradientError
from tensorplug_conformance.points.gradients import compare_slopes
from tensorplug_conformance.points.second_gradients import ALONG, directions_of, moved
from tensorplug_conformance.trying.needs import lacks_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


_POINTS: Final = 4  # per kernel


def _points(session: Session) -> Iterator[tuple[CaseEntry, Case]]:
    """Yield a few points of each kernel in one dtype, none of them at a kink or far from 0."""
    served = session.device.backend.dtypes
    for name, entry in sorted(entries(extension_tables()).items()):
        chosen = [d for d in (dt.float32, dt.complex64) if d in entry.dtypes and d in served]
        if entry.smooth is None or not chosen:
            continue
        items = [
            case
            for case in entry.gradient_cases(Corpus(chosen[0], 0, f"{name}:gradient"))
            if not isinstance(case.expected, tuple) and not lacks_dtype(session, entry.spec, case)
        ]
        for case in items[:: max(1, len(items) // _POINTS)][:_POINTS]:
            yield entry, case


def _pushed(session: Session, point: Point, directions: list[Any]) -> list[Array]:
    """Return the tangents of the outputs, one by one."""
    call, primals = point.on(session)
    chosen = dict(zip(point.entry.spec.input_names, directions, strict=True))
    tangents = [tp.tree_map(session.upload, chosen[name]) for name in point.wrt]
    with session.entered():
        _, tangents_out = tp.jvp(call, primals, tangents)
    return [session.read(tangent) for tangent in tangents_out]


def _slopes(point: Point, directions: list[Any]) -> list[Array]:
    """Return the slopes of the oracle's outputs."""
    total: list[Any] = [0.0] * len(point.outputs)
    for k, weight in STENCIL:
        for sign in (1, -1):
            values = point.values(moved(point, (directions, sign * k * STEP)))
            total = [a + b * (sign * weight) for a, b in zip(total, values, strict=True)]
    return [np.asarray(each / np.longdouble(STEP)) for each in total]


def _jvp_is_the_slope(_target: Target, opened: Callable[[], Session]) -> None:
    session = opened()
    for entry, case in _points(session):
        try:
            point = Point.of(session, entry, case)
            directions = directions_of(point, ALONG)
            pushed, right = _pushed(session, point, directions), _slopes(point, directions)
            values = point.values(moved(point))
            for at, (tangent, slope) in enumerate(zip(pushed, right, strict=True)):
                size = float(
                    np.max(np.abs(values[at]), initial=0.0, where=np.isfinite(values[at]))
                )
                what = f"tangent of output {at}"
                compare_slopes(what, tangent, slope, dt.of(tangent.dtype), least=size)
        except WrongGradientError as error:
            raise CheckFailedError(f"{entry.spec.name}, point {case.id}: {error}") from None


CHECKS: Final = (Check(4, "jvp = slope along a direction", _jvp_is_the_slope),)
