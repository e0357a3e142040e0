"""The profile ``vendor``: what is allowed beyond the strict bounds, and nothing else.

- The errors of published tables, where they are larger: ``vendor.toml``, ``Published``.
- Subnormal numbers taken for 0 or returned as 0, if the backend declares so: by OpenCL C 3.0,
  "Edge Case Behavior in Flush To Zero Mode". Both standards require subnormal float64 numbers.
- What a vendor's own libraries do with a few functions in the tails and at infinities, where
  intermediate results of the formula as it is written in textbooks overflow: ``_EXCUSED``.

All else is as in the strict profile: shapes, dtypes, bits of what is only moved, repeatability.
Only results that fail strictly are looked at, so a correct backend pays nothing.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Bounded
from tensorplug_conformance.comparing.compare import wrong_elements
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.floats import finfo, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tensorplug.dispatch.device import Device
    from tensorplug.plugin import DType, TensorType
    from tensorplug_conformance.case import Array, Case, Operand, Reference
    from tensorplug_conformance.case_entry import CaseEntry


Profile = Literal["strict", "vendor"]
PROFILES: Final[tuple[Profile, ...]] = ("strict", "vendor")

_ROUNDED: Final = 0.5  # ulp from the true value to the one that CUDA's tables compare with


class ToleratedError(Exception):
    """A result is wrong strictly, and within a vendor's bounds; the text says how."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """``ulp``: kernel -> dtype -> the largest published error."""

    version: str
    ulp: Mapping[str, Mapping[str, float]]

    def of(self, entry: CaseEntry, dtype: DType) -> float:
        """Return the error allowed in ulp, never less than the strict profile allows."""
        lines = self.ulp.get(entry.spec.name, {}), entry.published.ulp
        published = [line.get(dtype.name, 0.0) for line in lines]
        return max(*published, tolerances().of(entry, dtype))


@functools.cache
def bounds() -> Bounds:
    """Return the published tables, the larger number for each function."""
    text = (resources.files(__package__) / "vendor.toml").read_text("utf-8")
    table = tomllib.loads(text)
    largest: dict[str, dict[str, float]] = {}
    for name, more in (("opencl", 0.0), ("cuda", _ROUNDED), ("onemkl", 0.0)):
        for kernel, line in table[name].items():
            known = largest.setdefault(kernel, {})
            for dtype, ulp in line.items():
                known[dtype] = max(known.get(dtype, 0.0), ulp + more)
    return Bounds(table["version"], largest)


def flushed(device: Device) -> frozenset[DType]:
    """Return the dtypes whose subnormal numbers may be taken for 0 on a device."""
    declared = device.capabilities.flushes
    return frozenset(
        dtype for dtype in declared if dtype.numpy.itemsize < dt.float64.numpy.itemsize
    )


def allows(
    entry: CaseEntry,
    case: Case,
    at: int,
    result: Array,
    type_: TensorType,
    reference: Reference,
    dtype: DType,
    zeros: frozenset[DType],
) -> bool:
    """Return whether output ``at`` of a case, which is wrong strictly, is within these bounds.

    ``dtype``: of the row; ``zeros``: the dtypes whose subnormal numbers may be taken for 0.
    """
    value = _value(reference)
    shape = type_.shape if type_.known else value.shape
    if result.shape != shape or result.dtype != type_.dtype.numpy or kind_of(result.dtype) == "T":
        return False
    small: frozenset[DType] = frozenset() if entry.moves else zeros
    published = _published(entry, case)
    limit: dict[str, Any] = {
        "ulp": (bounds() if published else tolerances()).of(entry, dtype),
        "signed_zero": entry.signed_zero,
        "least": _least(result.dtype, small),
    }
    with np.errstate(all="ignore"):
        right = _whole(reference, case, result.shape)
        wrong = wrong_elements(result, right, **limit)
        wrong &= ~_excused(entry, case, result, _value(right))
        for other in _flushed_cases(case, small):
            if not wrong.any():
                break
            answer = entry.answer(other)
            expected = answer[at] if isinstance(answer, tuple) else answer
            if not isinstance(expected, np.ndarray | Bounded):
                break  # a relation, which has no elements
            wrong &= wrong_elements(result, _whole(expected, case, result.shape), **limit)
    return not wrong.any()


def excess_allowed(
    entry: CaseEntry, case: Case, gradient: Array, excess: Array, zeros: frozenset[DType]
) -> Array:
    """Return which elements of a gradient are within these bounds, though wrong strictly.

    ``excess``: by how much each is further off than the strict bound allows.
    """
    dtype = dt.of(gradient.dtype).name
    room = _least(gradient.dtype, zeros) + entry.published.absolute.get(dtype, 0.0)
    allowed = excess <= room
    x = case.inputs[-1]
    if entry.spec.name in _INFINITE and isinstance(x, np.ndarray) and x.shape == gradient.shape:
        allowed |= np.isinf(x) & np.isnan(gradient)
    return np.asarray(allowed)


def _published(entry: CaseEntry, case: Case) -> bool:
    """Return whether the tables have a number for the inputs of a case."""
    if entry.published.gap is None:
        return True
    low, high = entry.published.gap
    x: Any = case.inputs[0]
    return not bool(np.any((x > low) & (x < high)))


