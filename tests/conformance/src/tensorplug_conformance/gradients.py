"""First gradients: the tape's against the slope of the oracle, by central differences.

The slope is taken of the wide oracle, never of the kernel under test, so it is good to about
1e-12 whatever the dtype of the backend. Of complex inputs both parts are moved: the tape must give
the slope along the real one, minus i times that along the imaginary one (docs/adr/0018).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug import dtypes as dt
from tensorplug.differentiation.autodiff import vjp
from tensorplug.dispatch import dispatch, dispatch_several
from tensorplug_conformance.tables import Bounded, Relation
from tensorplug_conformance.tolerances import tolerances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.dtypes import DType
    from tensorplug.tensor import Tensor
    from tensorplug_conformance.session import Session
    from tensorplug_conformance.tables import Array, Case, CaseEntry

__all__ = ["WrongGradientError", "judge_gradient", "slope"]

_STEP = 2.0**-11
# Five-point stencil: weights of f(x + k h) - f(x - k h), times 1 / h; error h**4.
_STENCIL = ((1, 2.0 / 3.0), (2, -1.0 / 12.0))
_DIFFERENCES = 1e-10  # what the stencil itself may be wrong by, relative to the largest slope


class WrongGradientError(Exception):
    """A gradient is wrong; the text says how."""


def judge_gradient(session: Session, entry: CaseEntry, case: Case, dtype: DType) -> float:
    """Compare the gradients of all of ``entry.wrt`` at one case; return the worst error in eps.

    Raises:
        WrongGradientError: one of them is wrong or has a wrong type.
        GradientNotFoundError: one of them has no rule.

    """
    weights = _weights(entry, case, dtype)
    found = _pulled(session, entry, case, weights)
    worst = 0.0
    for name, gradients, references in zip(
        _differentiated(entry, case), found, _expected(entry, case, weights), strict=True
    ):
        for gradient, reference in zip(gradients, references, strict=True):
            worst = max(worst, _compare(name, gradient, reference, dtype))
    return worst


def _differentiated(entry: CaseEntry, case: Case) -> list[str]:
    """Return the inputs of ``entry.wrt`` that are there."""
    given = dict(zip(entry.spec.input_names, case.inputs, strict=True))
    return [name for name in entry.wrt if given[name] is not None]


def _weights(entry: CaseEntry, case: Case, dtype: DType) -> Array:
    """Return the incoming gradient: uneven, so that a transposed or summed one is noticed."""
    value = _value(entry, case.inputs, case)
    complex_ = value.dtype.kind == "c"
    wanted = np.result_type(dtype.numpy, np.complex64) if complex_ else dt.real_part(dtype).numpy
    if isinstance(case.expected, tuple):
        return np.ones(value.shape, dtype=wanted)
    ramp = np.arange(value.size, dtype=np.float64)
    weights = 1 + ramp % 5 / 4 - ramp % 3 / 2
    turned = weights + 1j * (ramp % 4 / 2 - 0.5) if complex_ else weights
    return np.asarray(turned.reshape(value.shape), dtype=wanted)


def _pulled(session: Session, entry: CaseEntry, case: Case, weights: Array) -> list[list[Array]]:
    """Return the tape's gradients for each input that is differentiated, as lists of arrays."""
    operands = session.operands(case)
    positions = [entry.spec.input_names.index(name) for name in _differentiated(entry, case)]

    def call(*chosen: Any) -> Tensor:
        full = list(operands)
        for position, value in zip(positions, chosen, strict=True):
            full[position] = value
        if entry.spec.several:
            outputs = dispatch_several(entry.spec, *full, **case.attributes)
            return next(each for each in outputs if each.dtype in dt.INEXACT)
        return dispatch(entry.spec, *full, **case.attributes)

    primals = [operands[position] for position in positions]
    with session.entered():
        y, pull = vjp(call, *primals, unconnected="zeros")
        if y.shape != weights.shape:
            raise WrongGradientError(
                f"the value has shape {list(y.shape)}, not {list(weights.shape)}"
            )
        gradients = pull(session.upload(weights))
    return [
        [session.read(one) for one in each]
        if isinstance(each, list | tuple)
        else [session.read(each)]
        for each in gradients
    ]


