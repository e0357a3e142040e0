"""Kernels that misread or overwrite memory that other calls gave or were given."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance.case import flat
from tensorplug_conformance.selftest.kinds.kind import Kind
from tensorplug_conformance.selftest.kinds.memory import takes_inputs
from tensorplug_conformance.selftest.kinds.results import changed

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.selftest.sabotage import Call


_POOL: Final = 1 << 16  # bytes
_LARGEST: Final = 1 << 12  # bytes, of a result in the pool
_ALIGNED: Final = 16  # bytes


def _wrong_for_own_result(call: Call) -> Any:
    """Return a wrong result where an input is a result of the kernel that is still in use."""
    made = call.lasting.setdefault("made", weakref.WeakValueDictionary())
    own = any(made.get(id(buffer)) is buffer for buffer in flat(call.buffers))
    outcome = call.run(call.buffers, call.attributes)
    if own:
        outcome = [call.backend.from_host(changed(np.array(array), -1)) for array in outcome]
    for buffer in outcome:
        made[id(buffer)] = buffer
    return outcome


def _wrong_for_transpose(call: Call) -> Any:
    """Return a wrong result where one input is a transposed view of another one."""
    results = call.clean()
    arrays = [array for array in flat(call.buffers) if array.size]
    turned = any(
        _place(x) == _place(y.T) and x.strides != y.strides
        for at, x in enumerate(arrays)
        for y in arrays[:at]
    )
    return [changed(array, -1) for array in results] if turned else results


def _place(x: Array) -> tuple[Any, ...]:
    return x.__array_interface__["data"][0], x.shape, x.strides


class _Pool:
    """Gives memory from the end of a block, each piece before the one that it gave last."""

    def __init__(self) -> None:
        self._block = np.zeros(_POOL + _ALIGNED, np.uint8)
        self._free = _POOL

    def store(self, array: Array) -> Array:
        """Return a copy of an array in the pool, and write one element too many."""
        begin = self._free - -(-array.nbytes // _ALIGNED) * _ALIGNED
        if begin < 0:
            self.__init__()  # type: ignore[misc]  # another block; who holds pieces keeps this one
            return self.store(array)
        end = begin + array.nbytes
        place = self._block[begin:end].view(array.dtype).reshape(array.shape)
        place[...] = array
        self._block[end : end + array.itemsize] = 0x2A
        self._free = begin
        return place


def _writes_past_end(call: Call) -> Any:
    """Write one element behind each result: into padding, or into the result made before it."""
    pool = call.lasting.setdefault("pool", _Pool())
    items = [np.asarray(array) for array in call.run(call.buffers, call.attributes)]
    return [
        pool.store(array) if 0 < array.nbytes <= _LARGEST and array.dtype.kind != "T" else array
        for array in items
    ]


def _takes_two(entry: CaseEntry) -> bool:
    declared = entry.spec.declared
    return len(declared) > 1 or any(input_.variadic for input_ in declared)


KINDS: Final = (
    Kind("wrong for its own result", _wrong_for_own_result, fits=takes_inputs, raw=True),
    Kind("wrong where one is a transpose", _wrong_for_transpose, fits=_takes_two),
    Kind("writes past the end", _writes_past_end, raw=True),
)
