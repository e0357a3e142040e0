"""Sizes in traces: which a decomposition reads, and what they are in another call (ADR 57)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.compile.tracing.uniform import find_uniform
from tensorplug.compile.tracing.values import Constant, Made
from tensorplug.contract.extents import has_extents, plain, replaced
from tensorplug.contract.tensor_types import TensorType, unwatched
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.operands import flatten
from tensorplug.engine.plan_calls import at_sizes, complete
from tensorplug.engine.plans import Plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorplug.contract.entries import DecompositionEntry
    from tensorplug.contract.spec import InputType
    from tensorplug.dispatch.device import Device, Placement
    from tensorplug.engine.registry import Owned


def declared_sizes(plan: Plan, owned: Owned[DecompositionEntry] | None) -> list[int] | None:
    """Return the sizes that a decomposition reads in a call; None if it does not declare them.

    What runs on the host, or is never a group, has nothing to declare.
    """
    if owned is None or owned.entry.on_host or owned.entry.alone or owned.entry.reads is None:
        return None
    sizes: list[int] = []
    shape = next((unwatched(type_).shape for type_ in plan.operand_types()), ())
    for name in owned.entry.reads:
        axes = plan.attributes[name]
        chosen = (
            range(len(shape)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
        )
        sizes += [shape[axis] for axis in chosen]
    return sizes


def without_extents(plan: Plan, device: Device) -> Plan:
    """Return the plan of the same call on ``device``, the real one, with numbers for extents."""
    extents = {name: value for name, value in plan.attributes.items() if has_extents(value)}
    attributes = {**plan.attributes, **{name: plain(each) for name, each in extents.items()}}
    outputs = [unwatched(output.type) for output in plan.outputs]
    real = Plan(plan.spec, attributes, device, unwatched(plan.inputs), outputs, plan.state)
    real.extents = extents or None
    return real


class Sizes:
    """What the sizes of a trace are in another call: ``new``, one for each, none of them twice."""

    def __init__(self, new: Mapping[int, int]) -> None:
        self.new = new
        self._types: dict[TensorType, TensorType] = {}
        self._placements: dict[Placement, Placement] = {}
        self._constants: dict[Constant, Constant] = {}

    def type(self, type_: TensorType) -> TensorType:
        """Return what a type of the trace is there."""
        known = self._types.get(type_)
        if known is None:
            shape = tuple([self.new[size] for size in type_.shape])
            known = self._types[type_] = TensorType(type_.dtype, shape)
        return known

    def types(self, types: Sequence[InputType]) -> list[InputType]:
        """Return what the types of inputs are there."""
        return [
            [self.type(member) for member in type_]
            if isinstance(type_, list)
            else type_ and self.type(type_)
            for type_ in types
        ]

    def attributes(self, plan: Plan) -> dict[str, Any]:
        """Return what the attributes of a plan of the trace are there.

        Raises:
            ShapeError: one of them is no whole number there.

        """
        if plan.extents is None:
            return plan.attributes
        new = {
            name: replaced(value, lambda extent: extent.at(self.new))
            for name, value in plan.extents.items()
        }
        return {**plan.attributes, **new}

    def plan(self, plan: Plan) -> Plan:
        """Return what a native plan of the trace is there, not yet ``complete``."""
        outputs = [self.place(placement).type for placement in plan.outputs]
        other = at_sizes(plan, self.types(plan.inputs), outputs, self.attributes(plan))
        if plan.extents is not None:
            other.extents = {
                name: replaced(value, lambda extent: extent.moved(self.new))
                for name, value in plan.extents.items()
            }
        return other

    def constant(self, constant: Constant) -> Constant:
        """Return what a constant of the trace is there: another one, if it follows from sizes."""
        made = constant.made
        if made is None:
            return constant
        known = self._constants.get(constant)
        if known is None:
            plan = self.plan(made.plan)
            complete(plan)
            inputs = [
                [self.constant(member) for member in operand]
                if isinstance(operand, list)
                else operand and self.constant(operand)
                for operand in made.inputs
            ]
            outputs = plan.execute_verified([_tensor(operand) for operand in inputs])
            known = self._constants[constant] = Constant(
                outputs[made.at]._buffer,
                self.place(constant.placement),
                find_uniform(plan, flatten(inputs)),
                Made(plan, inputs, made.at),
            )
        return known

    def constants(self, operands: Iterable[Any]) -> dict[Any, Any]:
        """Return those among the operands that are others there, with what they are."""
        return {
            operand: self.constant(operand)
            for operand in operands
            if operand.__class__ is Constant and operand.made is not None
        }

    def place(self, placement: Placement) -> Placement:
        """Return what a placement of the trace is there."""
        known = self._placements.get(placement)
        if known is None:
            known = placement.device.placement(self.type(placement.type))
            self._placements[placement] = known
            self._types[placement.type] = known.type  # the one that plans compare by identity
        return known


def _tensor(operand: Any) -> Any:
    if isinstance(operand, list):
        return [_tensor(member) for member in operand]
    return operand and Tensor._of(operand.buffer, operand.placement)
