"""The hooks through which tensorplug finds the op's kernels, rules and cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import Backend, DecompositionTable, GradientTable, KernelTable, hookimpl
from tensorplug_example_swish.decompositions import decompositions
from tensorplug_example_swish.gradients import gradients
from tensorplug_example_swish.op import swish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug_conformance import CaseTable


@hookimpl
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    """Return our kernels for the backend that is being opened; none for those we do not know.

    Imports are made here, since neither backend need be installed.
    """
    if backend.name == "cpu":
        from tensorplug_example_swish.kernels import cpu

        return (cpu.kernels,)
    if backend.name == "opencl":
        from tensorplug_example_swish.kernels import opencl

        return (opencl.kernels,)
    return ()


@hookimpl
def tensorplug_gradients() -> Iterable[GradientTable]:
    """Return the gradient rule."""
    return (gradients,)


@hookimpl
def tensorplug_decompositions() -> Iterable[DecompositionTable]:
    """Return what stands in for a kernel elsewhere."""
    return (decompositions,)


@hookimpl
def tensorplug_chained_ops() -> Iterable[Callable[..., Any]]:
    """Return the op: ``x.swish()``."""
    return (swish,)


@hookimpl
def tensorplug_conformance_cases() -> Iterable[CaseTable]:
    """Return the cases; the suite, which asks for them, need not be installed otherwise."""
    from tensorplug_example_swish.cases import cases

    return (cases,)
