"""Whether results are kept under the place of an input in memory, and its first elements.

Memory gets other contents in two ways: an input is overwritten in place, as ``x[...] = y`` does,
or it is released and new buffers take its place. Their beginnings are alike, so that a key made of
an address and a few elements stays the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import as_tensor
from tensorplug_conformance.case import flat, mapped
from tensorplug_conformance.comparing.compare import same_bits
from tensorplug_conformance.variants.histories import previous

if TYPE_CHECKING:
    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.session import Session


_ROUNDS: Final = 6  # until memory is given out again, in one order or another
_MOST: Final = 4096  # elements of an input
_ENOUGH: Final = 8  # elements, of which the second half differs
_RELEASED: Final = "the result is that of released inputs whose memory and first elements it got"


def most_telling(cases: list[Case]) -> Case | None:
    """Return the case of a row whose smallest input is the largest, up to ``_MOST`` elements."""
    fitting = [
        case
        for case in cases
        if not case.refused
        and not case.light
        and case.layout == "dense"
        and flat(case.inputs)
        and _ENOUGH <= max(x.size for x in flat(case.inputs)) <= _MOST
    ]
    return max(fitting, key=lambda case: min(x.size for x in flat(case.inputs)), default=None)


def mistaken(session: Session, spec: KernelSpec, case: Case) -> str:
    """Return what is wrong where memory gets other contents; empty if nothing is."""
    call_before = previous(spec, case, "freed")
    assert call_before is not None  # "freed" changes every case
    both = call_before[0], case.inputs
    held = [_uploaded(session, inputs) for inputs in both]  # neither gets the other's memory
    right = [_results(session, spec, case, operands) for operands in held]
    del held
    for _ in range(_ROUNDS):
        for inputs, expected in zip(both, right, strict=True):
            if not _same(expected, _results(session, spec, case, _uploaded(session, inputs))):
                return _RELEASED
    with session.entered():
        operands = [mapped(_own, operand) for operand in both[0]]
    first = _results(session, spec, case, operands)
    with session.entered():
        for tensor, array in zip(flat(operands), flat(case.inputs), strict=True):
            _overwrite(tensor, array)
    if not _same(right[1], _results(session, spec, case, operands)):
        return "the result is that of the inputs before they were overwritten in place"
    return "" if _same(right[0], first) else _RELEASED


def _own(array: Array) -> Any:
    """Return a tensor that has its memory to itself: that of an assignment is written in place."""
    tensor = as_tensor(np.array(array))
    _overwrite(tensor, array)
    return tensor


def _overwrite(tensor: Any, array: Array) -> None:
    """Assign both halves of the elements: a tensor that is assigned as a whole gets new memory."""
    if not array.ndim:
        tensor[...] = as_tensor(np.array(array))
        return
    half = len(array) // 2
    for part in (slice(None, half), slice(half, None)):
        tensor[part] = as_tensor(np.array(array[part]))


def _uploaded(session: Session, inputs: Any) -> list[Any]:
    with session.entered():
        return [mapped(lambda one: as_tensor(np.array(one)), operand) for operand in inputs]


def _results(
    session: Session, spec: KernelSpec, case: Case, operands: list[Any]
) -> list[Array] | None:
    called = session.attempt(spec, operands, case.attributes)
    return None if called is None else called[1]


def _same(right: list[Array] | None, results: list[Array] | None) -> bool:
    """Return whether results are right, or one of the calls failed: the case itself says so."""
    return right is None or results is None or all(map(same_bits, right, results))
