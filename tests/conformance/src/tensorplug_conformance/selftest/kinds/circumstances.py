"""Results that are wrong after certain calls, in certain layouts, or where inputs share memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance.case import flat
from tensorplug_conformance.comparing.compare import bits
from tensorplug_conformance.selftest.kinds.kind import Kind
from tensorplug_conformance.selftest.kinds.results import changed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.selftest.sabotage import Call


_FIRST: Final = 4
_STEP: Final = 7
_MANY: Final = 4096


# Caches whose keys forget something.


def cached(key: Callable[[Call], Hashable]) -> Callable[[Call], Any]:
    """Return a saboteur that keeps all results, under a key that several calls share."""

    def wrong(call: Call) -> Any:
        known = call.lasting.setdefault("results", {})
        types = tuple(map(str, flat(call.types_of(call.buffers))))
        whole = types, repr(sorted(call.attributes.items())), key(call)
        if whole not in known:
            known[whole] = call.clean()
        return [array.copy() for array in known[whole]]

    return wrong


def of_each(part: Callable[[Array], Hashable]) -> Callable[[Call], Hashable]:
    return lambda call: tuple(part(array) for array in flat(call.inputs()))


def _bytes(x: Any) -> bytes:
    return bits(np.asarray(x))


def _sorted(x: Array) -> Hashable:
    """Return what does not depend on the order of the elements."""
    if x.size > _MANY:
        return _bytes(x)
    return tuple(sorted(map(_bytes, x.flat)))


def _identities(call: Call) -> Hashable:
    return tuple(id(buffer) for buffer in flat(call.buffers))


def _first_input(call: Call) -> Hashable:
    return _bytes(flat(call.inputs())[0])


# Layouts and shared memory, on a backend whose buffers are arrays.


def _only(condition: Callable[[list[Array]], bool]) -> Callable[[Call], Any]:
    def wrong(call: Call) -> Any:
        results = call.clean()
        if not condition([array for array in flat(call.buffers) if array.size]):
            return results
        return [changed(array, -1) for array in results]

    return wrong


def _owner(x: Array) -> Array:
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


def _address(x: Array) -> int:
    return int(x.__array_interface__["data"][0])


def _offset(arrays: list[Array]) -> bool:
    return any(x.flags.c_contiguous and _address(x) != _address(_owner(x)) for x in arrays)


def _stretched(arrays: list[Array]) -> bool:
    return any(
        step == 0 < size - 1 for x in arrays for step, size in zip(x.strides, x.shape, strict=True)
    )


def _backwards(arrays: list[Array]) -> bool:
    return any(step < 0 for x in arrays for step in x.strides)


def _turned(arrays: list[Array]) -> bool:
    """Return whether three axes or more lie in another order, neither their own nor reversed."""

    def order(x: Array) -> list[int]:
        return sorted(range(x.ndim), key=lambda axis: -x.strides[axis])

    ranks = (list(range(x.ndim)) for x in arrays)
    return any(
        x.ndim > 2 and min(x.strides) > 0 and order(x) not in (rank, rank[::-1])
        for x, rank in zip(arrays, ranks, strict=True)
    )


def _one_buffer(arrays: list[Array]) -> bool:
    places = [(_address(x), x.shape, x.strides) for x in arrays]
    return len(set(places)) < len(places)


def _overlapping(arrays: list[Array]) -> bool:
    return any(
        _address(x) != _address(y) and np.may_share_memory(x, y)
        for at, x in enumerate(arrays)
        for y in arrays[:at]
    )


def _takes_inputs(entry: CaseEntry) -> bool:
    return bool(entry.spec.inputs)


def _takes_two(entry: CaseEntry) -> bool:
    declared = entry.spec.declared
    return len(declared) > 1 or any(input_.variadic for input_ in declared)


_KEYS: Final[dict[str, Callable[[Array], Hashable]]] = {
    "first elements": lambda x: _bytes(x.flat[:_FIRST]),
    "every seventh": lambda x: _bytes(x.flat[::_STEP]),
    "both ends": lambda x: _bytes(x.flat[:: max(x.size - 1, 1)]),
    "sorted values": _sorted,
}
KINDS: Final = (
    *(
        Kind(f"cached by {part}", cached(of_each(key)), fits=_takes_inputs)
        for part, key in _KEYS.items()
    ),
    Kind("cached by identity", cached(_identities), fits=_takes_inputs),
    Kind("cached by first input", cached(_first_input), fits=_takes_two),
    Kind("wrong where offset", _only(_offset), fits=_takes_inputs),
    Kind("wrong where stretched", _only(_stretched), fits=_takes_inputs),
    Kind("wrong where backwards", _only(_backwards), fits=_takes_inputs),
    Kind("wrong where turned", _only(_turned), fits=_takes_inputs),
    Kind("wrong where one buffer", _only(_one_buffer), fits=_takes_two),
    Kind("wrong where overlapping", _only(_overlapping), fits=_takes_two),
)
