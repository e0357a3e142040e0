"""Inputs that are misread: swapped, not broadcast, narrowed, or read as another type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import TensorplugError
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import mapped
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.floats import finfo, kind_of
from tensorplug_conformance.selftest.kinds.kind import ORDINARY, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.selftest.sabotage import Call


_NUDGED: Final = 4096  # elements: duplicates are not looked for among more


def _reading(change: Callable[[Array], Array]) -> Callable[[Call], Any]:
    """Return a saboteur that misreads its data, but not indices."""

    def wrong(call: Call) -> Any:
        with np.errstate(all="ignore"):
            return _attempt(call, _misread(call, change))

    return wrong


def _misread(call: Call, change: Callable[[Array], Array]) -> list[Any]:
    operands: list[Any] = []
    for name, operand in zip(call.spec.input_names, call.inputs(), strict=True):
        misread = _same if call.spec.accepted(name) == dt.INTEGER else change
        operands.append(mapped(misread, operand))
    return operands


def _attempt(call: Call, inputs: list[Any]) -> Any:
    """Return the clean kernel's result for other values, where it has one."""
    try:
        results = call.clean(inputs)
    except (ValueError, IndexError, TypeError, ArithmeticError, TensorplugError):
        return call.clean()
    return _only_what_changed(call, results)


def _only_what_changed(call: Call, results: list[Array]) -> list[Array]:
    """Return ``results``, with clean results where the changed inputs make no difference.

    Changed inputs are in new memory, where a kernel may round differently (NumPy's loops with
    AVX-512 do, where elements are not contiguous). That is not a mistake.
    """
    before, fresh = call.clean(), call.clean_in_fresh_memory()
    kept = []
    for here, there, result in zip(before, fresh, results, strict=True):
        if here.shape != result.shape or here.dtype != result.dtype:
            return results
        if kind_of(result.dtype) not in "fc":
            kept.append(result)
            continue
        same = (there == result) & (np.signbit(there.real) == np.signbit(result.real))
        same |= np.isnan(there) & np.isnan(result)
        kept.append(np.where(same, here, result))
    return kept


def _same(x: Array) -> Array:
    return x


def _no_nan(x: Array) -> Array:
    return np.where(np.isnan(x), x.dtype.type(0), x) if kind_of(x.dtype) in "fc" else x


def _finite(x: Array) -> Array:
    return np.asarray(np.nan_to_num(x, nan=np.nan)) if kind_of(x.dtype) in "fc" else x


def _integers_rounded(x: Array) -> Array:
    """Pass integers through float32, which holds 24 bits of them."""
    if x.dtype.kind not in "iu":
        return x
    limits: Any = np.iinfo(x.dtype)
    rounded = x.astype(np.float32).astype(np.float64)
    return np.clip(rounded, int(limits.min), float(limits.max) - 256).astype(x.dtype)


def _narrowed(x: Array) -> Array:
    return x.astype(np.float32).astype(x.dtype) if kind_of(x.dtype) == "f" else x


def _flushed(x: Array) -> Array:
    if kind_of(x.dtype) not in "fc":
        return x
    return np.where(np.abs(x) < finfo(x.dtype).tiny, x * 0, x)


def _real_only(x: Array) -> Array:
    return x.real.astype(x.dtype) if x.dtype.kind == "c" else x


def _swapped(call: Call) -> Any:
    first, second, *rest = call.inputs()
    return _attempt(call, [second, first, *rest])


def _first_only(position: int) -> Callable[[Call], Any]:
    """Return a saboteur that takes the first element of an operand that must be stretched."""

    def wrong(call: Call) -> Any:
        inputs = call.inputs()
        operand = inputs[position]
        if operand.shape != call.types[0].shape and operand.size:
            inputs[position] = np.full(operand.shape, operand.reshape(-1)[0], operand.dtype)
        return call.clean(inputs)

    return wrong


def _indices(change: Callable[[Array], Array]) -> Callable[[Call], Any]:
    """Return a saboteur that misreads indices."""

    def wrong(call: Call) -> Any:
        inputs = [
            change(operand)
            if call.spec.accepted(name) == dt.INTEGER and isinstance(operand, np.ndarray)
            else operand
            for name, operand in zip(call.spec.input_names, call.inputs(), strict=True)
        ]
        return _attempt(call, inputs)

    return wrong


def _as_signed(call: Call) -> Any:
    """Read unsigned integers as signed ones of the same width."""

    def seen(array: Array) -> Array:
        return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array

    return _retyped(call, seen)


def _saturated(call: Call) -> Any:
    """Compute in 64 bits and saturate at the end."""

    def seen(array: Array) -> Array:
        return array.astype(np.int64) if array.dtype.kind == "i" else array

    return _retyped(call, seen)


def _retyped(call: Call, seen: Callable[[Array], Array]) -> Any:
    try:
        results = call.as_of(mapped(seen, call.inputs()))
    except (ValueError, TypeError, IndexError, ArithmeticError, TensorplugError):
        return call.clean()
    return [_returned(item, type_) for item, type_ in zip(results, call.types, strict=True)]


