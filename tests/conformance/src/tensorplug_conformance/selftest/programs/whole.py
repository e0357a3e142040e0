"""Engines that are wrong where they compile whole programs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.program_interpreter import Interpreted
from tensorplug_conformance.selftest.programs.engines import compiling_programs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.engine.engine import Engine
    from tensorplug.plugin import programs


def interprets_programs() -> Engine:
    """Return an engine whose programs are run by an interpreter: nothing is wrong with it."""
    return compiling_programs(lambda program, **_given: Interpreted(program))


def _with_calls(change: Callable[[programs.ProgramCall], programs.ProgramCall]) -> Engine:
    def rewrite(program: programs.TracedProgram, **_given: Any) -> Interpreted:
        calls = tuple(map(change, program.calls))
        return Interpreted(dataclasses.replace(program, calls=calls))

    return compiling_programs(rewrite)


def computes_something_else() -> Engine:
    """Return an engine that takes a subtraction and computes a sum."""

    def change(call: programs.ProgramCall) -> programs.ProgramCall:
        return dataclasses.replace(call, kernel="Add") if call.kernel == "Sub" else call

    return _with_calls(change)


def takes_maxima_for_minima() -> Engine:
    """Return an engine whose maxima over the last of two axes are minima."""

    def change(call: programs.ProgramCall) -> programs.ProgramCall:
        if call.kernel == "Max" and call.attributes["reduction_indices"] == (1,):
            over = {"axis": (1,), "keep_dims": call.attributes["keep_dims"]}
            return dataclasses.replace(call, kernel="Min", attributes=over)
        return call

    return _with_calls(change)


class _Forgetful(Interpreted):
    """Returns what the first run has computed."""

    def bind(self, constants: Sequence[Any]) -> Callable[..., list[Any]]:
        run = super().bind(constants)
        kept: list[list[Any]] = []

        def once(*buffers: Any) -> list[Any]:
            if not kept:
                kept.append(run(*buffers))
            return list(kept[0])

        return once


def loads_what_it_remembers() -> Engine:
    """Return an engine whose programs, once they are loaded, give the results of the first run."""
    return compiling_programs(
        lambda program, loaded: _Forgetful(program) if loaded else Interpreted(program)
    )


class _Scratching(Interpreted):
    """Uses the memory of its first input as scratch."""

    def bind(self, constants: Sequence[Any]) -> Callable[..., list[Any]]:
        run = super().bind(constants)

        def scratched(*buffers: Any) -> list[Any]:
            results = run(*buffers)
            for first in buffers:
                if isinstance(first, np.ndarray) and first.ndim > 1 and first.size > 1 << 16:
                    first[...] = 0
                    break
            return results

        return scratched


def takes_memory_that_was_not_given() -> Engine:
    """Return an engine whose large programs overwrite an input, donated or not."""
    return compiling_programs(lambda program, **_given: _Scratching(program))
