"""Results that are sometimes wrong: for large, strided, empty, scalar or repeated calls."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance.case import flat
from tensorplug_conformance.selftest.kinds.kind import EXACT, Kind
from tensorplug_conformance.selftest.kinds.results import changed
from tensorplug_conformance.selftest.racing import SharedScratch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.selftest.sabotage import Call


_LARGE: Final = 1 << 16


def _only(condition: Callable[[Call], bool]) -> Callable[[Call], Any]:
    def wrong(call: Call) -> Any:
        results = call.clean()
        return [changed(array, -1) for array in results] if condition(call) else results

    return wrong


def _wrong_where_large(call: Call) -> Any:
    """Change the last element of every result where inputs or results are large."""
    results = call.clean()
    most = max(array.size for array in (*results, *flat(call.inputs())))
    return [changed(array, -1) for array in results] if most > _LARGE else results


def _strided(call: Call) -> bool:
    return any(
        isinstance(buffer, np.ndarray) and not buffer.flags.c_contiguous
        for buffer in flat(call.buffers)
    )


def _scalar(call: Call) -> bool:
    return any(array.ndim == 0 for array in flat(call.inputs()))


def _one_long(call: Call) -> bool:
    return any(1 in array.shape for array in flat(call.inputs()))


def _high_rank(call: Call) -> bool:
    return any(array.ndim > 4 for array in flat(call.inputs()))


def _any_shape(fits: Callable[[tuple[int, ...]], bool]) -> Callable[[Call], bool]:
    return lambda call: any(fits(array.shape) for array in flat(call.inputs()))


def _has_tail(shape: tuple[int, ...]) -> bool:
    """Return whether the elements fill vectors of 8, and another one but for its last lane."""
    count = math.prod(shape)
    return count > 8 and count % 8 == 7


def _from_nothing(call: Call) -> bool:
    return any(array.size == 0 for array in flat(call.inputs()))


def _nothing_is_flat(call: Call) -> Any:
    """Give an empty result without its shape."""
    return [
        call.backend.from_host(output if output.size else output.reshape(-1))
        for output in call.clean()
    ]


def _nothing_fails(call: Call) -> Any:
    made = any(type_.known and 0 in type_.shape for type_ in call.types)
    if made or any(array.size == 0 for array in flat(call.inputs())):
        raise MemoryError("no grid of size 0")
    return call.clean()


def _vector_of_scalar(call: Call) -> Any:
    results = call.clean()
    return [call.backend.from_host(array if array.ndim else array.reshape(1)) for array in results]


def _races(call: Call) -> Any:
    """Lose an element in one call of three, as unsynchronized work does."""
    chance = call.lasting.setdefault("chance", np.random.default_rng(7))
    results = call.clean()
    return [changed(array, -1) for array in results] if chance.random() < 1 / 3 else results


def _shares_scratch(call: Call) -> Any:
    """Pass results through memory that all calls share."""
    scratch: SharedScratch = call.lasting.setdefault("scratch", SharedScratch())
    return [scratch.passed(array) for array in call.clean()]


def _third_call(call: Call) -> Any:
    call.memory["calls"] = call.memory.get("calls", 0) + 1
    results = call.clean()
    return results if call.memory["calls"] < 3 else [changed(array) for array in results]


def _takes_inputs(entry: CaseEntry) -> bool:
    return bool(entry.spec.inputs)


def _may_be_large(entry: CaseEntry) -> bool:
    """Return whether inputs may have many elements; BroadcastArgs takes shapes, of a few axes."""
    return bool(entry.spec.inputs) and entry.spec.name != "BroadcastArgs"


def _may_be_strided(entry: CaseEntry) -> bool:
    """Return whether inputs may be strided: not those of one axis, which a slice leaves dense.

    BroadcastArgs takes shapes, RandomBits a key of four words.
    """
    return bool(entry.spec.inputs) and entry.spec.name not in ("BroadcastArgs", "RandomBits")


KINDS: Final = (
    Kind("wrong above 2**16", _wrong_where_large, fits=_may_be_large, demanded=True),
    Kind("wrong where strided", _only(_strided), fits=_may_be_strided, demanded=True),
    Kind("wrong for rank 0", _only(_scalar)),
    Kind("wrong for size 1", _only(_one_long)),
    Kind("wrong above rank 4", _only(_high_rank)),
    Kind("wrong above rank 6", _only(_any_shape(lambda shape: len(shape) > 6))),
    Kind("wrong above rank 8", _only(_any_shape(lambda shape: len(shape) > 8))),
    Kind("wrong in the tail of vectors", _only(_any_shape(_has_tail))),
    Kind("wrong above 64 rows", _only(_any_shape(lambda shape: shape[:1] > (64,)))),
    Kind(
        "wrong along 2**16 of several axes",
        _only(_any_shape(lambda shape: len(shape) > 1 and max(shape) > _LARGE)),
    ),
    Kind("wrong from nothing", _only(_from_nothing), EXACT),
    Kind("empty result flattened", _nothing_is_flat, raw=True),
    Kind("fails for nothing", _nothing_fails, fits=_takes_inputs, demanded=True),
    Kind("scalar becomes vector", _vector_of_scalar, raw=True),
    Kind("race", _races),
    Kind("race of threads", _shares_scratch),
    Kind("wrong when repeated", _third_call),
)
