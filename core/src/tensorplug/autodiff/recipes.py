"""Recipes: what the tape saves of a call, and by which rules the call is differentiated."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any, Protocol

from tensorplug.contract.dtypes import INEXACT, DType
from tensorplug.contract.rule_entries import WANTED, cotangent_names, type_names
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.operands import flatten
from tensorplug.errors import GradientNotFoundError
from tensorplug.ops.elementwise.casting import astype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.rule_entries import GradientEntry, JointRule
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.device import Placement
    from tensorplug.engine.registry import State

    Rule = Callable[..., Any]


class Recorded(Protocol):
    """The members of a plan that the tape uses."""

    spec: KernelSpec
    attributes: dict[str, Any]
    state: State
    inputs: list[Any]
    outputs: tuple[Placement, ...]
    static_shapes: bool
    taped: bool
    variant: bool
    recipes: dict[tuple[bool, ...], Recipe | None]

    @property
    def how(self) -> str:
        """How the plan runs."""


class Step:
    """The gradient rule of one input.

    ``first`` is the position of the input's node among the parents, ``count`` the number of nodes
    of a variadic input, else None. ``sources`` are the sources of the rule's arguments:
    ("dy", output), ("dys", 0) for all outputs, ("input", position among the saved values),
    ("output", likewise) or ("constant", value). ``shared``: for a rule of several inputs, the
    steps of all of them; its first argument is the set of the names that are wanted.
    """

    __slots__ = ("count", "first", "name", "rule", "shared", "sources", "type")

    def __init__(self, name: str, first: int, type_: Any, rule: Callable[..., Any]) -> None:
        self.name: str = name
        self.first: int = first
        self.type: Any = type_
        self.count: int | None = len(type_) if isinstance(type_, list) else None
        self.rule: Callable[..., Any] = rule
        self.sources: list[tuple[str, Any]] = []
        self.shared: tuple[Step, ...] = ()


class Recipe:
    """The values to save and the rules, for one plan and one set of inputs to differentiate.

    ``inputs``, ``outputs``: the positions of the values to save. ``firsts``: those of the saved
    inputs' nodes among the parents, ``placements``: their placements, as in ``CallNode.saved``.
    ``moved``: the placements of the saved outputs, if the plan's are no longer right. ``plain``:
    neither inputs nor outputs are lists, and no input is absent. ``single``: there is one output,
    which is inexact.
    """

    __slots__ = (
        *("firsts", "inputs", "moved", "outputs"),
        *("placements", "plain", "single", "steps"),
    )

    def __init__(self, plan: Recorded, needed: tuple[bool, ...], inputs: Sequence[Any]) -> None:
        spec = plan.spec
        rows = [
            (name, type_, plan.state.gradient(spec.name, name) if want else None, want)
            for name, type_, want in zip(spec.input_names, plan.inputs, needed, strict=True)
        ]
        asked = {ask for _, _, owned, _ in rows if owned for ask in owned.entry.asks}
        self.inputs: tuple[int, ...] = tuple(
            at for at, name in enumerate(spec.input_names) if name in asked
        )
        self.outputs: tuple[int, ...] = tuple(
            at for at, name in enumerate(spec.output_names) if name in asked
        )
        self.placements: list[Any] = [placement_of(inputs[at]) for at in self.inputs]
        self.moved: list[Any] | None = None
        counts = [len(type_) if isinstance(type_, list) else 1 for type_ in plan.inputs]
        self.firsts: list[int] = [sum(counts[:at]) for at in self.inputs]
        variadic = any(isinstance(type_, list) or type_ is None for type_ in plan.inputs)
        self.plain: bool = not variadic and not spec.outputs[-1].endswith("[]")
        # Integers and booleans have no derivative.
        self.single: bool = not spec.multiple_outputs and plan.outputs[0].type.dtype in INEXACT
        self.steps: list[Step] = []
        adapt = widening_rule if _is_wide(plan) else _unchanged
        joint: dict[JointRule, list[Step]] = {}
        for at, (name, type_, owned, want) in enumerate(rows):
            first = sum(counts[:at])
            if want and owned is None:
                # An error only if backpropagation reaches this input.
                self.steps.append(Step(name, first, type_, _missing(spec.name, name)))
            elif owned is not None and (rule := _rule(owned.entry, type_)) is not None:
                step = Step(name, first, type_, adapt(positional(rule, owned.entry.asks)))
                step.sources = [self._source(plan, ask) for ask in owned.entry.asks]
                self.steps.append(step)
                if owned.entry.joint is not None:
                    joint.setdefault(owned.entry.joint, []).append(step)
        for shared, steps in joint.items():
            if len(steps) > 1:  # one alone has its own view of the rule
                self._share(shared, steps, adapt)

    def _share(self, rule: JointRule, steps: list[Step], adapt: Callable[[Rule], Rule]) -> None:
        """Put one step for all of ``steps`` in the place of the first one."""
        name = ", ".join(step.name for step in steps)
        asks = [ask for ask in rule.asks if ask != WANTED]

        def call(names: frozenset[str], *values: Any) -> Any:
            asked = dict(zip(asks, values, strict=True))
            return rule.call(name, names, {WANTED: names, **asked})

        one = Step(name, steps[0].first, None, adapt(call))
        one.sources, one.shared = steps[0].sources, tuple(steps)
        self.steps[self.steps.index(steps[0])] = one
        self.steps = [step for step in self.steps if step not in steps]

    def at(self, placements: Sequence[Any]) -> Recipe:
        """Return the recipe for saved values with other ``placements``."""
        other = copy.copy(self)
        count = len(self.inputs)
        other.placements, other.moved = list(placements[:count]), list(placements[count:])
        return other

    def _source(self, plan: Recorded, name: str) -> tuple[str, Any]:
        spec = plan.spec
        cotangents, types = cotangent_names(spec), type_names(spec)
        if name in cotangents:
            variadic = spec.outputs[0].endswith("[]")
            return ("dys", 0) if variadic else ("dy", cotangents.index(name))
        if name in spec.input_names:
            return ("input", self.inputs.index(spec.input_names.index(name)))
        if name in spec.output_names:
            at = self.outputs.index(spec.output_names.index(name))
            return ("output", len(self.inputs) + at)
        if name in types:
            return ("constant", plan.inputs[types.index(name)])
        return ("constant", plan.attributes if name == "attributes" else plan.attributes[name])


def _is_wide(plan: Recorded) -> bool:
    """Return whether the rules of a call of narrow floats get these in a wider dtype.

    They do if the call itself was computed in it. The rules of elementwise kernels always do:
    they have several steps, each of which would round.
    """
    return is_narrow(plan) and (plan.how == "widened" or plan.spec.expression is not None)


def is_narrow(plan: Recorded) -> bool:
    """Return whether a call of narrow floats rounds, so that one may compute in a wider dtype."""
    if plan.spec.exact:
        return False
    types = flatten(plan.inputs) + [placement.type for placement in plan.outputs]
    return any(type_.dtype.compute is not type_.dtype for type_ in types)


def _unchanged(rule: Rule) -> Rule:
    return rule


def widening_rule(rule: Rule) -> Rule:
    """Return ``rule`` of tensors in the dtypes to compute in; its results keep these."""
    return lambda *values: rule(*[_widen(value) for value in values])


def _widen(value: Any) -> Any:
    if isinstance(value, Tensor):
        return astype(value, value.dtype.compute, copy=False)
    if isinstance(value, TensorType):
        return TensorType(value.dtype.compute, value.shape)
    if isinstance(value, DType):
        return value.compute
    if isinstance(value, list):
        return [_widen(member) for member in value]
    return {name: _widen(x) for name, x in value.items()} if isinstance(value, dict) else value


def _rule(entry: GradientEntry, type_: Any) -> Callable[..., Any] | None:
    several = isinstance(type_, list)
    return entry.rule_for(type_[0].dtype if several else type_.dtype)


def positional(rule: Callable[..., Any], asks: tuple[str, ...]) -> Callable[..., Any]:
    """Return ``rule`` with all parameters positional, also the keyword-only ones."""
    kinds = {parameter.kind for parameter in inspect.signature(rule).parameters.values()}
    if inspect.Parameter.KEYWORD_ONLY not in kinds:
        return rule
    return lambda *values: rule(**dict(zip(asks, values, strict=True)))


def _missing(kernel: str, name: str) -> Callable[[], Tensor]:
    def rule() -> Tensor:
        raise GradientNotFoundError(
            f"kernel {kernel!r} has no gradient with respect to its input {name!r}; register one "
            f"with register_gradient({kernel!r}, {name!r}, rule), or use stop_gradient"
        )

    return rule


def placement_of(operand: Any) -> Any:
    """Return the placement of an input: a list for a list, None if it is absent."""
    if isinstance(operand, list):
        return [tensor._placement for tensor in operand]
    return None if operand is None else operand._placement
