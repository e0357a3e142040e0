"""The hooks through which tensorplug finds the steps' kernels, rules and cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Backend, DecompositionTable, GradientTable, KernelTable, hookimpl
from tensorplug_train.decompositions import decompositions
from tensorplug_train.gradients import gradients

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorplug_conformance import CaseTable


@hookimpl
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    """Return the kernels for a backend that is being opened; none for an unknown one.

    Neither backend need be installed, so the imports are here.
    """
    if backend.name == "cpu":
        from tensorplug_train.kernels import cpu

        return (cpu.kernels,)
    if backend.name == "opencl":
        from tensorplug_train.kernels import opencl

        return (opencl.kernels,)
    return ()


@hookimpl
def tensorplug_gradients() -> Iterable[GradientTable]:
    """Return the gradient rules."""
    return (gradients,)


@hookimpl
def tensorplug_decompositions() -> Iterable[DecompositionTable]:
    """Return the decompositions, for backends without a kernel."""
    return (decompositions,)


@hookimpl
def tensorplug_conformance_cases() -> Iterable[CaseTable]:
    """Return the cases. Only the suite calls this, so only then must it be installed."""
    from tensorplug_train.cases import cases

    return (cases,)
