"""The hooks through which tensorplug finds what this distribution adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import Backend, DecompositionTable, KernelTable, RuleTable, hookimpl
from tensorplug_science import missing_values, quantiles
from tensorplug_science.decompositions.special import decompositions
from tensorplug_science.rules.special import rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug_conformance import CaseTable


@hookimpl
def tensorplug_chained_ops() -> Iterable[Callable[..., Any]]:
    """Return the functions that are methods of tensors too: ``x.quantile(0.5)``."""
    return [
        getattr(module, name) for module in (missing_values, quantiles) for name in module.__all__
    ]


@hookimpl
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    """Return the kernels for cpu, if that is being opened; the others decompose."""
    if backend.name != "cpu":
        return ()
    from tensorplug_science.kernels import cpu  # tensorplug-cpu need not be installed

    return (cpu.kernels,)


@hookimpl
def tensorplug_rules() -> Iterable[RuleTable]:
    """Return the gradient rules."""
    return (rules,)


@hookimpl
def tensorplug_decompositions() -> Iterable[DecompositionTable]:
    """Return the decompositions, for backends without a kernel."""
    return (decompositions,)


@hookimpl
def tensorplug_conformance_cases() -> Iterable[CaseTable]:
    """Return the cases. Only the suite calls this, so only then must it be installed."""
    from tensorplug_science.cases.special import cases

    return (cases,)
