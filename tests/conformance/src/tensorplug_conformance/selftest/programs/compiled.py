"""Engines that are wrong in compiled programs only."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.selftest.programs.engines import compiling

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.engine.engine import Engine
    from tensorplug.plugin import FlatCall, FlatProgram
    from tensorplug_conformance.case import Array

__all__ = [
    "clean",
    "computes_in_half",
    "fails_where_empty",
    "keeps_what_it_made",
    "loses_the_last_block",
    "owns_results",
    "remembers_results",
    "shares_scratch",
    "swaps_operands",
    "writes_into_arguments",
]


def _running(call: FlatCall, change: Callable[[Any, tuple[Any, ...]], Any]) -> FlatCall:
    """Return a call of one output, which ``change`` computes from its result and inputs."""

    def run(*buffers: Any) -> Any:
        found = call.run(*buffers)
        if not call.multiple_outputs:
            return change(found, buffers)
        (one,) = found
        return [change(one, buffers)]

    return call if len(call.outputs) != 1 else dataclasses.replace(call, run=run)


def _floating(program: FlatProgram, call: FlatCall) -> bool:
    return program.types[call.outputs[0]].dtype is dt.float32


def clean() -> Engine:
    """Return an engine whose programs are rewritten to themselves: nothing is wrong with it."""
    return compiling(lambda call, _program: call)


def swaps_operands() -> Engine:
    """Return an engine that swaps the operands of a fused subtraction."""

    def rewrite(call: FlatCall, _program: FlatProgram) -> FlatCall:
        if call.name != "Sub":
            return call
        return dataclasses.replace(call, inputs=tuple(reversed(call.inputs)))

    return compiling(rewrite)


def computes_in_half() -> Engine:
    """Return an engine that keeps intermediate results of fused kernels in float16."""

    def rewrite(call: FlatCall, program: FlatProgram) -> FlatCall:
        if not _floating(program, call) or call.outputs[0] in program.outputs:
            return call
        return _running(call, lambda found, _inputs: found.astype(np.float16).astype(np.float32))

    return compiling(rewrite)


def remembers_results() -> Engine:
    """Return an engine whose calls return earlier results for the same shapes."""

    def rewrite(call: FlatCall, _program: FlatProgram) -> FlatCall:
        seen: dict[Any, Any] = {}
        return _running(
            call,
            lambda found, inputs: seen.setdefault(
                tuple(np.shape(operand) for operand in inputs), found
            ),
        )

    return compiling(rewrite)


def owns_results() -> Engine:
    """Return an engine with one result buffer per program."""

    def rewrite(call: FlatCall, program: FlatProgram) -> FlatCall:
        if call.outputs[0] not in program.outputs:
            return call
        place: list[Array] = []

        def kept(found: Array, _inputs: Any) -> Array:
            if not place:
                place.append(np.array(found))
            np.copyto(place[0], found)
            return place[0]

        return _running(call, kept)

    return compiling(rewrite)


def writes_into_arguments() -> Engine:
    """Return an engine that uses the memory of its first operand as scratch."""

    def scratched(found: Array, inputs: Any) -> Array:
        first = inputs[0]
        if isinstance(first, np.ndarray) and first.shape == found.shape and first.size:
            result = np.array(found)
            first.flat[-1] = 0
            return result
        return found

    return compiling(
        lambda call, _program: _running(call, scratched) if call.name == "Multiply" else call
    )


def loses_the_last_block() -> Engine:
    """Return an engine that drops the last, incomplete block of a long array."""

    def cut(found: Array, _inputs: Any) -> Array:
        block = 1 << 12
        if found.size <= block or not found.size % block:
            return found
        result = np.array(found)
        result.reshape(-1)[found.size // block * block :] = 0
        return result

    return compiling(lambda call, _program: _running(call, cut))


def fails_where_empty() -> Engine:
    """Return an engine that divides work by the number of elements."""

    def divided(found: Array, _inputs: Any) -> Array:
        assert 1024 // found.size >= 0
        return found

    return compiling(
        lambda call, program: _running(call, divided) if _floating(program, call) else call
    )


def keeps_what_it_made() -> Engine:
    """Return an engine that keeps the intermediate results of a program."""
    kept: list[Any] = []

    def hold(found: Any, _inputs: Any) -> Any:
        kept.append(found)
        return found

    return compiling(
        lambda call, _program: _running(call, hold) if call.name in ("Exp", "Tanh") else call
    )


def shares_scratch() -> Engine:
    """Return an engine with one scratch block for all threads that run a program."""

    def rewrite(call: FlatCall, _program: FlatProgram) -> FlatCall:
        scratch: dict[Any, Array] = {}

        def through(found: Array, _inputs: Any) -> Array:
            place = scratch.setdefault(found.shape, np.empty_like(found))
            np.copyto(place, found)
            time.sleep(0.001)  # another thread may come in between, as it may on real hardware
            return np.array(place)

        return _running(call, through)

    return compiling(rewrite)
