"""The call before a call: it differs in one respect, so that what is kept from it shows.

A kernel that keeps results under a key that forgets this respect hands out the wrong ones. No
oracle is asked about the call before; what must be right is the call that follows.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import TensorplugError
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import flat, mapped, types_of
from tensorplug_conformance.floats import finfo, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case import Array, Case, Operand


NOTHING: Final = "nothing"
_Call = tuple[tuple["Operand", ...], "Mapping[str, Any]"]
_NARROWER: Final = {52: 23, 23: 10}  # digits behind the first one
_TWINS: Final = {"float32": "int32", "int32": "float32"}  # which every backend has


def befores(spec: KernelSpec, case: Case) -> tuple[str, ...]:
    """Return the names of the calls that can come before a case."""
    items = [NOTHING]
    for name, operand in zip(spec.input_names, case.inputs, strict=True):
        sizes = [array.size for array in flat([operand])]
        several: tuple[str, ...]
        if is_index(spec, name):  # the values of others are within bounds
            several = ("last", "order") if max(sizes, default=0) > 1 else ()
        else:
            several = _ALWAYS if max(sizes, default=0) > 1 else ("digit",) * any(sizes)
            several = (*several, *_of_numbers(flat([operand])))
        if any(map(_has_zero, flat([operand]))):
            several = (*several, "zero")
        items += [f"{change} of {name}" for change in several]
    if any(array.size > 1 for array in flat(case.inputs)):
        items += ["flipped", "freed"]
    items += [name for name, make in _OTHERS.items() if _is_call(spec, make(spec, case))]
    return tuple(items)


def every_before(spec: KernelSpec) -> tuple[str, ...]:
    """Return the names of calls that may come before cases of a kernel."""
    changes = (f"{change} of {name}" for name in spec.input_names for change in _CHANGES)
    return (*changes, "flipped", "freed", *_OTHERS)


def previous(spec: KernelSpec, case: Case, before: str) -> _Call | None:
    """Return inputs and attributes of the call before; None if there is none.

    Raises:
        ValueError: there is no such call.

    """
    if before == NOTHING:
        return None
    if before == "flipped":
        return flipped(spec, case), case.attributes
    if before == "freed":
        return _beginning_alike(spec, case), case.attributes
    if before in _OTHERS:
        return _OTHERS[before](spec, case)
    change, _, name = before.partition(" of ")
    if change not in _CHANGES or name not in spec.input_names:
        raise ValueError(f"no call before is named {before!r}")
    position = spec.input_names.index(name)
    # Places are drawn from names, so that no two cases differ in the same ones.
    rng = np.random.default_rng(zlib.crc32(f"{case.id}:{before}".encode()))
    changed = partial(_CHANGES[change], rng=rng)
    target = case.inputs[position]
    if isinstance(target, list):
        at = _member(target, change, rng)
        new: Operand = [changed(x) if n == at else x for n, x in enumerate(target)]
    else:
        new = None if target is None else changed(np.asarray(target))  # no number of NumPy's
    return (*case.inputs[:position], new, *case.inputs[position + 1 :]), case.attributes


def is_index(spec: KernelSpec, name: str) -> bool:
    """Return whether an input holds indices, sizes or labels, which are within bounds.

    An elementwise kernel computes with them.
    """
    return spec.accepted(name) == dt.INTEGER and spec.expression is None


def flipped(spec: KernelSpec, case: Case) -> tuple[Operand, ...]:
    """Return the inputs with their elements in reverse order; indices stay as they are."""

    def reversed_(array: Array) -> Array:
        return np.flip(array) if array.ndim else array

    def turned(name: str, operand: Any) -> Any:
        return operand if is_index(spec, name) else mapped(reversed_, operand)

    return tuple(
        turned(name, operand) for name, operand in zip(spec.input_names, case.inputs, strict=True)
    )


def _beginning_alike(spec: KernelSpec, case: Case) -> tuple[Operand, ...]:
    """Return the inputs with other elements in their second halves: a key of the beginning.

    Together with the identity of a buffer that was freed, such a key looks safe. The last element
    gets another value, so that sums differ, too.
    """
    rng = np.random.default_rng(zlib.crc32(f"{case.id}:freed".encode()))

    def changed(array: Array) -> Array:
        if not array.size:
            return array
        values = _last(array, rng).reshape(-1)
        first, second = np.split(values, [values.size // 2])
        return np.concatenate([first, np.flip(second)]).reshape(array.shape)

    return tuple(
        operand if is_index(spec, name) else mapped(changed, operand)
        for name, operand in zip(spec.input_names, case.inputs, strict=True)
    )


def _member(arrays: list[Array], change: str, rng: np.random.Generator) -> int:
    """Return which array of a list is changed: one with elements, the last or a drawn one."""
    fitting = [at for at, array in enumerate(arrays) if array.size]
    if not fitting:
        return -1
    return fitting[-1] if change == "last" else fitting[int(rng.integers(len(fitting)))]


# Changes of one input. New values are the input's own, so that they are in the kernel's domain.


def _last(x: Array, rng: np.random.Generator) -> Array:
    return _replaced(x, x.size - 1, rng)


def _one(x: Array, rng: np.random.Generator) -> Array:
    return _replaced(x, int(rng.integers(x.size)), rng)


def _replaced(x: Array, place: int, rng: np.random.Generator) -> Array:
    """Return ``x`` with another of its values at a place; twice the value if all are equal."""
    out = x.copy()
    values = x.reshape(-1)
    others = _unlike(values, place)
    if others.size:
        out.flat[place] = values[others[rng.integers(others.size)]]
    elif x.dtype.kind == "b":
        out.flat[place] = not values[place]
    elif x.dtype.kind != "T":
        with np.errstate(over="ignore"):
            out.flat[place] = values[place] + values[place] if values[place] else x.dtype.type(1)
    return out


def _unlike(values: Array, place: int) -> Array:
    """Return the places of the values that are not equal to the one at ``place``."""
    with np.errstate(invalid="ignore"):  # of signalling NaN
        return np.flatnonzero(values != values[place])


def _digit(x: Array, rng: np.random.Generator) -> Array:
    """Return ``x`` with the last digit of one element changed: a key of rounded values."""
    out = x.copy()
    place = int(rng.integers(x.size))
    value = out.flat[place]
    if x.dtype.kind == "b":
        out.flat[place] = not value
    elif x.dtype.kind == "T":
        out.flat[place] = f"{value}."
    elif x.dtype.kind in "iu":
        limits: Any = np.iinfo(x.dtype)
        out.flat[place] = value - 1 if value == limits.max else value + 1
    else:
        real: Any = out.real if x.dtype.kind == "c" else out
        kind = np.dtype(f"u{real.dtype.itemsize}")
        bits = np.array(real.flat[place]).view(kind)
        real.flat[place] = (bits ^ kind.type(1)).view(real.dtype)
    return out


def _sign(x: Array, rng: np.random.Generator) -> Array:
    """Return ``x`` with all signs changed: a key of magnitudes."""
    del rng
    with np.errstate(over="ignore"):
        return np.asarray(-x)


def _rounding(x: Array, rng: np.random.Generator) -> Array:
    """Return ``x`` in fewer digits: a key of narrower numbers.

    Floats keep the digits of the next narrower float, or half of their own: all are rounded, or
    all are cut off. Those that have no more digits get one that rounding loses. One integer gets
    another bit between its first and its last one.
    """
    out = x.copy()
    real: Any = out.real if x.dtype.kind == "c" else out
    number = np.dtype(f"u{real.dtype.itemsize}")
    if x.dtype.kind in "iu":
        width = 8 * real.dtype.itemsize
        mask = number.type(1 << (width * int(rng.integers(3, 6)) // 8))
        place = int(rng.integers(x.size))
        out.flat[place] = (out.flat[place].view(number) ^ mask).view(x.dtype)
        return out
    digits = int(finfo(real.dtype).nmant)
    lost = digits - _NARROWER.get(digits, digits // 2)
    bits = np.ascontiguousarray(real).view(number)
    ends = number.type((1 << lost) - 1)
    half = number.type((1 << (lost - 1)) - 1) if rng.integers(2) else number.type(0)
    narrow = (bits + half + (bits >> number.type(lost) & bool(half))) & ~ends
    narrow = np.where(narrow == bits, bits | number.type(1 << (lost - 2)), narrow)
    with np.errstate(invalid="ignore"):  # of signalling NaN
        special = ~np.isfinite(real) | (real == 0)
    real[...] = np.where(special, bits, narrow).astype(number).view(real.dtype)
    return out


def _zero(x: Array, rng: np.random.Generator) -> Array:
    """Return ``x`` with zeros of the other sign."""
    del rng
    return np.where(x == 0, -x, x)


def _of_numbers(arrays: list[Array]) -> tuple[str, ...]:
    """Return the changes of what numbers are that arrays can have."""
    computed = (array for array in arrays if array.size and dt.of(array.dtype) not in dt.STORAGE)
    kinds = {kind_of(array.dtype) for array in computed}
    signed, numbers = bool(kinds & set("fci")), bool(kinds & set("fciu"))
    return ("sign",) * signed + ("rounding",) * numbers


def _has_zero(x: Array) -> bool:
    return kind_of(x.dtype) == "f" and bool(np.any(x == 0))


def _order(x: Array, rng: np.random.Generator) -> Array:
    """Return ``x`` with two elements exchanged: a key of sums, or of both ends."""
    out = x.copy()
    values = x.reshape(-1)
    inner = values[1:-1] if x.size > 3 else values  # both ends stay as they are
    skipped = (x.size - inner.size) // 2
    first = int(rng.integers(inner.size))
    others = _unlike(inner, first)
    if others.size:
        second = int(others[rng.integers(others.size)])
        out.flat[skipped + first], out.flat[skipped + second] = inner[second], inner[first]
    return out


_CHANGES: Final[dict[str, Callable[..., Array]]] = {
    "last": _last,
    "one": _one,
    "digit": _digit,
    "order": _order,
    "sign": _sign,
    "rounding": _rounding,
    "zero": _zero,
}
_ALWAYS: Final = ("last", "one", "digit", "order")  # of any two elements


# Other calls of the same kernel.


def _swapped(spec: KernelSpec, case: Case) -> _Call | None:
    """Return the call with its first two inputs exchanged."""
    if len(case.inputs) < 2:
        return None
    first, second, *rest = case.inputs
    names = spec.input_names[:2]
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
        return None
    if any(is_index(spec, name) for name in names):
        return None
    return (second, first, *rest), case.attributes


def _reshaped(_spec: KernelSpec, case: Case) -> _Call | None:
    """Return the call with the same elements in other shapes."""
    arrays = flat(case.inputs)
    shapes = [_other_shape(array.shape) for array in arrays]
    if all(array.shape == shape for array, shape in zip(arrays, shapes, strict=True)):
        return None
    return tuple(mapped(_in_other_shape, operand) for operand in case.inputs), case.attributes


def _in_other_shape(x: Array) -> Array:
    return x.reshape(_other_shape(x.shape))


def _other_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1, *shape) if len(shape) == 1 else shape[::-1]


def _as_twin(spec: KernelSpec, case: Case) -> _Call | None:
    """Return the call with the same bits read as another dtype."""
    promoted = set(spec.promote) or set(spec.input_names[:1])
    concerned = [
        array
        for name, operand in zip(spec.input_names, case.inputs, strict=True)
        if name in promoted
        for array in flat([operand])
    ]
    if not concerned or any(array.dtype.name not in _TWINS for array in concerned):
        return None

    def read(x: Array) -> Array:
        return x.view(_TWINS[x.dtype.name])

    inputs = [
        mapped(read, operand) if name in promoted else operand
        for name, operand in zip(spec.input_names, case.inputs, strict=True)
    ]
    return tuple(inputs), case.attributes


def _with_other_attributes(_spec: KernelSpec, case: Case) -> _Call | None:
    return None if case.otherwise is None else (case.inputs, case.otherwise)


_OTHERS: Final[dict[str, Callable[[Any, Any], _Call | None]]] = {
    "swapped": _swapped,
    "shape": _reshaped,
    "dtype": _as_twin,
    "attributes": _with_other_attributes,
}


def _is_call(spec: KernelSpec, call: _Call | None) -> bool:
    """Return whether the spec takes a call."""
    if call is None:
        return False
    try:
        spec.resolve(types_of(call[0]), call[1])
    except (TensorplugError, ValueError, TypeError, IndexError):
        return False
    return True