def _value(reference: Reference) -> Array:
    return reference.value if isinstance(reference, Bounded) else reference


def _whole(reference: Reference, case: Case, shape: tuple[int, ...]) -> Reference:
    """Return a reference for all elements, where it is of one period of a case."""
    if not case.period:
        return reference
    if isinstance(reference, Bounded):
        return Bounded(np.resize(reference.value, shape), np.resize(reference.bound, shape))
    return np.resize(reference, shape)


# Subnormal numbers.


def _part(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the parts of a complex number."""
    return np.empty((), dtype).real.dtype if dtype.kind == "c" else dtype


def _least(dtype: np.dtype[Any], zeros: frozenset[DType]) -> float:
    """Return the smallest normal number where smaller results may become 0, else 0."""
    if kind_of(dtype) not in "fc" or dt.of(_part(dtype)) not in zeros:
        return 0.0
    return float(finfo(dtype).tiny)


def _flushed_cases(case: Case, zeros: frozenset[DType]) -> Iterator[Case]:
    """Yield the case with subnormal inputs replaced by 0, of their sign or of either."""
    if case.expected is not None or not zeros:
        return
    for zero in (None, 0.0, -0.0):
        inputs = tuple(_flushed(operand, zeros, zero) for operand in case.inputs)
        if any(new is not old for new, old in zip(inputs, case.inputs, strict=True)):
            yield replace(case, inputs=inputs)


def _flushed(operand: Operand, zeros: frozenset[DType], zero: float | None) -> Operand:
    if operand is None:
        return None
    if isinstance(operand, list):
        several = [_array_flushed(array, zeros, zero) for array in operand]
        same = all(new is old for new, old in zip(several, operand, strict=True))
        return operand if same else several
    return _array_flushed(operand, zeros, zero)


def _array_flushed(array: Array, zeros: frozenset[DType], zero: float | None) -> Array:
    """Return the array itself if there is nothing to replace."""
    tiny = _least(array.dtype, zeros)
    if not tiny:
        return array
    result = np.array(array)
    parts = (result.real, result.imag) if result.dtype.kind == "c" else (result,)
    changed = False
    for part in parts:
        small = (part != 0) & (np.abs(part) < tiny)
        changed |= bool(small.any())
        part[small] = np.copysign(0, part[small]) if zero is None else zero
    return result if changed else array


# Edges: which elements a formula as it is written in textbooks makes 0, NaN or infinite.


def _excused(entry: CaseEntry, case: Case, result: Array, value: Array) -> Array:
    name = entry.spec.name
    excused = np.zeros(np.shape(result), bool)
    if name in _EXCUSED and not case.period:
        excused = _EXCUSED[name](case, result, value)
    published = entry.published
    if published.absolute:
        room = published.absolute.get(dt.of(result.dtype).name, 0.0)
        x: Any = case.inputs[0]
        whole: Any = _whole(x, case, result.shape)
        excused = excused | (np.abs(whole) >= published.absolute_from) & (
            np.abs(result - value) <= room
        )
    return np.atleast_1d(excused)


def _last(case: Case) -> Any:
    return case.inputs[-1]


def _sigmoid(_case: Case, result: Array, value: Array) -> Array:
    """1 / (1 + e**-x) is 0 where the power is infinite, and the sigmoid subnormal."""
    return np.asarray((result == 0) & (np.abs(value) < finfo(result.dtype).tiny))


def _vanished(x: Array, result: Array, value: Array) -> Array:
    """x / (1 + e**-x) is 0 where the power is infinite."""
    lost = -x.astype(np.longdouble) > np.log(np.longdouble(finfo(x.dtype).max))
    return np.asarray((result == 0) & lost & np.isfinite(value))


def _silu(case: Case, result: Array, value: Array) -> Array:
    return _vanished(_last(case), result, value) | _gelu(case, result, value)


def _gelu(case: Case, result: Array, _value: Array) -> Array:
    """x times 0 is NaN at minus infinity."""
    return np.asarray(np.isnan(result) & np.isneginf(_last(case)))


def _silu_grad(case: Case, result: Array, value: Array) -> Array:
    return _vanished(_last(case), result, value) | _gelu_grad(case, result, value)


def _gelu_grad(case: Case, result: Array, _value: Array) -> Array:
    """x times a slope of 0 is NaN at both infinities."""
    return np.asarray(np.isnan(result) & np.isinf(_last(case)))


def _layer_norm_grad(case: Case, result: Array, _value: Array) -> Array:
    """Where an element of dy is infinite, its example's means are: infinity less infinity."""
    dy: Any = case.inputs[0]
    axis = case.attributes.get("axis", -1)
    axes = tuple(axis) if isinstance(axis, tuple | list) else axis
    return np.asarray(np.isinf(dy).any(axis=axes, keepdims=True) & ~np.isfinite(result))


_EXCUSED: Final[Mapping[str, Callable[[Case, Array, Array], Array]]] = {
    "Sigmoid": _sigmoid,
    "Silu": _silu,
    "SiluGrad": _silu_grad,
    "Gelu": _gelu,
    "GeluGrad": _gelu_grad,
    "LayerNormGrad": _layer_norm_grad,
}
_INFINITE: Final = ("Silu", "Gelu", "SiluGrad", "GeluGrad")
