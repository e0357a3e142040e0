"""The tape: a graph of nodes, one per recorded kernel call, for backpropagation.

There is no list of calls. A result refers to the ``Node`` of its call, and a node to the nodes of
its inputs; reference counting frees unreachable nodes. A node saves buffers without their types,
which its recipe knows, and without their nodes: those of inputs are its parents, and that of an
output would create a cycle.
"""

from __future__ import annotations

import itertools
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from tensorplug.autodiff.recipes import Recipe
from tensorplug.contract.dtypes import INEXACT
from tensorplug.dispatch.context import current_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from tensorplug.autodiff.recipes import Recorded, Step
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.device import Placement


_order: Final = itertools.count(1).__next__  # creation order is a topological order
mark: Final = _order  # nodes recorded later have a higher order

_new: Final = object.__new__


class Node:
    """A node of the tape. ``parents`` has one entry per input, None if it is a constant."""

    __slots__ = ("__weakref__", "order", "parents")

    def __init__(self, parents: tuple[Node | None, ...]) -> None:
        self.order: int = _order()
        self.parents: tuple[Node | None, ...] = parents

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
        self.index: int = index


class CallNode(Node):
    """One kernel call: its recipe, and the buffers of the inputs and outputs that this names.

    ``saved`` has a list of buffers for a list of tensors, and None for an absent input.
    """

    __slots__ = ("plan", "recipe", "saved")

    plan: Recorded
    recipe: Recipe
    # Buffers, since the user may dispose of tensors. Set last: without it a node is unfinished.
    saved: list[Any]

    @property
    def placements(self) -> list[Any]:
        """The placements of ``saved``, in the same form."""
        recipe = self.recipe
        if recipe.moved is not None:
            return recipe.placements + recipe.moved
        variadic = self.plan.spec.outputs
        outputs = self.plan.outputs
        return recipe.placements + [
            list(outputs) if variadic[at].endswith("[]") else outputs[at] for at in recipe.outputs
        ]

    def values(self) -> Iterator[tuple[Any, Placement]]:
        """Yield the saved buffers with their placements, those of lists one by one.

        Yield nothing if another thread is still making the node.
        """
        if not hasattr(self, "saved"):
            return
        for buffer, placement in zip(self.saved, self.placements, strict=True):
            if isinstance(placement, list):
                yield from zip(buffer, placement, strict=True)
            elif placement is not None:
                yield buffer, placement

    def replace_saved(
        self, other: Callable[[Any, Placement], tuple[Any, Placement] | None]
    ) -> None:
        """Replace saved values by ``other(buffer, placement)``, unless that is None."""
        if not hasattr(self, "saved"):
            return
        old = self.placements
        pairs = [_replace(*pair, other) for pair in zip(self.saved, old, strict=True)]
        placements = [pair[1] for pair in pairs]
        if placements != old:
            self.recipe = self.recipe.at(placements)
            self.saved = [pair[0] for pair in pairs]

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
        self, step: Step, steps: Sequence[Step], dys: list[Any]
    ) -> list[tuple[Step, Any]]:
        """Return the results of the one rule of several inputs for those that are wanted."""
        gradients = self._apply(step, dys, frozenset(one.name for one in steps))
        return [(one, gradients[one.name]) for one in steps]

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
            return self._input(what)
        if kind == "output":
            return self._output(what)
        return dys if kind == "dys" else what

    def _input(self, at: int) -> Any:
        """Return a saved input: a new tensor, a list of them, or None."""
        buffer, placement = self.saved[at], self.recipe.placements[at]
        first = self.recipe.firsts[at]
        if isinstance(placement, list):
            nodes = self.parents[first : first + len(placement)]
            return [Tensor._of(*of) for of in zip(buffer, placement, nodes, strict=True)]
        return None if placement is None else Tensor._of(buffer, placement, self.parents[first])

    def _output(self, at: int) -> Any:
        """Return a saved output: a new tensor, or a list of them."""
        buffer, placement = self.saved[at], self.placements[at]
        if isinstance(placement, list):
            pairs = zip(buffer, placement, strict=True)
            return [self._restore(index, *pair) for index, pair in enumerate(pairs)]
        position = self.recipe.outputs[at - len(self.recipe.inputs)]
        return self._restore(position, buffer, placement)

    def _restore(self, position: int, buffer: Any, placement: Placement) -> Tensor:
        node: Node | None = None
        if placement.type.dtype in INEXACT:
            node = OutputNode(self, position) if self.plan.spec.multiple_outputs else self
        return Tensor._of(buffer, placement, node)


