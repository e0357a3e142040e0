"""Traces used again at other sizes, which nothing read (docs/adr/0071).

The calls of such a trace are the same at other sizes, as long as sizes that were equal, or were
read, still are. So their types are inferred anew, without the function and its ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.compile.tracing.bodies import find_donated
from tensorplug.compile.tracing.calls import Call
from tensorplug.compile.tracing.nested import NestedPlan
from tensorplug.compile.tracing.sizes import Sizes
from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.dispatch.device import Placement
from tensorplug.engine.operands import flatten
from tensorplug.engine.plans import BY_OPS
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from tensorplug.compile.tracing.bodies import Request, Traced
    from tensorplug.contract.spec import TensorType
    from tensorplug.engine.plans import Plan


class _OtherSizesError(Exception):
    """Sizes were equal, or were read, and are not the same any more."""


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
        (plan.how == "native" and plan.takes_buffers and not isinstance(plan, NestedPlan))
        or plan.how in BY_OPS  # a function that groups have
        for plan in _find_plans(traced)[0]
    )


def _find_plans(traced: Traced) -> tuple[list[Plan], list[Constant]]:
    """Return the plans of all calls in order, and the constants that do not follow from sizes.

    Before a call are those of which its constants are made.
    """
    plans: dict[Plan, None] = {}
    fixed: dict[Constant, None] = {}
    for call in traced.calls:
        _add_constants(call.operands(), plans, fixed)
        plans[call.plan] = None
    _add_constants(traced.wanted, plans, fixed)
    return list(plans), list(fixed)


def _add_constants(
    operands: Sequence[Any], plans: dict[Plan, None], fixed: dict[Constant, None]
) -> None:
    for each in operands:
        if isinstance(each, Constant):
            if each.made is None:
                fixed[each] = None
            else:
                _add_constants(flatten(each.made.inputs), plans, fixed)
                plans[each.made.plan] = None


class Resizing:
    """Finds what the ``sizes`` of a trace are in other calls of its function."""

    def __init__(self, traced: Traced, arguments: int) -> None:
        self._traced = traced
        self._arguments = [value.placement.type for value in traced.inputs[:arguments]]
        self._plans, constants = _find_plans(traced)
        # These remain, as do variables and floats, and what a variable becomes.
        kept: list[Value | Constant] = [*constants, *traced.inputs[arguments:]]
        kept += traced.wanted[len(traced.wanted) - len(traced.assigns) :]
        self._kept = {size for value in kept for size in value.placement.type.shape}
        types = [placement.type for plan in self._plans for placement in plan.outputs]
        self.sizes = {0, 1, *self._kept}
        self.sizes.update(size for type_ in (*self._arguments, *types) for size in type_.shape)

    def find(self, request: Request) -> Sizes | None:
        """Return the sizes in another call; None if only a trace can tell what happens there."""
        body = request.body
        try:
            return self._find([body.leaves[at] for at in body.places])
        except (_OtherSizesError, ArgumentError):  # in a trace, an error names the line
            return None

    def _find(self, types: Sequence[TensorType]) -> Sizes:
        new, old = {0: 0, 1: 1}, {0: 0, 1: 1}

        def match(before: Sequence[int], now: Sequence[int]) -> None:
            # So all comparisons of sizes come out as they did.
            for a, b in zip(before, now, strict=True):
                if new.setdefault(a, b) != b or old.setdefault(b, a) != a:
                    raise _OtherSizesError

        sizes = Sizes(new)
        for before, now in zip(self._arguments, types, strict=True):
            match(before.shape, now.shape)
        kept = tuple(self._kept)
        match(kept, kept)
        for plan in self._plans:
            inputs, attributes = sizes.types(plan.inputs), sizes.attributes(plan)
            if plan.extents is not None:  # they were checked for other sizes
                attributes = plan.spec._canonical(inputs, attributes)
            outputs = plan.spec._infer_outputs(inputs, attributes)
            for placement, output in zip(plan.outputs, outputs, strict=True):
                if placement.type.dtype is not output.dtype:
                    raise _OtherSizesError
                match(placement.type.shape, output.shape)
        assert self._traced.sizes_read is not None, "else it must not be used again"
        if any(new.get(size, size) != size for size in self._traced.sizes_read):
            raise _OtherSizesError
        return sizes


def replay(traced: Traced, request: Request, sizes: Sizes) -> Traced:
    """Return what the function does in a call with other ``sizes``."""
    values: dict[Any, Any] = {}
    inputs = traced.inputs[: len(request.arguments)]
    for value in (*inputs, *(output for call in traced.calls for output in call.outputs)):
        values[value] = Value(sizes.place(value.placement))
    for call in traced.calls:
        values.update(sizes.constants(call.operands()))
    values.update(sizes.constants(traced.wanted))
    inputs = [values.get(value, value) for value in traced.inputs]
    return traced._replace(
        calls=calls_at(traced.calls, sizes, values),
        inputs=inputs,
        wanted=[values.get(value, value) for value in traced.wanted],
        free=find_donated(inputs, request),
    )


def calls_at(calls: Sequence[Call], sizes: Sizes, values: Mapping[Any, Any]) -> list[Call]:
    """Return calls at other sizes; ``values``: the operands there that are not the same."""
    plans: dict[Plan, Plan] = {}
    result = []
    for call in calls:
        plan = plans.get(call.plan)
        if plan is None:  # equal types have equal ones there
            plan = plans[call.plan] = sizes.plan(call.plan)
        operands = [
            [values.get(member, member) for member in operand]
            if isinstance(operand, list)
            else values.get(operand, operand)
            for operand in call.inputs
        ]
        results = [values[output] for output in call.outputs]
        meant = call.dequantized and [values.get(x, x) for x in call.dequantized]
        result.append(Call(plan, operands, results, call.site, meant))
    return result
