"""Steps: what a kernel call computes for one element, for the calls of which that is known.

A step is an elementwise expression, a reduction, a change of axes of length 1, or a composite: a
decomposition all of whose calls are such steps, such as a softmax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from tensorplug.compile.tracing.decompositions import trace_decomposition
from tensorplug.compile.tracing.functions import expression_of
from tensorplug.compile.tracing.passes import eliminate_dead_calls
from tensorplug.compile.tracing.sizes import declared_sizes
from tensorplug.compile.tracing.values import Constant
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.keys import freeze_attributes
from tensorplug.engine.widening import find_decomposition, is_asked
from tensorplug.ops import movement, reduction

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tensorplug.compile.tracing.calls import Call
    from tensorplug.compile.tracing.values import Value
    from tensorplug.contract.expression_rules import ExpressionRule
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import Plan


MOST_CALLS: Final = 256
"""The most calls of a composite: longer ones are not worth the time to compile them."""

_REDUCTIONS: Final[dict[Any, tuple[Literal["sum", "prod", "max", "min"], str]]] = {
    # All and Any are those of the numbers 0 and 1. The name is that of the attribute of the axes.
    reduction.SUM: ("sum", "axis"),
    reduction.PROD: ("prod", "axis"),
    reduction.MAX: ("max", "reduction_indices"),
    reduction.MIN: ("min", "axis"),
    reduction.ALL: ("min", "axis"),
    reduction.ANY: ("max", "axis"),
}
_PLAIN: Final = frozenset({*_REDUCTIONS, reduction.MEAN})
_SHAPED: Final = frozenset({movement.RESHAPE, movement.BROADCAST_TO})  # their attribute is a shape
_DIVIDED: Final = frozenset({dt.float32, dt.float64})


class Elementwise(NamedTuple):
    """Each element is an expression of the operands' elements, which broadcast."""

    rule: ExpressionRule


class Reduce(NamedTuple):
    """A reduction of the only operand along some of its axes.

    ``divides``: the result is divided by the number of elements along these axes.
    """

    op: Literal["sum", "prod", "max", "min"]
    axes: tuple[int, ...]
    keeps_axes: bool
    divides: bool = False


class Reshape(NamedTuple):
    """The operand with axes of length 1 put in or left out."""


class Composite(NamedTuple):
    """Calls in the place of one, with the step of each; none of these is a composite.

    ``declared``: the decompositions say which sizes they read.
    """

    inputs: list[Value]
    calls: list[tuple[Call, Step]]
    outputs: list[Value | Constant]
    declared: bool


Step: TypeAlias = "Elementwise | Reduce | Reshape | Composite"


class _TooLongError(Exception):
    """A decomposition is too long, or has a call that is no step."""


