"""First gradients: the tape's against the slope of the oracle, by central differences.

The slope is taken of the wide oracle, never of the kernel under test, so it is good to about
1e-12 whatever the dtype of the backend.
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
        entry.wrt, found, _expected(entry, case, weights), strict=True
    ):
        for gradient, reference in zip(gradients, references, strict=True):
            worst = max(worst, _compare(name, gradient, reference, dtype))
    return worst


def _weights(entry: CaseEntry, case: Case, dtype: DType) -> Array:
    """Return the incoming gradient: uneven, so that a transposed or summed one is noticed."""
    shape = _value(entry, case.inputs, case).shape
    if isinstance(case.expected, tuple):
        return np.ones(shape, dtype=dtype.numpy)
    ramp = np.arange(int(np.prod(shape)), dtype=np.float64)
    return np.asarray((1 + ramp % 5 / 4 - ramp % 3 / 2).reshape(shape), dtype=dtype.numpy)


def _pulled(session: Session, entry: CaseEntry, case: Case, weights: Array) -> list[list[Array]]:
    """Return the tape's gradients for each input in ``entry.wrt``, as lists of arrays."""
    operands = session.operands(case)
    positions = [entry.spec.input_names.index(name) for name in entry.wrt]

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
    return [slope(entry, case, name, weights) for name in entry.wrt]


def slope(entry: CaseEntry, case: Case, name: str, weights: Array) -> list[Array]:
    """Return the gradient of ``sum(weights * oracle)`` with respect to input ``name``."""
    position = entry.spec.input_names.index(name)
    given = case.inputs[position]
    members = given if isinstance(given, list) else [given]
    result = []
    for index, member in enumerate(members):
        assert member is not None  # an absent input is not differentiated
        gradient = np.zeros(member.shape, dtype=np.longdouble)
        for at in np.ndindex(member.shape):
            gradient[at] = sum(
                weight
                * (
                    _moved(entry, case, weights, position, index, at, k * _STEP)
                    - _moved(entry, case, weights, position, index, at, -k * _STEP)
                )
                for k, weight in _STENCIL
            ) / np.longdouble(_STEP)
        result.append(gradient)
    return result


def _moved(
    entry: CaseEntry,
    case: Case,
    weights: Array,
    position: int,
    index: int,
    at: tuple[int, ...],
    by: float,
) -> Any:
    """Return the weighted sum of the oracle's outputs with one element moved."""
    inputs = [_widened(each) for each in case.inputs]
    target = inputs[position]
    if isinstance(target, list):
        target[index][at] += by
    else:
        target[at] += by
    return (_value(entry, inputs, case) * weights.astype(np.longdouble)).sum()


def _widened(given: Any) -> Any:
    if isinstance(given, list):
        return [_widened(each) for each in given]
    if given is None or given.dtype.kind != "f":
        return given
    return given.astype(np.longdouble)


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
    meant = reference.astype(np.longdouble)
    scale = max(float(np.max(np.abs(meant))), 2.0**-10)
    error = np.abs(gradient.astype(np.longdouble) - meant) / scale
    eps = float(np.finfo(gradient.dtype).eps)
    allowed = tolerances().gradient * eps + _DIFFERENCES
    wrong = ~(np.atleast_1d(error) <= allowed)
    if wrong.any():
        at = tuple(int(each) for each in np.argwhere(wrong)[0])
        got, wanted = np.atleast_1d(gradient)[at], np.atleast_1d(meant)[at]
        raise WrongGradientError(
            f"gradient of {name!r}: {int(wrong.sum())} of {gradient.size} wrong; first at "
            f"{list(at)}: got {got!s}, must be {float(wanted)!r}"
        )
    return float(np.max(error)) / eps
