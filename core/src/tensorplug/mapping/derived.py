"""Batching by what a table states about a kernel: the kernel itself, on tensors with more axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.dispatch.calls import dispatch
from tensorplug.engine.operands import flatten
from tensorplug.engine.plan_calls import run_call
from tensorplug.ops.movement import RESHAPE, broadcast_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Plan


# `inputs` are physical tensors, lists of them or None; `batched` says which have the axis of the
# examples in front, in the same form.


def to_shape(x: Tensor, shape: Shape) -> Tensor:
    """Return ``x`` in another shape of as many elements."""
    return x if x.shape == shape else dispatch(RESHAPE, x, shape=shape)


def align(x: Tensor, rank: int) -> Tensor:
    """Return a batched tensor whose examples have ``rank`` axes: new ones in front of theirs."""
    missing = rank - x.ndim + 1
    return to_shape(x, (x.shape[0], *[1] * missing, *x.shape[1:])) if missing > 0 else x


def aligned(rank: int, batched: frozenset[str], **inputs: Tensor | None) -> list[Tensor | None]:
    """Return inputs by name that broadcast to examples of ``rank`` axes: see ``align``."""
    return [
        align(x, rank) if x is not None and name in batched else x for name, x in inputs.items()
    ]


def elementwise(
    plan: Plan, inputs: Sequence[Any], batched: Sequence[Any], size: int
) -> list[Tensor]:
    """Run a kernel whose shapes broadcast."""
    rank = plan.output.type.rank
    alike = _of_one_shape(plan)

    def fit(x: Any, is_batched: bool) -> Any:  # noqa: FBT001  # of one input
        if is_batched:
            return align(x, rank)
        return in_front(x, is_batched, size) if alike and x is not None else x

    return run_call(plan, _map(fit, inputs, batched))


def _of_one_shape(plan: Plan) -> bool:
    """Return whether all inputs must have the same shape, so that constants must be copied."""
    shapes = {type_.shape for type_ in flatten(plan.inputs)}
    return plan.spec.expression_rule is None and len(shapes) == 1


def as_it_is(plan: Plan, batched: Sequence[bool]) -> bool:
    """Return whether ``elementwise`` would change no input, neither its axes nor by copying."""
    types = flatten(plan.inputs)
    return (all(batched) or not _of_one_shape(plan)) and all(
        type_.rank == plan.output.type.rank
        for type_, is_batched in zip(types, batched, strict=True)
        if is_batched
    )


def leading(
    plan: Plan, inputs: Sequence[Any], batched: Sequence[Any], size: int, axes: Sequence[str]
) -> list[Tensor]:
    """Run a kernel that does the same along any further axis in front of all inputs."""

    def fit(x: Any, is_batched: bool) -> Any:  # noqa: FBT001  # of one input
        return x if x is None else in_front(x, is_batched, size)

    return run_call(plan, _map(fit, inputs, batched), **shifted_axes(plan, axes))


def shifted_axes(plan: Plan, axes: Sequence[str]) -> dict[str, Any]:
    """Return the attributes that number axes, shifted for tensors with a further axis in front."""
    return {name: _shifted(plan.attributes[name]) for name in axes}


def _map(
    fit: Callable[[Any, bool], Any], inputs: Sequence[Any], batched: Sequence[Any]
) -> list[Any]:
    """Return the results of ``fit`` for each input, and for each member of a list."""
    return [
        _map(fit, x, flag) if isinstance(x, list) else fit(x, flag)
        for x, flag in zip(inputs, batched, strict=True)
    ]


def _shifted(axes: Any) -> Any:
    """Return the numbers of axes behind a new one; None stays."""
    if isinstance(axes, tuple):
        return tuple(axis + 1 for axis in axes)
    return None if axes is None else axes + 1


def folded(
    plan: Plan, inputs: Sequence[Any], batched: Sequence[Any], size: int, names: Sequence[str]
) -> list[Tensor] | None:
    """Run a kernel with the examples in axis 0 of ``names``; None if another input is batched."""
    fitted: list[Any] = []
    for name, x, is_batched in zip(plan.spec.input_names, inputs, batched, strict=True):
        if name not in names or x is None:
            if is_batched:
                return None
            fitted.append(x)
            continue
        whole = in_front(x, is_batched, size)
        fitted.append(to_shape(whole, (size * whole.shape[1], *whole.shape[2:])))
    outputs = run_call(plan, fitted)
    return [
        to_shape(output, (size, *placement.type.shape))
        for output, placement in zip(outputs, plan.outputs, strict=True)
    ]


def in_front(x: Tensor, is_batched: bool, size: int) -> Tensor:  # noqa: FBT001  # of one input
    """Return ``x`` with the axis of the examples in front."""
    return x if is_batched else broadcast_to(x, (size, *x.shape))
