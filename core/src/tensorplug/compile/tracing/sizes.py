"""Sizes in traces: which a decomposition reads, and what they are in another call (ADR 57)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tensor_types import TensorType, unwatched

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.contract.entries import DecompositionEntry
    from tensorplug.contract.spec import InputType
    from tensorplug.dispatch.device import Placement
    from tensorplug.engine.plans import Plan
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


class Sizes:
    """What the sizes of a trace are in another call: ``new``, one for each, none of them twice."""

    def __init__(self, new: Mapping[int, int]) -> None:
        self.new = new
        self._types: dict[TensorType, TensorType] = {}
        self._placements: dict[Placement, Placement] = {}

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

    def place(self, placement: Placement) -> Placement:
        """Return what a placement of the trace is there."""
        known = self._placements.get(placement)
        if known is None:
            known = placement.device.placement(self.type(placement.type))
            self._placements[placement] = known
            self._types[placement.type] = known.type  # the one that plans compare by identity
        return known