class Steps:
    """The steps of the plans of one engine, by what they depend on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._found: dict[Hashable, Step | None] = {}

    def find(self, plan: Plan) -> Step | None:
        """Return the step of a call of ``plan``; None if there is none."""
        try:
            key = (
                plan.spec,
                tuple(freeze_attributes(plan.attributes)),
                tuple(tuple(x) if isinstance(x, list) else x for x in plan.inputs),
            )
        except TypeError:  # an attribute is not hashable
            return self._find_anew(plan)
        if key not in self._found:
            self._found[key] = self._find_anew(plan)
        return self._found[key]

    def _find_anew(self, plan: Plan) -> Step | None:
        single = _find_single(plan)
        return self._find_composite(plan) if single is None else single

    def _find_composite(self, plan: Plan) -> Composite | None:
        outermost = find_decomposition(plan)
        if outermost is None or outermost.entry.alone:
            return None
        calls = 0
        declared = outermost.entry.reads is not None

        def expand(inner: Plan) -> bool:
            nonlocal calls, declared
            calls += 1
            if calls > MOST_CALLS:
                raise _TooLongError
            if _find_single(inner) is not None:
                return False
            owned = find_decomposition(inner)
            if owned is None or owned.entry.alone:
                raise _TooLongError
            declared = declared and owned.entry.reads is not None
            return True

        traced = trace_decomposition(self._engine, plan, expand=expand)
        if traced is None:
            return None
        members: list[tuple[Call, Step]] = []
        for call in eliminate_dead_calls(traced.calls, traced.outputs):
            step = _find_single(call.plan)
            if step is None or any(_is_large(operand) for operand in call.operands()):
                return None
            members.append((call, step))
        if any(_is_large(output) for output in traced.outputs):
            return None
        return Composite(traced.inputs, members, traced.outputs, declared)


def describe(plan: Plan) -> Hashable:
    """Return what the step of a call depends on beside dtypes, ranks and which sizes are equal.

    That holds if the step ``is_general``.

    Raises:
        TypeError: an attribute is not hashable.

    """
    if not reads_attributes(plan):
        return plan.spec, plan.how, plan.owner
    sizes = sizes_of_step(plan) if _has_ops(plan) else []
    return plan.spec, plan.how, plan.owner, *freeze_attributes(plan.attributes), *sizes


def reads_attributes(plan: Plan) -> bool:
    """Return whether the step of a call depends on attributes; a shape says what types do."""
    spec = plan.spec
    computes = _has_ops(plan) or spec.expression_rule or spec in _REDUCTIONS
    return spec not in _SHAPED and bool(computes)


def _has_ops(plan: Plan) -> bool:
    owned = plan.state.decomposition(plan.spec.name)
    return owned is not None and not (owned.entry.on_host or owned.entry.alone)


def sizes_of_step(plan: Plan) -> list[int]:
    """Return the sizes on which the expressions of a call depend."""
    if _divides(plan):
        return []
    return declared_sizes(plan, plan.state.decomposition(plan.spec.name)) or []


def is_general(plan: Plan, step: Step | None) -> bool:
    """Return whether a call has the same step at all sizes; see ``describe``."""
    rule = plan.spec.expression_rule
    if rule is not None and rule.reads_output:
        return False
    if isinstance(step, Composite):
        return step.declared
    if step is not None or (plan.how == "native" and not plan.yields()):
        return True
    owned = plan.state.decomposition(plan.spec.name)
    return (
        owned is None
        or owned.entry.on_host
        or (owned.entry.alone or owned.entry.reads is not None)
    )


def count_calls(step: Step | None) -> int:
    """Return how many calls a step stands for: several for a composite."""
    if isinstance(step, Composite):
        return sum(count_calls(inner) for _, inner in step.calls)
    return 2 if isinstance(step, Reduce) and step.divides else 1


def reduces(step: Step | None) -> bool:
    """Return whether a step is, or has, a reduction."""
    if isinstance(step, Composite):
        return any(isinstance(inner, Reduce) for _, inner in step.calls)
    return isinstance(step, Reduce)


def may_be_composite(plan: Plan) -> bool:
    """Return whether a call may consist of several steps, as far as its spec says."""
    owned = None if plan.spec in _PLAIN else find_decomposition(plan)
    return owned is not None and not (owned.entry.on_host or owned.entry.alone)


def is_plain_reduction(plan: Plan) -> bool:
    """Return whether a call of ``plan`` does nothing but reduce its input."""
    return plan.spec in _PLAIN


def _find_single(plan: Plan) -> Step | None:
    """Return the step of a call of ``plan``, if it is not a composite."""
    if not plan.static_shapes or plan.spec.multiple_outputs or _is_left(plan):
        return None
    if _divides(plan):
        axis = plan.attributes["axis"]
        return Reduce("sum", axis, plan.attributes["keep_dims"], divides=True)
    op_and_axes = _REDUCTIONS.get(plan.spec)
    if op_and_axes is not None:
        op, axes = op_and_axes
        return Reduce(op, plan.attributes[axes], plan.attributes["keep_dims"])
    if plan.spec is movement.RESHAPE:
        old, new = plan.inputs[0], plan.output.type
        return Reshape() if isinstance(old, TensorType) and _same_but_ones(old, new) else None
    rule = plan.spec.expression_rule
    return Elementwise(rule) if rule and expression_of(plan) else None


def _divides(plan: Plan) -> bool:
    """Return whether a call is a mean, of a dtype in which the sum is divided."""
    return plan.spec is reduction.MEAN and plan.output.type.dtype in _DIVIDED


def _is_left(plan: Plan) -> bool:
    """Return whether the backend leaves a dtype of a call to the core, which widens it."""
    owned = plan.state.kernel(plan.spec.name, plan.device.backend_name)
    return not is_asked(None if owned is None else owned.entry, plan)


def _same_but_ones(a: TensorType, b: TensorType) -> bool:
    return [size for size in a.shape if size != 1] == [size for size in b.shape if size != 1]


def _is_large(operand: Value | Constant) -> bool:
    """Return whether an operand is a constant of more than one number."""
    return isinstance(operand, Constant) and operand.placement.type.size != 1
