"""What tapes look like: the keys by which programs of backward passes are found, and patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.autodiff.backpropagation import FunctionNode
from tensorplug.autodiff.tape import CallNode, Leaf, OutputNode

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tensorplug.autodiff.tape import Node
    from tensorplug.contract.backend import Buffer
    from tensorplug.dispatch.device import Placement
    from tensorplug.dispatch.tensor import Tensor

    Starts = Sequence[tuple[Node, Tensor]]


class Tape(NamedTuple):
    """The part of a tape between the results and the leaves.

    ``key``: what its program depends on. ``number``: its nodes with their positions, each before
    its parents. ``calls``: those of kernels and compiled functions, which have saved values.
    """

    key: Hashable
    number: dict[Node, int]
    calls: list[CallNode | FunctionNode]

    @property
    def saved(self) -> list[tuple[Buffer, Placement]]:
        """The saved buffers with their placements, in the order of the calls."""
        return [pair for call in self.calls for pair in call.values()]


def describe(starts: Starts, leaves: Sequence[Node]) -> Tape | None:
    """Return what a tape looks like; None if it cannot occur again.

    That is because of the call of a Python function, unless it is compiled, or of a plan that
    serves one call.
    """
    number = {node: at for at, node in enumerate(_find_nodes(starts, leaves))}
    targets = set(leaves)
    calls: list[CallNode | FunctionNode] = []
    parts: list[Hashable] = []
    find = number.get
    for node in number:
        token = None if node in targets else _token(node)
        if token is None:
            if node not in targets:
                return None
            parts.append(None)
            continue
        parts.append((token, *[None if one is None else find(one) for one in node.parents]))
        if isinstance(node, CallNode | FunctionNode):
            calls.append(node)
    ends = tuple([find(leaf) for leaf in leaves])
    begins = tuple([(find(node), dy._placement) for node, dy in starts])
    return Tape((begins, ends, *parts), number, calls)


def _token(node: Node) -> Hashable | None:
    """Return what a node does; None if another tape cannot have one like it."""
    if isinstance(node, CallNode):
        plan = node.plan  # of one call, if it is a variant or depends on data
        return None if plan.variant or not plan.static_shapes else node.recipe
    if isinstance(node, OutputNode):
        return node.index
    if isinstance(node, FunctionNode):
        return node.repeats
    return Leaf if isinstance(node, Leaf) else None


def _find_nodes(starts: Starts, leaves: Sequence[Node]) -> list[Node]:
    """Return the starts and their ancestors up to the leaves, in an order of their structure."""
    oldest = min(leaf.order for leaf in leaves)
    targets = set(leaves)  # their parents belong to an outer tape
    ancestors: dict[Node, None] = {}
    stack = [node for node, _ in starts]
    while stack:
        node = stack.pop()
        if node in ancestors:
            continue
        ancestors[node] = None
        if node not in targets:
            stack += [x for x in node.parents if x is not None and x.order >= oldest]
    return list(ancestors)


def outline(starts: Starts, leaves: Sequence[Node]) -> Hashable:
    """Return what is seen of a tape at a glance: how it ends, and how many nodes it may have."""
    last = starts[0][0]
    return (getattr(last, "recipe", None), last.order - leaves[0].order, len(starts), len(leaves))


class Pattern:
    """A tape to compare others with, which takes less time than to describe them.

    Each node is compared with the one in its place: what it does, and which of its parents are
    nodes seen before.
    """

    __slots__ = ("_begins", "_count", "_ends", "_inner")

    def __init__(self, tape: Tape, starts: Starts, leaves: Sequence[Node]) -> None:
        number = tape.number
        targets = set(leaves)
        self._count = len(number)
        self._begins = [(number[node], dy._placement) for node, dy in starts]
        self._ends = [number.get(leaf) for leaf in leaves]
        self._inner = [
            (
                at,
                _token(node),
                isinstance(node, CallNode) and node.recipe.plain,
                [
                    (position, number[one])
                    for position, one in enumerate(node.parents)
                    if one is not None
                ],
            )
            for node, at in number.items()
            if node not in targets
        ]

    @classmethod
    def of(cls, tape: Tape, starts: Starts, leaves: Sequence[Node]) -> Pattern | None:
        """Return the pattern of a tape; None if nodes in the same places would not suffice.

        They suffice if each path ends at one of the leaves. No leaf that is not reached may be in
        the place of a call. Whether an input has a node must be known by the recipe, which is not
        so for members of lists.
        """
        number = tape.number
        if not all(leaf in number or isinstance(leaf, Leaf) for leaf in leaves):
            return None
        for node in number.keys() - set(leaves):
            above = [parent for parent in node.parents if parent is not None]
            plain = isinstance(node, CallNode) and node.recipe.plain
            if not plain and len(above) < len(node.parents):
                return None
            if isinstance(node, Leaf) or not all(parent in number for parent in above):
                return None
        return cls(tape, starts, leaves)

    def match(self, starts: Starts, leaves: Sequence[Node]) -> list[Buffer] | None:
        """Return the buffers of ``Tape.saved``; None if the tape does not match."""
        nodes = self._place_ends(starts, leaves)
        if nodes is None:
            return None
        buffers: list[Buffer] = []
        for at, token, plain, parents in self._inner:
            node = nodes[at]
            if node.__class__ is CallNode:
                if node.recipe is not token:
                    return None
                buffers += node.saved if plain else [pair[0] for pair in node.values()]
            elif token != (
                node.index if node.__class__ is OutputNode else getattr(node, "repeats", None)
            ):
                return None
            elif node.__class__ is not OutputNode:
                buffers += [pair[0] for pair in node.values()]
            above = node.parents
            for position, number in parents:
                known = nodes[number]
                if known is None:
                    nodes[number] = above[position]
                elif known is not above[position]:
                    return None
        # Two of the nodes may be one.
        return buffers if len(set(nodes)) == self._count else None

    def _place_ends(self, starts: Starts, leaves: Sequence[Node]) -> list[Any] | None:
        """Return a list of nodes with the starts and leaves in their places."""
        nodes: list[Any] = [None] * self._count
        for (at, placement), (node, dy) in zip(self._begins, starts, strict=True):
            if dy._placement is not placement or (nodes[at] or node) is not node:
                return None
            nodes[at] = node
        for number, leaf in zip(self._ends, leaves, strict=True):
            if number is None:
                if not isinstance(leaf, Leaf):
                    return None
            elif (nodes[number] or leaf) is not leaf:
                return None
            else:
                nodes[number] = leaf
        return nodes
