"""The tape: what each kernel call leaves behind so that gradients can flow back through it.

There is no list of calls. A result points to the ``Node`` of the call that made it, a node to
the nodes of its inputs; what nobody can reach any more is freed by reference count. A saved
*output* is kept without its node (put back when it is used), so that no cycle arises.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, Protocol

from tensorplug.dtypes import INEXACT
from tensorplug.errors import GradientNotFoundError
from tensorplug.tables import cotangent_names, type_names
from tensorplug.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.device import Placement
    from tensorplug.registry import State
    from tensorplug.spec import KernelSpec

__all__ = ["CallNode", "Leaf", "Node", "OutputNode", "Recorded", "record"]

_order: Final = itertools.count(1).__next__  # creation order is a topological order


class Node:
    """A place on the tape. ``parents`` has one entry per input; None where nothing flows."""

    __slots__ = ("__weakref__", "order", "parents")

    def __init__(self, parents: tuple[Node | None, ...]) -> None:
        self.order = _order()
        self.parents = parents


class Leaf(Node):
    """Where a differentiated function's argument enters; its parent is an outer tape's node."""

    __slots__ = ()


class OutputNode(Node):
    """One of several outputs of a call."""

    __slots__ = ("index",)

    def __init__(self, call: Node, index: int) -> None:
        super().__init__((call,))
        self.index = index


class Recorded(Protocol):
    """What the tape needs of the plan that ran."""

    spec: KernelSpec
    attributes: dict[str, Any]
    state: State
    inputs: list[Any]
    outputs: tuple[Placement, ...]
    recipes: dict[tuple[bool, ...], Recipe | None]


class Recipe:
    """For one plan and one set of inputs that need a gradient: what to save, what to call.

    ``rules``: (input name, the rule, names the rule asks for); stops are left out.
    ``inputs`` and ``outputs``: (position, name) of what is saved.
    """

    __slots__ = ("constants", "inputs", "outputs", "rules")

    def __init__(self, plan: Recorded, wanted: tuple[bool, ...]) -> None:
        spec = plan.spec
        self.rules: list[tuple[str, Any, tuple[str, ...]]] = []
        asked: set[str] = set()
        for name, want in zip(spec.input_names, wanted, strict=True):
            if not want:
                continue
            owned = plan.state.gradient(spec.name, name)
            if owned is None:
                # Only an error if a gradient really arrives here: it may be pruned.
                self.rules.append((name, _missing(spec.name, name), ()))
            elif owned.entry.rule is not None:
                self.rules.append((name, owned.entry.rule, owned.entry.asks))
                asked.update(owned.entry.asks)
        self.inputs = tuple(
            (position, name) for position, name in enumerate(spec.input_names) if name in asked
        )
        self.outputs = tuple(
            (position, name) for position, name in enumerate(spec.output_names) if name in asked
        )
        known = {
            **plan.attributes,
            **dict(zip(type_names(spec), plan.inputs, strict=True)),
            "attributes": plan.attributes,
        }
        self.constants = {name: value for name, value in known.items() if name in asked}


def _missing(kernel: str, name: str) -> Callable[[], Tensor]:
    def rule() -> Tensor:
        raise GradientNotFoundError(
            f"kernel {kernel!r} has no gradient with respect to its input {name!r}; register "
            f"one with register_gradient({kernel!r}, {name!r}, rule), or stop_gradient the input"
        )

    return rule


class CallNode(Node):
    """One kernel call: the recipe, and what its rules asked for."""

    __slots__ = ("plan", "recipe", "saved_inputs", "saved_outputs", "spans")

    def __init__(
        self,
        parents: tuple[Node | None, ...],
        plan: Recorded,
        recipe: Recipe,
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
    ) -> None:
        super().__init__(parents)
        self.plan = plan
        self.recipe = recipe
        self.spans = [_span(each) for each in inputs]
        self.saved_inputs = [_saved(inputs[position]) for position, _ in recipe.inputs]
        variadic = plan.spec.outputs[0].endswith("[]")
        self.saved_outputs = [
            [_bare(each) for each in outputs] if variadic else _bare(outputs[position])
            for position, _ in recipe.outputs
        ]

    def pull(self, dys: list[Any], wanted: set[str]) -> dict[str, Any]:
        """Return the gradients of the ``wanted`` inputs by name, where they have a rule.

        ``dys``: the incoming gradient of each output.
        """
        recipe, spec = self.recipe, self.plan.spec
        values: dict[str, Any] = dict(recipe.constants)
        names = cotangent_names(spec)
        if spec.several and len(spec.outputs) == 1:  # a variable number of outputs
            values[names[0]] = dys
        else:
            values.update(zip(names, dys, strict=True))
        for (_, name), tensor in zip(recipe.inputs, self.saved_inputs, strict=True):
            values[name] = tensor
        for (position, name), tensor in zip(recipe.outputs, self.saved_outputs, strict=True):
            values[name] = self._with_node(position, tensor)
        return {
            name: rule(**{each: values[each] for each in asks})
            for name, rule, asks in recipe.rules
            if name in wanted
        }

    def _with_node(self, position: int, saved: Any) -> Any:
        if isinstance(saved, list):
            return [self._with_node(index, each) for index, each in enumerate(saved)]
        node = OutputNode(self, position) if self.plan.spec.several else self
        return Tensor._of(saved._buffer, saved._placement, node)


def _span(given: Any) -> int:
    """Return how many parents an input has: one, or as many as its list is long."""
    return len(given) if isinstance(given, list) else 1


def _bare(tensor: Tensor) -> Tensor:
    return Tensor._of(tensor._buffer, tensor._placement)


def _saved(given: Any) -> Any:
    """Return handles of our own, so that the user may dispose theirs."""
    if given is None:
        return None
    if isinstance(given, list):
        return [_saved(each) for each in given]
    return Tensor._of(given._buffer, given._placement, given._node)


def record(plan: Recorded, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
    """Tie ``outputs`` to the tape if any of ``inputs`` is on it and is not a stop."""
    parents: list[Node | None] = []
    wanted: list[bool] = []
    for given in inputs:
        if isinstance(given, list):
            nodes = [each._node for each in given]
            parents.extend(nodes)
            wanted.append(any(node is not None for node in nodes))
        else:
            node = None if given is None else given._node
            parents.append(node)
            wanted.append(node is not None)
    mask = tuple(wanted)
    try:
        recipe = plan.recipes[mask]
    except KeyError:
        recipe = plan.recipes[mask] = _recipe(plan, mask)
    if recipe is None:
        return
    node = CallNode(tuple(parents), plan, recipe, inputs, outputs)
    if not plan.spec.several:
        if outputs[0].dtype in INEXACT:  # integers and booleans have no derivative
            outputs[0]._node = node
        return
    for index, output in enumerate(outputs):
        if output.dtype in INEXACT:
            output._node = OutputNode(node, index)


def _recipe(plan: Recorded, mask: tuple[bool, ...]) -> Recipe | None:
    """Return the recipe, or None when every input on the tape is a stop."""
    if not any(mask):
        return None
    recipe = Recipe(plan, mask)
    return recipe if recipe.rules else None