def _returned(result: Array, type_: Any) -> Array:
    dtype = type_.dtype.numpy
    if result.dtype == dtype or dtype.kind not in "iu" or result.dtype.kind not in "iu":
        return result
    if dtype.itemsize == result.dtype.itemsize:
        return result.view(dtype)
    limits: Any = np.iinfo(dtype)
    return np.clip(result, limits.min, limits.max).astype(dtype)


def _nudged(sign: int) -> Callable[[Array], Array]:
    """Return offsets that make each of several equal elements a little larger than the one before.

    Then the last of them is the largest, or with the other sign the smallest.
    """

    def nudge(x: Array) -> Array:
        if kind_of(x.dtype) != "f" or x.size > _NUDGED:
            return x
        flat = x.reshape(-1).copy()
        for value in np.unique(flat[np.isfinite(flat)]):
            equals = np.flatnonzero(flat == value)
            unit = np.spacing(np.abs(value)) * sign
            flat[equals] = value + unit * np.arange(equals.size, dtype=x.dtype)
        return flat.reshape(x.shape)

    return nudge


def _last_update(call: Call) -> Any:
    """Let the last of several updates of one place win, as unsynchronized additions do."""
    inputs = call.inputs()
    for name, indices in zip(call.spec.input_names, call.inputs(), strict=True):
        if (
            call.spec.accepted(name) == dt.INTEGER
            and isinstance(indices, np.ndarray)
            and indices.size
        ):
            lost = _overtaken(indices)
            inputs = [_without(operand, lost) for operand in inputs]
    return _attempt(call, inputs)


def _overtaken(places: Array) -> Array:
    """Return which rows of a table of indices occur again further down."""
    rows = places.reshape(len(places), -1) if places.ndim else places.reshape(1, 1)
    again = np.zeros(len(rows), dtype=bool)
    seen: set[bytes] = set()
    for at in range(len(rows) - 1, -1, -1):
        key = rows[at].tobytes()
        again[at] = key in seen
        seen.add(key)
    return again


def _without(operand: Any, lost: Array) -> Any:
    """Return data whose lost rows are zero."""
    if not isinstance(operand, np.ndarray) or operand.dtype.kind in "iuT" or operand.ndim == 0:
        return operand
    if len(operand) != len(lost):
        return operand
    kept = operand.copy()
    kept[lost] = 0
    return kept


def _chooses(entry: CaseEntry) -> bool:
    """Return whether results are exact: a choice among the inputs, or a comparison."""
    return any(dtype.name == "float32" for dtype in entry.dtypes) and (
        tolerances().of(entry, dt.float32) == 0
    )


def _promotes(entry: CaseEntry) -> bool:
    return _swappable(entry) and len(entry.spec.promote) > 1


def _swappable(entry: CaseEntry) -> bool:
    spec = entry.spec
    return len(spec.inputs) > 1 and not any(
        declared.variadic or declared.optional for declared in spec.declared[:2]
    )


def _indexed(entry: CaseEntry) -> bool:
    spec = entry.spec
    names = [name for name in spec.input_names if spec.accepted(name) == dt.INTEGER]
    return bool(names) and len(names) < len(spec.inputs)


KINDS: Final = (
    Kind("ties to the last", _reading(_nudged(1)), ("float32",), strict=True, fits=_chooses),
    Kind("ties to the first", _reading(_nudged(-1)), ("float32",), strict=True, fits=_chooses),
    Kind("lost update", _last_update, ("float32",), strict=True, fits=_indexed),
    Kind("operands swapped", _swapped, fits=_swappable),
    Kind("first operand not stretched", _first_only(0), fits=_promotes),
    Kind("second operand not stretched", _first_only(1), fits=_promotes),
    Kind("NaN read as 0", _reading(_no_nan), ("float32",), strict=True),
    Kind("infinities read as finite", _reading(_finite), ("float32",), strict=True),
    Kind("subnormals read as 0", _reading(_flushed), ("float32",), strict=True),
    Kind("integers through float32", _reading(_integers_rounded), ("int32",), strict=True),
    Kind("float64 read as float32", _reading(_narrowed), ("float64",), strict=True),
    Kind("imaginary part lost", _reading(_real_only), ("complex64",), strict=True),
    Kind("unsigned as signed", _as_signed, ("uint8",), strict=True),
    Kind("saturates", _saturated, ("int8",), strict=True),
    Kind("negative index as 0", _indices(lambda i: np.maximum(i, 0)), ORDINARY, fits=_indexed),
    Kind(
        "index off by one",
        _indices(lambda i: np.maximum(i.astype(np.int64) - 1, 0).astype(i.dtype)),
        ORDINARY,
        fits=_indexed,
    ),
    Kind(
        "index as 8 bits",
        _indices(lambda i: (i.astype(np.int64) % 128).astype(i.dtype)),
        ORDINARY,
        fits=_indexed,
    ),
)
