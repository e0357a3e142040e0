"""The tape: a graph of nodes, one per recorded kernel call, for backpropagation.

There is no list of calls. A result refers to the ``Node`` of its call, and a node to the nodes of
its inputs; reference counting frees unreachable nodes. A saved *output* is stored without its
node, which would create a cycle, and gets it back when a rule uses it.
"""

from __future__ import annotations

import inspect
import itertools
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

from tensorplug.contract.dtypes import INEXACT
from tensorplug.contract.entries import WANTED, cotangent_names, type_names
from tensorplug.dispatch.context import current_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import GradientNotFoundError
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from tensorplug.contract.entries import GradientEntry, JointRule
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.device import Placement
    from tensorplug.engine.registry import State

__all__ = [
    "CallNode",
    "Leaf",
    "Node",
    "OutputNode",
    "Recorded",
    "Step",
    "find_boundary",
    "mark",
    "record",
    "restore",
    "save",
    "with_node",
]

_order: Final = itertools.count(1).__next__  # creation order is a topological order
mark: Final = _order  # nodes recorded later have a higher order

Saved = Any  # (buffer, placement, node) of an input (no node of an output), lists, or None


class Node:
    """A node of the tape. ``parents`` has one entry per input, None if it is a constant."""

    __slots__ = ("__weakref__", "order", "parents")

    def __init__(self, parents: tuple[Node | None, ...]) -> None:
        self.order = _order()
        self.parents = parents

    @property
    def count(self) -> int:
        """The number of outputs."""
        return 1


class Leaf(Node):
    """The start of a tape; its parent is a node of an outer tape, if any."""

    __slots__ = ()


class OutputNode(Node):
    """One of multiple outputs of a call."""

    __slots__ = ("index",)

    def __init__(self, call: Node, index: int) -> None:
        super().__init__((call,))
        self.index = index


class Recorded(Protocol):
    """The members of a plan that the tape uses."""

    spec: KernelSpec
    attributes: dict[str, Any]
    state: State
    inputs: list[Any]
    outputs: tuple[Placement, ...]
    static_shapes: bool
    variant: bool
    recipes: dict[tuple[bool, ...], Recipe | None]


class Step:
    """The gradient rule of one input.

    ``first`` is the position of the input's node among the parents, ``count`` the number of nodes
    of a variadic input, else None. ``sources`` are the sources of the rule's arguments:
    ("dy", output), ("dys", 0) for all outputs, ("input", position among the saved ones),
    ("output", likewise) or ("constant", value). ``shared``: for a rule of several inputs, the
    steps of all of them; its first argument is the set of the names that are wanted.
    """

    __slots__ = ("count", "first", "name", "rule", "shared", "sources", "type")

    def __init__(self, name: str, first: int, type_: Any, rule: Callable[..., Any]) -> None:
        self.name = name
        self.first = first
        self.type = type_
        self.count = len(type_) if isinstance(type_, list) else None
        self.rule = rule
        self.sources: list[tuple[str, Any]] = []
        self.shared: tuple[Step, ...] = ()


class Recipe:
    """The values to save and the rules, for one plan and one set of inputs to differentiate.

    ``plain``: neither inputs nor outputs are lists, and no input is absent. ``single``: there is
    one output, which is inexact.
    """

    __slots__ = ("inputs", "outputs", "plain", "single", "steps")

    def __init__(self, plan: Recorded, wanted: tuple[bool, ...]) -> None:
        spec = plan.spec
        found = [
            (name, type_, plan.state.gradient(spec.name, name) if want else None, want)
            for name, type_, want in zip(spec.input_names, plan.inputs, wanted, strict=True)
        ]
        asked = {ask for _, _, owned, _ in found if owned for ask in owned.entry.asks}
        self.inputs = tuple(at for at, name in enumerate(spec.input_names) if name in asked)
        self.outputs = tuple(at for at, name in enumerate(spec.output_names) if name in asked)
        variadic = any(isinstance(type_, list) or type_ is None for type_ in plan.inputs)
        self.plain = not variadic and not spec.outputs[-1].endswith("[]")
        # Integers and booleans have no derivative.
        self.single = not spec.multiple_outputs and plan.outputs[0].type.dtype in INEXACT
        self.steps: list[Step] = []
        joint: dict[JointRule, list[Step]] = {}
        first = 0
        for name, type_, owned, want in found:
            if want and owned is None:
                # An error only if backpropagation reaches this input.
                self.steps.append(Step(name, first, type_, _missing(spec.name, name)))
            elif owned is not None and (rule := _rule(owned.entry, type_)) is not None:
                step = Step(name, first, type_, _positional(rule, owned.entry.asks))
                step.sources = [self._source(plan, ask) for ask in owned.entry.asks]
                self.steps.append(step)
                if owned.entry.joint is not None:
                    joint.setdefault(owned.entry.joint, []).append(step)
            first += len(type_) if isinstance(type_, list) else 1
        for shared, steps in joint.items():
            if len(steps) > 1:  # one alone has its own view of the rule
                self._share(shared, steps)

    def _share(self, rule: JointRule, steps: list[Step]) -> None:
        """Put one step for all of ``steps`` in the place of the first one."""
        name = ", ".join(step.name for step in steps)
        asks = [ask for ask in rule.asks if ask != WANTED]

        def call(wanted: frozenset[str], *values: Any) -> Any:
            given = dict(zip(asks, values, strict=True))
            return rule.call(name, wanted, {WANTED: wanted, **given})

        one = Step(name, steps[0].first, None, call)
        one.sources, one.shared = steps[0].sources, tuple(steps)
        self.steps[self.steps.index(steps[0])] = one
        self.steps = [step for step in self.steps if step not in steps]

    def _source(self, plan: Recorded, name: str) -> tuple[str, Any]:
        spec = plan.spec
        cotangents, types = cotangent_names(spec), type_names(spec)
        if name in cotangents:
            variadic = spec.outputs[0].endswith("[]")
            return ("dys", 0) if variadic else ("dy", cotangents.index(name))
        if name in spec.input_names:
            return ("input", self.inputs.index(spec.input_names.index(name)))
        if name in spec.output_names:
            return ("output", self.outputs.index(spec.output_names.index(name)))
        if name in types:
            return ("constant", plan.inputs[types.index(name)])
        return ("constant", plan.attributes if name == "attributes" else plan.attributes[name])


