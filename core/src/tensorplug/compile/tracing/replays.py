"""Traces used again at other sizes, which nothing read (docs/adr/0071).

The calls of such a trace are the same at other sizes, as long as sizes that were equal, or were
read, still are. So their types are inferred anew, without the function and its ops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorplug.compile.tracing.bodies import find_donated
from tensorplug.compile.tracing.calls import Call
from tensorplug.compile.tracing.nested import NestedPlan
from tensorplug.compile.tracing.values import Value
from tensorplug.dispatch.device import Placement
from tensorplug.engine.plan_calls import at_sizes
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tensorplug.compile.arguments.floats import Floats
    from tensorplug.compile.tracing.bodies import Request, Traced
    from tensorplug.compile.tracing.values import Constant
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.plans import Plan


class _OtherSizesError(Exception):
    """Sizes were equal, or were read, and are not the same any more."""


@dataclass(eq=False, slots=True)
class Template:
    """A trace on a device that may be used again, and the floats that its function read.

    ``used``: whether it was since it was stored.
    """

    traced: Traced
    device: Device
    floats: Floats
    used: bool = False


def without_sizes(signature: Sequence[Hashable]) -> Hashable:
    """Return what calls have in common that differ in sizes, but not in which ones are equal."""
    sizes = {0: 0, 1: 1}
    return tuple(
        [
            (
                item.device,
                item.committed,
                item.type.dtype,
                tuple([sizes.setdefault(size, len(sizes)) for size in item.type.shape]),
            )
            if item.__class__ is Placement
            else item
            for item in signature
        ]
    )


def may_replay(traced: Traced) -> bool:
    """Return whether a trace says which sizes it depends on."""
    return traced.sizes_read is not None and all(
        call.plan.how == "native" and not isinstance(call.plan, NestedPlan)
        for call in traced.calls
    )


def replay(traced: Traced, request: Request) -> Traced | None:
    """Return what the function does in another call; None if only a trace of it can tell."""
    again = _Replay(request)
    try:
        inputs = again.enter(traced.inputs)
        calls = [again.call(call) for call in traced.calls]
        again.check(traced)
    except (_OtherSizesError, ArgumentError):  # in a trace, an error names the line
        return None
    return traced._replace(
        calls=calls,
        inputs=inputs,
        wanted=[again.operand(value) for value in traced.wanted],
        free=find_donated(inputs, request),
    )


class _Replay:
    """The calls of a trace at other sizes, one after the other."""

    def __init__(self, request: Request) -> None:
        self._device = request.device
        self._types = [request.body.leaves[at] for at in request.body.places]
        self._values: dict[Any, Any] = {}
        self._placements: dict[Placement, Placement] = {}
        self._plans: dict[Plan, Plan] = {}
        self._new = {0: 0, 1: 1}  # the size here for a size in the trace
        self._old = {0: 0, 1: 1}

    def enter(self, inputs: Sequence[Value]) -> list[Value]:
        """Return the inputs of the program, of which the arguments come first."""
        for value, type_ in zip(inputs, self._types):  # noqa: B905  # others follow
            home = self._device.home(type_.dtype) or self._device
            self._values[value] = Value(home.placement(type_))
            self._match(value.placement, self._values[value].placement)
        return [self.operand(value) for value in inputs]

    def operand(self, operand: Any) -> Any:
        """Return a value here for one of the trace; constants, variables and floats remain."""
        if isinstance(operand, list):
            return [self.operand(member) for member in operand]
        known = self._values.get(operand)
        if known is None and operand is not None:
            known = self._values[operand] = operand
            self._match(operand.placement, operand.placement)
        return known

    def call(self, call: Call) -> Call:
        """Return a call of the trace for its operands here."""
        inputs = [self.operand(operand) for operand in call.inputs]
        plan = self._plans.get(call.plan)
        if plan is None:  # equal types have equal ones here
            plan = self._plans[call.plan] = at_sizes(
                call.plan, [_type_of(each) for each in inputs]
            )
        outputs = [Value(placement) for placement in plan.outputs]
        for before, output in zip(call.outputs, outputs, strict=True):
            self._match(before.placement, output.placement)
            self._values[before] = output
        return Call(plan, inputs, outputs, call.site)

    def check(self, traced: Traced) -> None:
        """Check that sizes on which the trace depends are the same here.

        Raises:
            _OtherSizesError: one is not.

        """
        assert traced.sizes_read is not None, "else it must not be used again"
        if any(self._new.get(size, size) != size for size in traced.sizes_read):
            raise _OtherSizesError
        first = len(traced.wanted) - len(traced.assigns)
        for value in traced.wanted[first:]:  # a variable keeps its type
            if self.operand(value).placement is not value.placement:
                raise _OtherSizesError

    def _match(self, before: Placement, now: Placement) -> None:
        """Note that a type of the trace is another one here.

        Raises:
            _OtherSizesError: two sizes that were equal are not, or the other way round.

        """
        known = self._placements.get(before)
        if known is now:
            return
        if known is not None or before.type.dtype is not now.type.dtype:
            raise _OtherSizesError
        self._placements[before] = now
        for a, b in zip(before.type.shape, now.type.shape, strict=True):
            if self._new.setdefault(a, b) != b or self._old.setdefault(b, a) != a:
                raise _OtherSizesError


def _type_of(operand: Value | Constant | list[Value | Constant] | None) -> Any:
    """Return the type of an operand, a list of types, or None."""
    if isinstance(operand, list):
        return [member.placement.type for member in operand]
    return operand and operand.placement.type
