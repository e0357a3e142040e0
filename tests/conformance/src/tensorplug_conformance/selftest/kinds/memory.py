"""Kernels that misuse memory: they write into inputs, keep buffers, or reuse them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance.case import flat
from tensorplug_conformance.selftest.kinds.kind import Kind

if TYPE_CHECKING:
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.selftest.sabotage import Call


def _writes_input(position: int) -> Any:
    def wrong(call: Call) -> Any:
        outcome = call.run(call.buffers, call.attributes)
        kept = [np.array(call.backend.to_host(array)) for array in outcome]
        target = flat(call.buffers)[position]
        if target.size:
            target.flags.writeable = True
            np.copyto(target, np.roll(target.copy().reshape(-1), 1).reshape(target.shape))
        return [call.backend.from_host(array) for array in kept]

    return wrong


def _one_buffer(call: Call) -> Any:
    """Write every result of a plan into the buffer of its first."""
    results = call.clean()
    kept = call.memory.setdefault("buffers", [np.array(array) for array in results])
    for buffer, item in zip(kept, results, strict=True):
        if buffer.shape == item.shape:
            np.copyto(buffer, item)
    return list(kept)


def _stale(call: Call) -> Any:
    return call.memory.setdefault("result", call.run(call.buffers, call.attributes))


def _keeps_results(call: Call) -> Any:
    outcome = call.run(call.buffers, call.attributes)
    call.lasting.setdefault("kept", []).append(outcome)
    return outcome


def _keeps_inputs(call: Call) -> Any:
    call.lasting.setdefault("kept", []).append(list(call.buffers))
    return call.run(call.buffers, call.attributes)


def _keeps_scratch(call: Call) -> Any:
    outcome = call.run(call.buffers, call.attributes)
    scratch = [np.array(call.backend.to_host(array)) for array in outcome]
    call.lasting.setdefault("kept", []).append(scratch)
    return outcome


def takes_inputs(entry: CaseEntry) -> bool:
    return bool(entry.spec.inputs)


def _takes_two(entry: CaseEntry) -> bool:
    declared = entry.spec.declared
    return len(declared) > 1 and not any(input_.variadic or input_.optional for input_ in declared)


KINDS: Final = (
    Kind("input changed", _writes_input(0), fits=takes_inputs, raw=True),
    Kind("second input changed", _writes_input(1), fits=_takes_two, raw=True),
    Kind("output aliased", _one_buffer, raw=True),
    Kind("stale result", _stale, raw=True),
    Kind("leaks results", _keeps_results, raw=True, demanded=True),
    Kind("leaks inputs", _keeps_inputs, fits=takes_inputs, raw=True, demanded=True),
    Kind("leaks scratch", _keeps_scratch, raw=True, demanded=True),
)