def _rule(entry: GradientEntry, type_: Any) -> Callable[..., Any] | None:
    several = isinstance(type_, list)
    return entry.rule_for(type_[0].dtype if several else type_.dtype)


def _positional(rule: Callable[..., Any], asks: tuple[str, ...]) -> Callable[..., Any]:
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


class CallNode(Node):
    """One kernel call: the recipe, and the saved inputs and outputs."""

    __slots__ = ("plan", "recipe", "saved_inputs", "saved_outputs")

    def __init__(
        self,
        parents: tuple[Node | None, ...],
        plan: Recorded,
        recipe: Recipe,
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
    ) -> None:
        self.order = _order()
        self.parents = parents
        self.plan = plan
        self.recipe = recipe
        # Not the tensors themselves: the user may dispose of them.
        self.saved_inputs: list[Saved] = []
        self.saved_outputs: list[Saved] = []
        if not recipe.plain:
            self._save_lists(inputs, outputs)
            return
        for at in recipe.inputs:  # loops, which are faster than list comprehensions here
            operand = inputs[at]
            self.saved_inputs.append((operand._buffer, operand._placement, operand._node))
        for at in recipe.outputs:
            output = outputs[at]
            self.saved_outputs.append((output._buffer, output._placement))

    def _save_lists(self, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
        self.saved_inputs = [save(inputs[at]) for at in self.recipe.inputs]
        self.saved_outputs = [
            [_without_node(output) for output in outputs]
            if self.plan.spec.outputs[at].endswith("[]")
            else _without_node(outputs[at])
            for at in self.recipe.outputs
        ]

    def replace_saved(
        self, other: Callable[[Any, Placement], tuple[Any, Placement] | None]
    ) -> None:
        """Replace saved values by ``other(buffer, placement)``, unless that is None."""

        def replace(saved: Saved) -> Saved:
            if isinstance(saved, list):
                return [replace(member) for member in saved]
            found = None if saved is None else other(*saved[:2])
            return saved if found is None else (*found, *saved[2:])

        self.saved_inputs = [replace(saved) for saved in self.saved_inputs]
        self.saved_outputs = [replace(saved) for saved in self.saved_outputs]

    @property
    def count(self) -> int:
        """The number of outputs of the kernel."""
        return len(self.plan.outputs)

    def vjp(self, dys: list[Any], path: Container[Node]) -> list[tuple[Step, Any]]:
        """Return the results of the rules for the inputs on ``path``.

        ``dys``: the cotangent of each output.
        """
        result: list[tuple[Step, Any]] = []
        parents = self.parents
        for step in self.recipe.steps:
            shared = [one for one in step.shared if self._is_wanted(one, path)]
            if shared:
                result += self._apply_shared(step, shared, dys)
            elif not step.shared and (
                parents[step.first] in path if step.count is None else self._is_wanted(step, path)
            ):
                result.append((step, self._apply(step, dys)))
        return result

    def _apply(self, step: Step, dys: list[Any], *first: Any) -> Any:
        arguments = [self._value(kind, what, dys) for kind, what in step.sources]
        try:
            return step.rule(*first, *arguments)
        except BaseException as error:
            name = self.plan.spec.name
            error.add_note(f"in the gradient of {name!r} with respect to {step.name!r}")
            raise

    def _apply_shared(
        self, step: Step, wanted: Sequence[Step], dys: list[Any]
    ) -> list[tuple[Step, Any]]:
        """Return the results of the one rule of several inputs for those that are wanted."""
        gradients = self._apply(step, dys, frozenset(one.name for one in wanted))
        return [(one, gradients[one.name]) for one in wanted]

    def _is_wanted(self, step: Step, path: Container[Node]) -> bool:
        """Return whether the input of ``step`` is on ``path``."""
        if step.count is None:
            return self.parents[step.first] in path
        span = self.parents[step.first : step.first + step.count]
        return any(parent in path for parent in span)

    def _value(self, kind: str, what: Any, dys: list[Any]) -> Any:
        if kind == "dy":
            return dys[what]
        if kind == "input":
            return restore(self.saved_inputs[what])
        if kind == "output":
            return self._output(self.recipe.outputs[what], self.saved_outputs[what])
        return dys if kind == "dys" else what

    def _output(self, position: int, saved: Any) -> Any:
        if isinstance(saved, list):
            return [self._output(index, member) for index, member in enumerate(saved)]
        node = OutputNode(self, position) if self.plan.spec.multiple_outputs else self
        buffer, placement = saved
        return Tensor._of(buffer, placement, node if placement.type.dtype in INEXACT else None)


def _without_node(output: Tensor) -> Saved:
    """Return an output without its node, which refers to the call that saves the output."""
    return (output._buffer, output._placement)


def save(operand: Any) -> Saved:
    """Return the data of a tensor, or of a list of tensors, for ``restore``."""
    if isinstance(operand, Tensor):
        return (operand._buffer, operand._placement, operand._node)
    return [save(tensor) for tensor in operand] if isinstance(operand, list) else None


def restore(saved: Saved) -> Any:
    """Return a new tensor, or a list of them, with the data of ``save``."""
    if isinstance(saved, tuple):
        return Tensor._of(*saved)
    return [restore(member) for member in saved] if isinstance(saved, list) else None


def with_node(tensor: Tensor, node: Node | None) -> Tensor:
    """Return another tensor with the same data and ``node``, in the current scope."""
    other = alias(tensor)
    other._node = node
    scope = current_context().scope
    if scope is not None:
        scope.adopt(other)
    return other


def find_boundary(starts: Iterable[Node], since: int) -> list[Node]:
    """Return the nodes before a mark on which the nodes recorded since then depend.

    These are the nearest ancestors of ``starts`` with an order below ``since``, oldest first.
    """
    found: dict[Node, None] = {}
    seen = set(starts)
    stack = list(seen)
    while stack:
        node = stack.pop()
        if node.order < since:
            found[node] = None
            continue
        for parent in node.parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return sorted(found, key=attrgetter("order"))


def record(plan: Recorded, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
    """Record a call: give ``outputs`` a node if an input is on the tape and has a gradient."""
    nodes: tuple[Node | None, ...]
    try:
        if len(inputs) == 2:
            first, second = inputs
            nodes = first._node, second._node
            mask: tuple[bool, ...] = nodes[0] is not None, nodes[1] is not None
        else:
            nodes = tuple([operand._node for operand in inputs])
            mask = tuple([node is not None for node in nodes])
    except AttributeError:  # a list, or an absent input
        nodes, mask = _nodes_of(inputs)
    try:
        recipe = plan.recipes[mask]
    except KeyError:
        recipe = plan.recipes[mask] = _recipe(plan, mask)
    if recipe is None:
        return
    call = CallNode(nodes, plan, recipe, inputs, outputs)
    if recipe.single:
        outputs[0]._node = call
    elif plan.spec.multiple_outputs:
        for index, output in enumerate(outputs):
            if output.dtype in INEXACT:
                output._node = OutputNode(call, index)


def _nodes_of(inputs: Sequence[Any]) -> tuple[tuple[Node | None, ...], tuple[bool, ...]]:
    """Return the nodes of all tensors, and for each input whether one of them has a node."""
    groups: list[list[Node | None]] = [
        [tensor._node for tensor in operand]
        if isinstance(operand, list)
        else [None if operand is None else operand._node]
        for operand in inputs
    ]
    mask = tuple(any(node is not None for node in group) for group in groups)
    return tuple(node for group in groups for node in group), mask


def _recipe(plan: Recorded, mask: tuple[bool, ...]) -> Recipe | None:
    """Return the recipe; None if the rules stop the gradient of every input on the tape."""
    if not any(mask):
        return None
    recipe = Recipe(plan, mask)
    return recipe if recipe.steps else None
