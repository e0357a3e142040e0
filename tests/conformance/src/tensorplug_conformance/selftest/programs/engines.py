"""Engines whose backend is the clean one, but for a kernel or for how it compiles programs."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.plugin import expressions
from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.selftest.backends import WrongBackend, engine_with
from tensorplug_conformance.selftest.delegates import Delegate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tensorplug.algorithms import loop_bodies
    from tensorplug.engine.engine import Engine
    from tensorplug.plugin import (
        Backend,
        Buffer,
        Group,
        KernelSpec,
        programs,
    )


REFERENCE: Final = "cpu"


class _Compiles(Delegate):
    """Compiles every group, by way of ``rewrite``."""

    least_group = 0
    functions = frozenset(expressions.FUNCTIONS)

    def __init__(self, clean: Backend, rewrite: Any) -> None:
        super().__init__(clean)
        self.rewrite = rewrite

    def compile_group(self, group: Group) -> Callable[..., Sequence[Buffer]]:
        run: Callable[..., Sequence[Buffer]] = self.rewrite(group)
        return run


class _CompilesLoops(Delegate):
    """Compiles every loop, by way of ``rewrite``."""

    def __init__(self, clean: Backend, rewrite: Any) -> None:
        super().__init__(clean)
        self.rewrite = rewrite

    def compile_loop(self, body: loop_bodies.LoopBody) -> Callable[..., Any] | None:
        run: Callable[..., Any] | None = self.rewrite(body)
        return run


class _CompilesPrograms(Delegate):
    """Takes every call, and compiles each part by way of ``rewrite``."""

    compiler = "the suite's interpreter"

    def __init__(self, clean: Backend, rewrite: Any) -> None:
        super().__init__(clean)
        self.rewrite = rewrite

    def take_calls(
        self,
        program: programs.TracedProgram,  # noqa: ARG002  # of the protocol
        offered: Collection[int],
    ) -> Collection[int]:
        return offered

    def compile_program(self, program: programs.TracedProgram) -> programs.CompiledProgram:
        made: programs.CompiledProgram = self.rewrite(program, loaded=False)
        return made

    def load_program(
        self,
        program: programs.TracedProgram,
        content: bytes,  # noqa: ARG002  # of the protocol
    ) -> programs.CompiledProgram:
        made: programs.CompiledProgram = self.rewrite(program, loaded=True)
        return made


def delegating(make: Callable[[Any], Any]) -> Engine:
    """Return an engine whose backend is the clean one, wrapped by ``make``."""
    return engine_with(WrongBackend("delegates", make, 4, ""))


def compiling(rewrite: Callable[[Group], Callable[..., Any]]) -> Engine:
    """Return an engine whose groups are computed by the functions that ``rewrite`` returns."""
    return delegating(partial(_Compiles, rewrite=rewrite))


def compiling_loops(
    rewrite: Callable[[loop_bodies.LoopBody], Callable[..., Any] | None],
) -> Engine:
    """Return an engine whose loops are run by the functions that ``rewrite`` returns."""
    return delegating(partial(_CompilesLoops, rewrite=rewrite))


def compiling_programs(rewrite: Callable[..., programs.CompiledProgram]) -> Engine:
    """Return an engine whose programs are compiled by ``rewrite``, given one and ``loaded``."""
    return delegating(partial(_CompilesPrograms, rewrite=rewrite))


def with_kernel(spec: KernelSpec, function: Any, engine: Engine | None = None) -> Engine:
    """Return an engine, ``engine`` if it is given, with another kernel of ``spec``."""
    changed = engine or build_engine()
    changed.open(REFERENCE)
    entry = kernel_entry(spec, function)
    changed.registry.add(Owner("saboteur"), kernels=[(REFERENCE, entry)], override=True)
    return changed


def with_results(spec: KernelSpec, change: Callable[[Any], Any]) -> Engine:
    """Return an engine whose kernel of ``spec`` has its results changed by ``change``."""
    changed = build_engine()
    changed.open(REFERENCE)
    owned = changed.registry.state.kernel(spec.name, REFERENCE)
    if owned is None:
        raise LookupError(f"backend {REFERENCE!r} has no kernel {spec.name!r} to make wrong")
    entry = owned.entry

    def prepare(*types: Any, **asked: Any) -> Callable[..., Any]:
        run = entry.function(*types, **asked) if entry.prepares else None

        def kernel(*buffers: Any) -> Any:
            return change(run(*buffers) if run else entry.function(*buffers, **asked))

        return kernel

    wrong = dataclasses.replace(entry, function=prepare, prepares=True)
    changed.registry.add(Owner("saboteur"), kernels=[(REFERENCE, wrong)], override=True)
    return changed