def _replace(buffer: Any, placement: Any, other: Callable[..., Any]) -> tuple[Any, Any]:
    if isinstance(placement, list):
        pairs = [_replace(*pair, other) for pair in zip(buffer, placement, strict=True)]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    other_pair = None if placement is None else other(buffer, placement)
    return other_pair or (buffer, placement)


def buffer_of(operand: Any) -> Any:
    """Return the buffer of an input or output: a list for a list, None if it is absent."""
    if isinstance(operand, list):
        return [tensor._buffer for tensor in operand]
    return None if operand is None else operand._buffer


def with_node(tensor: Tensor, node: Node | None) -> Tensor:
    """Return another tensor with the same data and ``node``, in the current scope."""
    source = tensor if tensor.__class__ is Tensor else alias(tensor)
    other = Tensor._of(source._buffer, source._placement, node)
    scope = current_context().scope
    if scope is not None:
        scope.adopt(other)
    return other


def find_boundary(starts: Iterable[Node], since: int) -> list[Node]:
    """Return the nodes before a mark on which the nodes recorded since then depend.

    These are the nearest ancestors of ``starts`` with an order below ``since``, oldest first.
    """
    boundary: dict[Node, None] = {}
    seen = set(starts)
    stack = list(seen)
    while stack:
        node = stack.pop()
        if node.order < since:
            boundary[node] = None
            continue
        for parent in node.parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return sorted(boundary, key=attrgetter("order"))


def record(plan: Recorded, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
    """Record a call: give ``outputs`` a node if an input is on the tape and has a gradient."""
    if not plan.taped:  # the tape sees the kernels inside
        return
    nodes: tuple[Node | None, ...]
    try:
        if len(inputs) == 2:
            a, b = inputs
            nodes = a._node, b._node
            recipe = plan.recipes[nodes[0] is not None, nodes[1] is not None]
        elif len(inputs) == 1:
            nodes = (inputs[0]._node,)
            recipe = plan.recipes[(nodes[0] is not None,)]
        else:
            nodes, recipe = _look_up(plan, inputs)
    except (AttributeError, KeyError):  # a list, an absent input, or the first such call
        nodes, recipe = _look_up(plan, inputs)
    if recipe is None:
        return
    call: CallNode = _new(CallNode)
    call.order = _order()
    call.parents = nodes
    call.plan = plan
    call.recipe = recipe
    saved = []
    if recipe.plain:
        for at in recipe.inputs:  # loops, which are faster than list comprehensions here
            saved.append(inputs[at]._buffer)  # noqa: PERF401
        for at in recipe.outputs:
            saved.append(outputs[at]._buffer)  # noqa: PERF401
    else:
        saved = _save_lists(plan.spec, recipe, inputs, outputs)
    call.saved = saved
    if recipe.single:
        outputs[0]._node = call
    else:
        _give_nodes(call, outputs)


def _give_nodes(call: CallNode, outputs: Sequence[Tensor]) -> None:
    """Give those of multiple outputs a node that have a derivative."""
    for index, output in enumerate(outputs if call.plan.spec.multiple_outputs else ()):
        if output.dtype in INEXACT:
            output._node = OutputNode(call, index)


def _save_lists(
    spec: KernelSpec, recipe: Recipe, inputs: Sequence[Any], outputs: Sequence[Tensor]
) -> list[Any]:
    """Return the saved buffers of a call with lists or absent inputs."""
    saved = [buffer_of(inputs[at]) for at in recipe.inputs]
    return saved + [
        buffer_of(list(outputs) if spec.outputs[at].endswith("[]") else outputs[at])
        for at in recipe.outputs
    ]


def _look_up(
    plan: Recorded, inputs: Sequence[Any]
) -> tuple[tuple[Node | None, ...], Recipe | None]:
    """Return the nodes of all tensors, and the recipe for the inputs one of which has a node."""
    nodes: list[Node | None] = []
    needed: list[bool] = []
    for operand in inputs:
        if isinstance(operand, list):
            own = [tensor._node for tensor in operand]
            nodes += own
            needed.append(any(node is not None for node in own))
        else:
            node = None if operand is None else operand._node
            nodes.append(node)
            needed.append(node is not None)
    mask = tuple(needed)
    try:
        return tuple(nodes), plan.recipes[mask]
    except KeyError:
        recipe = plan.recipes[mask] = _recipe(plan, mask, inputs)
        return tuple(nodes), recipe


def _recipe(plan: Recorded, mask: tuple[bool, ...], inputs: Sequence[Any]) -> Recipe | None:
    """Return the recipe; None if the rules stop the gradient of every input on the tape."""
    if not any(mask):
        return None
    recipe = Recipe(plan, mask, inputs)
    return recipe if recipe.steps else None
