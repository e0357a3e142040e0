"""The hooks through which tensorplug finds the op's kernels, rules and cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import Backend, DecompositionTable, KernelTable, RuleTable, hookimpl

from tensorplug_example_swish.decompositions import decompositions
from tensorplug_example_swish.gradients import rules
from tensorplug_example_swish.op import swish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug_conformance import CaseTable


@hookimpl
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    """Return the kernels for a backend that is being opened; none for an unknown one.

    Neither backend need be installed, so the imports are here.
    """
    if backend.name == "cpu":
        from tensorplug_example_swish.kernels import cpu

        return (cpu.kernels,)
    if backend.name == "opencl":
        from tensorplug_example_swish.kernels import opencl

        return (opencl.kernels,)
    return ()


@hookimpl
def tensorplug_rules() -> Iterable[RuleTable]:
    """Return the gradient rule."""
    return (rules,)


@hookimpl
def tensorplug_decompositions() -> Iterable[DecompositionTable]:
    """Return the decomposition, for backends without a kernel."""
    return (decompositions,)


@hookimpl
def tensorplug_chained_ops() -> Iterable[Callable[..., Any]]:
    """Return the op: ``x.swish()``."""
    return (swish,)


@hookimpl
def tensorplug_conformance_cases() -> Iterable[CaseTable]:
    """Return the cases. Only the suite calls this, so only then must it be installed."""
    from tensorplug_example_swish.cases import cases

    return (cases,)
