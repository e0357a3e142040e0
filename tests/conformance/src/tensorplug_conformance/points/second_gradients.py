"""Second gradients: the tape's gradient of a gradient against second differences of the oracle.

The gradient g(x, w) of sum(w * f(x)) is differentiated once more, along one uneven direction v.
That gives H v by the inputs and J v by the incoming gradient w. Each of the two is compared in
one number, along another uneven direction: a rule that is not differentiable, or whose own rule
is wrong at any element, changes it. That costs twenty calls of the oracle, however many elements
there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.autodiff.grad import vjp
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import mapped
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.floats import finfo
from tensorplug_conformance.points.gradient_points import (
    STENCIL,
    STEP,
    Point,
    WrongGradientError,
    widened,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.case import Array, Operand
    from tensorplug_conformance.session import Session


# The error of second differences: rounding of the oracle, times 1 / STEP**2.
_DIFFERENCES = 1e-8


@dataclass(frozen=True, slots=True)
class Curvature:
    """The expected values at one point, along the directions of this module.

    ``inputs``: <u, H v>. ``incoming``: <du, J v>. ``scale``: sum(|w f|), to which the rounding of
    these is relative.
    """

    inputs: float
    incoming: float
    scale: float


def curvature(point: Point) -> Curvature:
    """Return the second differences of the oracle at ``point``."""
    directions = directions_of(point, ALONG)
    bent = _second_difference(point, directions, directions_of(point, _ACROSS))
    incoming = [_uneven(weight, _ACROSS) for weight in point.weights]
    rising = sum(
        weight
        * (
            point.weighted(moved(point, (directions, k * STEP)), incoming)
            - point.weighted(moved(point, (directions, -k * STEP)), incoming)
        )
        for k, weight in STENCIL
    )
    return Curvature(bent, float(rising / STEP), _scale(point))


def _second_difference(point: Point, v: Sequence[Any], u: Sequence[Any]) -> float:
    total: Any = np.longdouble(0)
    for k, one in STENCIL:
        for j, other in STENCIL:
            for sign, along in ((1, 1), (-1, -1)):
                for turned in (1, -1):
                    inputs = moved(point, (v, along * k * STEP), (u, turned * j * STEP))
                    total += sign * turned * one * other * point.weighted(inputs, point.weights)
    return float(total / np.longdouble(STEP) ** 2)


def _scale(point: Point) -> float:
    """Return the size of the terms of a difference, at least 2**-10."""
    inputs = [widened(operand) for operand in point.case.inputs]
    sizes = [np.abs(term).sum() for term in point.terms(inputs, point.weights)]
    return max(float(sum(sizes)), 2.0**-10)


# Directions: per position of an input an array, a list of them, or None where nothing moves.

ALONG, _ACROSS = 5, 7


def _uneven(array: Array, period: int) -> Array:
    """Return numbers between -1/2 and 1/2 that are exact in every float, of the array's shape."""
    ramp = np.arange(array.size, dtype=np.float64)
    values = (1 + ramp * 3 % period) / 8 * np.where(ramp * 2 % (period + 1) < 3, -0.5, 0.5)
    if array.dtype.kind == "c":
        values = values + 1j * np.roll(values, 1) / 2
    return np.asarray(values.reshape(array.shape), dtype=array.dtype)


def directions_of(point: Point, period: int) -> list[Operand]:
    """Return a direction for each input that is differentiated, None for others."""
    directions: list[Operand] = []
    for name, operand in zip(point.entry.spec.input_names, point.case.inputs, strict=True):
        if name not in point.wrt or operand is None:
            directions.append(None)
        else:
            directions.append(mapped(lambda array: _uneven(array, period), operand))
    return directions


def moved(point: Point, *steps: tuple[Sequence[Operand], float]) -> list[Any]:
    """Return the wide inputs, moved along directions."""
    inputs = [widened(operand) for operand in point.case.inputs]
    for direction, by in steps:
        for at, along in enumerate(direction):
            if isinstance(along, list):
                pairs = zip(inputs[at], along, strict=True)
                inputs[at] = [np.asarray(x + by * widened(d)) for x, d in pairs]
            elif along is not None:
                inputs[at] = np.asarray(inputs[at] + by * widened(along))
    return inputs


def judge_second(session: Session, point: Point, right: Curvature) -> None:
    """Compare the tape's second gradients at ``point``.

    Raises:
        WrongGradientError: one of them is wrong.
        GradientNotFoundError: one of them has no rule.

    """
    along_inputs, along_incoming = _second_gradients(session, point)
    across = dict(zip(point.entry.spec.input_names, directions_of(point, _ACROSS), strict=True))
    named = ", ".join(map(repr, point.wrt))
    listed = [direction for name in point.wrt for direction in _listed(across[name])]
    _compare(f"second gradient by {named}", along_inputs, listed, right.inputs, right)
    directions = [_uneven(weight, _ACROSS) for weight in point.weights]
    what = "gradient of the gradient by the incoming one"
    _compare(what, along_incoming, directions, right.incoming, right)


def _second_gradients(session: Session, point: Point) -> tuple[list[Array], list[Array]]:
    """Return H v, input by input, and J v, output by output."""
    call, primals = point.on(session)
    weights = [session.upload(weight) for weight in point.weights]
    directions = directions_of(point, ALONG)
    positions = [point.entry.spec.input_names.index(name) for name in point.wrt]
    v: list[Any] = [directions[at] for at in positions]

    def gradient(inputs: list[Any], incoming: list[Any]) -> list[Any]:
        return list(vjp(call, *inputs, unconnected="zeros")[1](incoming))

    with session.entered():
        _, vjp_function = vjp(gradient, primals, weights, unconnected="zeros")
        along_inputs, along_incoming = vjp_function(mapped(session.upload, v))
    flat = [one for along_operand in along_inputs for one in _listed(along_operand)]
    return [session.read(one) for one in flat], [session.read(one) for one in along_incoming]


def _listed(operand: Any) -> list[Any]:
    return list(operand) if isinstance(operand, list | tuple) else [operand]


def _compare(
    what: str, results: Sequence[Array], directions: Sequence[Any], meant: float, right: Curvature
) -> None:
    """Compare <directions, found> with ``meant``, relative to the size of the terms."""
    total, size, share = np.longdouble(0), 0.0, 0.0
    for item, direction in zip(results, directions, strict=True):
        if item.shape != direction.shape or item.dtype != direction.dtype:
            raise WrongGradientError(
                f"{what} is {item.dtype}{list(item.shape)}, must be "
                f"{direction.dtype}{list(direction.shape)}"
            )
        terms = (widened(item) * widened(direction)).real
        total, size = total + terms.sum(), size + float(np.abs(terms).sum())
        factor = tolerances().of_second_gradients(dt.of(item.dtype))
        share = max(share, factor * float(finfo(item.dtype).eps))
    scale = max(size, right.scale)
    allowed = (share + _DIFFERENCES) * scale
    error = abs(float(total) - meant)
    if not error <= allowed:
        raise WrongGradientError(
            f"{what}, along one direction, is {float(total):.9g}, must be {meant:.9g}"
        )
