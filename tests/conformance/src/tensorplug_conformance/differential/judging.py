"""Judges the outputs of two backends for one call: by each other first, then by the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import DType, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case, Relation, flat
from tensorplug_conformance.comparing.compare import judge, same_bits
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.case_entry import CaseEntry


_LARGEST: Final = 1 << 21  # elements of a call for which the oracle is asked


@dataclass(frozen=True, slots=True)
class Verdict:
    """A comparison of two backends in one call.

    ``ulp``: how far apart their outputs are at most. ``allowed``: how far apart two correct
    backends may be by the table alone, in ulp: twice the error allowed of one. ``faults``: what is
    wrong with each, in their order; both empty if the difference is within the bounds. ``oracle``:
    whether the oracle decided. ``unjudged``: why nothing can be said of a difference.
    """

    ulp: float = 0.0
    allowed: float = 0.0
    faults: tuple[str, str] = ("", "")
    oracle: bool = False
    unjudged: str = ""

    @property
    def parted(self) -> bool:
        """Whether the difference is beyond the bounds."""
        return any(self.faults)


def plain_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return canonical attributes as a caller writes them: dtypes by name."""
    return {
        name: value.name if isinstance(value, DType) else value
        for name, value in attributes.items()
    }


def judge_call(
    entry: CaseEntry | None,
    operands: Sequence[Any],
    attributes: Mapping[str, Any],
    ours: Sequence[Array],
    theirs: Sequence[Array],
) -> Verdict:
    """Compare the outputs of two backends, ``ours`` and ``theirs``, for one call.

    ``entry``: the kernel's cases, None if it has none; then only what must be exact is judged.
    """
    fault = _other_types(ours, theirs)
    if fault:
        return Verdict(float("inf"), faults=("", fault))
    if all(map(same_bits, ours, theirs)):
        return Verdict()
    dtype = None if entry is None else _dtype_of(entry, operands, attributes)
    limit = 0.5 if entry is None or dtype is None else tolerances().of(entry, dtype)
    signed = entry is not None and entry.signed_zero
    items = [
        judge(b, _type_of(a), _as_reference(a), ulp=2 * limit, signed_zero=signed)
        for a, b in zip(ours, theirs, strict=True)
    ]
    ulp = max(one.ulp for one in items)
    if not any(one.fault for one in items):
        return Verdict(ulp, 2 * limit)
    apart = next(one.fault for one in items if one.fault)
    if entry is None or entry.oracle is None:
        return _without_oracle(ours, ulp, limit, apart, "the kernel has no oracle")
    if sum(array.size for array in [*flat(operands), *ours]) > _LARGEST:
        return _without_oracle(ours, ulp, limit, apart, "the call is too large for the oracle")
    try:
        right = entry.answered(operands, _for_oracle(entry, attributes))
    except Exception as error:  # noqa: BLE001  # an oracle need not know every call of a program
        why = f"the oracle has no answer ({type(error).__name__}: {error})"
        return _without_oracle(ours, ulp, limit, apart, why)
    faults = tuple(_fault(right, outputs, limit, signed=signed) for outputs in (ours, theirs))
    return Verdict(ulp, 2 * limit, (faults[0], faults[1]), oracle=True)


def _without_oracle(
    ours: Sequence[Array], ulp: float, limit: float, apart: str, why: str
) -> Verdict:
    """Return the verdict where one output is all that the other can be compared with."""
    if any(kind_of(array.dtype) in "fc" for array in ours):  # a bound may be wider than the table
        return Verdict(ulp, 2 * limit, unjudged=f"{apart}; {why}")
    return Verdict(ulp, 2 * limit, ("", f"{apart}, by the other backend"))


def _other_types(ours: Sequence[Array], theirs: Sequence[Array]) -> str:
    if len(ours) != len(theirs):
        return f"{len(theirs)} outputs instead of {len(ours)}"
    for a, b in zip(ours, theirs, strict=True):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"it is {_type_of(b)} instead of {_type_of(a)}"
    return ""


def _type_of(array: Array) -> TensorType:
    return TensorType(dt.of(array.dtype), array.shape)


def _as_reference(array: Array) -> Array:
    return wide(array) if kind_of(array.dtype) in "fc" else array


def _dtype_of(
    entry: CaseEntry, operands: Sequence[Any], attributes: Mapping[str, Any]
) -> DType | None:
    """Return the dtype of a call, by which tolerances are looked up."""
    types = Case("", tuple(operands)).types
    dtype: DType | None = entry.spec.dtype_of(types, entry.spec.resolve(types, attributes)[1])
    return dtype


def _for_oracle(entry: CaseEntry, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that differ from the defaults: an oracle may know no others."""
    known = entry.spec.attributes
    return {
        name: value
        for name, value in plain_attributes(attributes).items()
        if name not in known or not _same(known[name].default, value)
    }


def _same(default: object, value: object) -> bool:
    return type(default) is type(value) and default == value


def _fault(right: Any, outputs: Sequence[Array], limit: float, *, signed: bool) -> str:
    """Return what is wrong with outputs by the oracle's answer."""
    if isinstance(right, Relation):
        for name, value, reference in right.check(*outputs):
            error = np.abs(value - reference.value)
            if not bool(np.all(error <= reference.bound)):
                return f"{name}: off by {float(np.max(error, initial=0)):.3g}"
        return ""
    answers = right if isinstance(right, tuple) else (right,)
    for output, reference in zip(outputs, answers, strict=True):
        judgement = judge(output, _type_of(output), reference, ulp=limit, signed_zero=signed)
        if judgement.fault:
            return judgement.fault
    return ""
