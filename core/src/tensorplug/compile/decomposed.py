"""Decompositions as programs: traced once for a plan, then run (docs/adr/0029)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.compile.decompositions import TracedDecomposition, trace_decomposition
from tensorplug.compile.passes import eliminate_common_calls, eliminate_dead_calls
from tensorplug.compile.programs import Program
from tensorplug.compile.running import Executable
from tensorplug.compile.values import Constant
from tensorplug.contract.spec import TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import Plan

__all__ = ["make_program"]

_LARGEST: Final = 4096
"""Bytes of the data that a program of a decomposition may hold, beside Python numbers."""


def make_program(engine: Engine, plan: Plan, fuses: bool) -> Callable[..., Any] | None:  # noqa: FBT001  # the engine's interface
    """Return a function that runs the kernels of a decomposition, for the buffers of one call.

    ``fuses``: whether the backend may fuse kernels. It returns a buffer, or a list of them if the spec has multiple outputs. Return None if the
    decomposition is no program (see ``trace_decomposition``), or uses data of its own that are
    too large to be kept.
    """
    traced = trace_decomposition(engine, plan)
    if traced is None or _held_bytes(traced) > _LARGEST:
        return None
    calls, wanted = eliminate_common_calls(traced.calls, traced.outputs)
    calls = eliminate_dead_calls(calls, wanted)
    run = Executable(engine, Program(plan.device, traced.inputs, calls, wanted), fuses=fuses).run
    flat = all(isinstance(operand, TensorType) for operand in plan.inputs)
    if plan.spec.multiple_outputs:
        return (lambda *buffers: run(buffers)) if flat else (lambda *given: run(_flatten(given)))
    return (lambda *buffers: run(buffers)[0]) if flat else (lambda *given: run(_flatten(given))[0])


def _held_bytes(traced: TracedDecomposition) -> int:
    """Return the bytes of the constants of a program; the device keeps those of rank 0 anyway."""
    operands = [*traced.outputs]
    for call in traced.calls:
        operands += call.operands()
    constants = {id(held): held for held in operands if isinstance(held, Constant)}
    types = [held.placement.type for held in constants.values()]
    return sum(type_.nbytes for type_ in types if type_.shape)


def _flatten(operands: Sequence[Any]) -> list[Any]:
    """Return the buffers of a call in one list, without absent ones."""
    found: list[Any] = []
    for operand in operands:
        if isinstance(operand, list):
            found += operand
        elif operand is not None:
            found.append(operand)
    return found
