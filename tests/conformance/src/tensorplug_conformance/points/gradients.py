"""Gradients: the tape's, in first and second order, against those of the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.comparing.vendor import ToleratedError, excess_allowed, flushed
from tensorplug_conformance.floats import finfo
from tensorplug_conformance.points.far_points import judge_far
from tensorplug_conformance.points.far_points import slopes as slopes_of
from tensorplug_conformance.points.gradient_points import Point, WrongGradientError, widened
from tensorplug_conformance.points.second_gradients import curvature, judge_second

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import DType
    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.points.second_gradients import Curvature
    from tensorplug_conformance.session import Session

__all__ = ["Right", "WrongGradientError", "compare_slopes", "judge_gradient"]

_DIFFERENCES = 1e-10  # error of the stencil itself, relative to the largest slope


@dataclass(frozen=True, slots=True)
class Right:
    """The expected gradients of a case: first ones by input, and second ones if there are any."""

    first: list[list[Array]]
    second: Curvature | None


def judge_gradient(
    session: Session,
    entry: CaseEntry,
    case: Case,
    slopes: dict[str, Any] | None = None,
) -> float:
    """Compare first and second gradients of all of ``entry.wrt`` at one case.

    Returns the worst error of the first ones in eps.

    ``slopes`` keeps the expected gradients by case, for later calls.

    Raises:
        ToleratedError: first ones are wrong strictly, and within a vendor's bounds.
        WrongGradientError: one of them is wrong or has a wrong type.
        GradientNotFoundError: one of them has no rule.

    """
    point = Point.of(session, entry, case)
    known = {} if slopes is None else slopes
    if case.relative:
        if case.id not in known:
            known[case.id] = [slopes_of(point, name) for name in point.wrt]
        return judge_far(session, point, known[case.id])
    if case.id not in known:
        by_value = isinstance(case.expected, tuple)  # at a kink, where there is no second gradient
        known[case.id] = Right(point.expected(), None if by_value else curvature(point))
    right = known[case.id]
    worst, tolerated = 0.0, ""
    zeros = flushed(session.device)
    for name, gradients, references in zip(
        point.wrt, point.gradients(session), right.first, strict=True
    ):
        for own, gradient, reference in zip(
            point.dtypes(name), gradients, references, strict=True
        ):
            by_value = right.second is None
            what = f"gradient of {name!r}"
            excused = partial(excess_allowed, entry, case, zeros=zeros)
            try:
                error = compare_slopes(
                    what, gradient, reference, own, by_value=by_value, excused=excused
                )
            except ToleratedError as fault:
                tolerated = tolerated or str(fault)
            else:
                worst = max(worst, error)
    if right.second is not None:
        judge_second(session, point, right.second)
    if tolerated:
        raise ToleratedError(tolerated)
    return worst


def compare_slopes(
    what: str,
    gradient: Array,
    reference: Array,
    dtype: DType,
    *,
    by_value: bool = False,
    least: float = 0.0,
    excused: Callable[[Array, Array], Array] | None = None,
) -> float:
    """Return the error in eps of the largest gradient; with ``by_value``, however small it is.

    ``least``: of the numbers to which errors are relative. ``excused``: takes the gradient and by
    how much each element is too far off, and says which of them are within a vendor's bounds.

    Raises:
        ToleratedError: it is too large, and within a vendor's bounds.
        WrongGradientError: it is too large, or the shapes or dtypes differ.

    """
    if gradient.shape != reference.shape:
        raise WrongGradientError(
            f"{what} has shape {list(gradient.shape)}, must be {list(reference.shape)}"
        )
    if dt.of(gradient.dtype) is not dtype:
        raise WrongGradientError(f"{what} is {gradient.dtype}, must be {dtype}")
    if not gradient.size:
        return 0.0
    meant = widened(reference)
    about = finfo(gradient.dtype)
    smallest = float(about.tiny) if by_value and meant.any() else 2.0**-10
    scale = max(float(np.max(np.abs(meant))), smallest, least)
    error = np.abs(widened(gradient) - meant) / scale
    eps = float(about.eps)
    allowed = tolerances().of_gradients(dtype) * eps + _DIFFERENCES
    wrong = ~(np.atleast_1d(error) <= allowed)
    if wrong.any():
        at = tuple(int(number) for number in np.argwhere(wrong)[0])
        got, expected = np.atleast_1d(gradient)[at], np.atleast_1d(meant)[at]
        allows = excused is not None and bool(
            np.all(~wrong | np.atleast_1d(excused(gradient, (error - allowed) * scale)))
        )
        raise (ToleratedError if allows else WrongGradientError)(
            f"{what}: {int(wrong.sum())} of {gradient.size} wrong; first at "
            f"{list(at)}: got {got!s}, must be {expected!s}"
        )
    return float(np.max(error)) / eps
