"""Calls of the kernel of a plan, by ops: on other tensors, with other attributes, or inside."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tensorplug.dispatch.calls import dispatch, dispatch_binary, dispatch_multiple, dispatch_unary
from tensorplug.engine.current import current_engine
from tensorplug.engine.plans import BY_OPS, Plan, resolve_native, unresolved
from tensorplug.engine.resolution import resolve, resolve_decomposition
from tensorplug.engine.widening import find_decomposition, unsupported_dtype
from tensorplug.errors import KernelRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.entries import DecompositionEntry
    from tensorplug.contract.spec import InputType, TensorType
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Step


def at_sizes(
    plan: Plan,
    inputs: Sequence[InputType],
    outputs: Sequence[TensorType],
    attributes: dict[str, Any],
) -> Plan:
    """Return the plan of the same call for operands of other sizes, not yet ``complete``.

    It is a native call, or one of a function that groups have. The types are interned.
    """
    other = Plan(plan.spec, attributes, plan.device, inputs, outputs, plan.state, interned=True)
    other.owner, other.how, other.takes_buffers = plan.owner, plan.how, plan.takes_buffers
    return other


def complete(plan: Plan, *, by_ops: bool = True) -> None:
    """Prepare the kernel of a plan, if that is not done yet.

    ``at_sizes`` has made it, or a trace has put that off. ``by_ops``: a call that its kernel
    refuses is decomposed, or falls back to another backend.

    Raises:
        KernelRefusedError: the kernel does not take these sizes.
        KernelNotFoundError: nor does anything else, ``by_ops``.

    """
    if plan.call is not unresolved:
        return
    steps: list[Step] = []
    function = plan.how in BY_OPS
    if by_ops and not function:
        plan.takes_buffers = False  # until a kernel serves it
        resolve(current_engine(), plan)
    elif not (resolve_decomposition if function else resolve_native)(plan, steps):
        raise KernelRefusedError(steps[-1][1])


def run_call(plan: Plan, inputs: Sequence[Any], **changes: Any) -> list[Tensor]:
    """Run the kernel of ``plan`` on ``inputs``, with ``changes`` of its attributes."""
    attributes = {**plan.attributes, **changes}
    if plan.spec.multiple_outputs:
        return dispatch_multiple(plan.spec, *inputs, **attributes)
    return [dispatch(plan.spec, *inputs, **attributes)]


def kernel_runner(plan: Plan, **changes: Any) -> Callable[..., Any]:
    """Return a function of inputs that runs the kernel of ``plan``, as ``run_call`` does.

    It returns a tensor, or a list of them if the kernel has multiple outputs.
    """
    spec, attributes = plan.spec, {**plan.attributes, **changes}
    if spec.multiple_outputs:
        return partial(dispatch_multiple, spec, **attributes)
    if attributes or len(plan.inputs) not in (1, 2):
        return partial(dispatch, spec, **attributes)
    return partial(dispatch_unary if len(plan.inputs) == 1 else dispatch_binary, spec)


def entry_by_ops(plan: Plan) -> DecompositionEntry | None:
    """Return the decomposition of a call into ops; None if it has none."""
    owned = find_decomposition(plan)
    if owned is None or owned.entry.on_host or unsupported_dtype(plan, owned.entry.dtypes):
        return None
    return owned.entry