def _expected(entry: CaseEntry, case: Case, weights: Array) -> list[list[Array]]:
    if isinstance(case.expected, tuple):
        return [[np.asarray(each)] for each in case.expected]
    return [slope(entry, case, name, weights) for name in _differentiated(entry, case)]


def slope(entry: CaseEntry, case: Case, name: str, weights: Array) -> list[Array]:
    """Return the gradient of ``real(sum(weights * oracle))`` with respect to input ``name``."""
    position = entry.spec.input_names.index(name)
    given = case.inputs[position]
    members = given if isinstance(given, list) else [given]
    result = []
    for index, member in enumerate(members):
        assert member is not None  # an absent input is not differentiated
        complex_ = member.dtype.kind == "c"
        gradient = np.zeros(member.shape, dtype=np.clongdouble if complex_ else np.longdouble)
        for at in np.ndindex(member.shape):
            place = (position, index, at)
            gradient[at] = _along(entry, case, weights, place, 1)
            if complex_:
                gradient[at] -= 1j * _along(entry, case, weights, place, 1j)
        result.append(gradient)
    return result


Place = tuple[int, int, tuple[int, ...]]  # of an element: input, which of a list of them, where


def _along(entry: CaseEntry, case: Case, weights: Array, place: Place, unit: complex) -> Any:
    """Return the slope where one element moves along ``unit``."""

    def moved(steps: int) -> Any:
        return _moved(entry, case, weights, place, steps * _STEP * unit)

    return sum(w * (moved(k) - moved(-k)) for k, w in _STENCIL) / np.longdouble(_STEP)


def _moved(
    entry: CaseEntry,
    case: Case,
    weights: Array,
    place: Place,
    by: complex,
) -> Any:
    """Return the weighted sum of the oracle's outputs with one element moved."""
    position, index, at = place
    inputs = [_widened(each) for each in case.inputs]
    target = inputs[position]
    if isinstance(target, list):
        target[index][at] += by
    else:
        target[at] += by
    return (_value(entry, inputs, case) * _widened(weights)).sum().real


def _widened(given: Any) -> Any:
    if isinstance(given, list):
        return [_widened(each) for each in given]
    if given is None or given.dtype.kind not in "fc":
        return given
    return given.astype(np.longdouble if given.dtype.kind == "f" else np.clongdouble)


def _value(entry: CaseEntry, inputs: Sequence[Any], case: Case) -> Array:
    assert entry.oracle is not None  # gradients are judged by it
    found = entry.oracle(*inputs, **case.attributes)
    if isinstance(found, Relation):
        assert found.first is not None  # gradients are tried where it is determined
        return found.first
    outputs = [
        each.value if isinstance(each, Bounded) else np.asarray(each)
        for each in (found if isinstance(found, tuple) else (found,))
    ]
    # Of several outputs the first that can have a gradient; others hold indices and the like.
    return next((each for each in outputs if each.dtype.kind in "fcO"), outputs[0])


def _compare(name: str, gradient: Array, reference: Array, dtype: DType) -> float:
    if gradient.shape != reference.shape:
        raise WrongGradientError(
            f"gradient of {name!r} has shape {list(gradient.shape)}, "
            f"must be {list(reference.shape)}"
        )
    if dt.of(gradient.dtype) is not dtype:
        raise WrongGradientError(f"gradient of {name!r} is {gradient.dtype}, must be {dtype}")
    if not gradient.size:
        return 0.0
    meant = _widened(reference)
    scale = max(float(np.max(np.abs(meant))), 2.0**-10)
    error = np.abs(_widened(gradient) - meant) / scale
    eps = float(np.finfo(gradient.dtype).eps)
    allowed = tolerances().gradient * eps + _DIFFERENCES
    wrong = ~(np.atleast_1d(error) <= allowed)
    if wrong.any():
        at = tuple(int(each) for each in np.argwhere(wrong)[0])
        got, wanted = np.atleast_1d(gradient)[at], np.atleast_1d(meant)[at]
        raise WrongGradientError(
            f"gradient of {name!r}: {int(wrong.sum())} of {gradient.size} wrong; first at "
            f"{list(at)}: got {got!s}, must be {wanted!s}"
        )
    return float(np.max(error)) / eps
