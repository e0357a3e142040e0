"""Trees of tensors: nested dicts, lists, tuples, named tuples, dataclasses and registered classes.

Everything else is a leaf; None is an empty tree. ``flatten`` returns the leaves in a fixed order
(dicts by insertion) and a function that builds the same tree with other leaves. The children of
a dataclass are the fields of its constructor, except static ones (``static_field``), which do not
change. ``__post_init__`` computes the other fields again.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.contract.arguments import quoted
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError
from tensorplug.tensors.tree_nodes import level, step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "broadcast",
    "fixed",
    "flatten",
    "leaves",
    "level",
    "matched",
    "opened",
    "paths",
    "tree_map",
    "with_children",
]


def flatten(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Return the leaves of ``tree`` and the function that replaces them.

    Raises:
        ArgumentError: a container contains itself, or the tree is too deep for recursion.

    """
    if tree.__class__ is Tensor:
        return [tree], rebuild_leaf
    leaves: list[Any] = []
    try:
        rebuild = _walk(tree, leaves, set())
    except RecursionError:
        raise ArgumentError(f"a {type(tree).__name__} is nested too deeply") from None
    return leaves, rebuild_leaf if rebuild is next else lambda others: rebuild(iter(others))


def rebuild_leaf(others: list[Any]) -> Any:
    """Return the only leaf of a tree that is a leaf itself."""
    (leaf,) = others
    return leaf


def leaves(tree: Any) -> list[Any]:
    """Return all leaves in order, including those in static data.

    Each container is visited once, so that it may contain itself.
    """
    collected: list[Any] = []
    visited: dict[int, Any] = {}  # holds the containers, so that no id is reused
    stack = [tree]
    while stack:
        node = stack.pop()
        children = _all_children(node)
        if children is None:
            collected.append(node)
        elif id(node) not in visited:
            visited[id(node)] = node
            stack.extend(reversed(list(children)))
    return collected


def paths(tree: Any) -> list[str]:
    """Return the path of each leaf of ``flatten`` as Python code: ``['w'][0].bias``."""
    opened = level(tree)
    if opened is None:
        return [""]
    return [
        step(tree, key) + rest
        for key, child in zip(opened[0], opened[1], strict=True)
        for rest in paths(child)
    ]


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply ``function`` to matching leaves of trees of the same structure; return a tree.

    Dicts match by key, in any order.

    ``others``: further trees, whose leaves are further arguments.

    Raises:
        ArgumentError: ``function`` is not a function, the trees differ in structure, or one
            contains itself.

    Examples:
        >>> params = {"w": tp.asarray([1.0, 2.0]), "b": [tp.asarray(3.0)]}
        >>> tp.tree_map(lambda x: x.tolist(), params)
        {'w': [1.0, 2.0], 'b': [3.0]}
        >>> tp.tree_map(lambda x, y: float(tp.sum(x * y)), params, params)
        {'w': 5.0, 'b': [9.0]}

    """
    if not callable(function):
        raise ArgumentError(f"tree_map: function must be a function, got {quoted(function)}")
    first, rebuild = flatten(tree)

    def message(where: str, mine: str, theirs: str) -> str:
        return f"tree_map: tree{where} is {mine} in the first tree, but {theirs} in another"

    rest = [matched(tree, other, message) for other in others]
    return rebuild([function(*leaves) for leaves in zip(first, *rest, strict=True)])


def matched(
    tree: Any, other: Any, message: Callable[[str, str, str], str], *, whole: bool = False
) -> list[Any]:
    """Return the leaves of ``other`` in the order of those of ``tree``.

    ``whole``: anything may match a leaf of ``tree``, such as a list of numbers.

    Raises:
        ArgumentError: the structures differ. ``message`` gets the path and a description of
            both subtrees.

    """
    leaves: list[Any] = []
    _match(_Matching(message, whole, leaves), tree, other, "")
    return leaves


def broadcast(prefix: Any, tree: Any, is_leaf: Callable[[Any], bool]) -> list[Any]:
    """Return a value for each leaf of ``tree``: that of ``prefix``, which is ``tree`` cut short.

    ``is_leaf``: whether a part of ``prefix`` is a value, which holds for all leaves below.

    Raises:
        ArgumentError: ``prefix`` has another structure; the message names the path.

    """
    lines: list[Any] = []
    _broadcast(prefix, tree, is_leaf, lines, "")
    return lines


def opened(tree: Any) -> dict[Any, Any] | None:
    """Return the children of ``tree`` by key, position or field; None for a leaf."""
    found = level(tree)
    return None if found is None else dict(zip(found[0], found[1], strict=True))


def with_children(tree: Any, children: list[Any]) -> Any:
    """Return a tree like ``tree`` with other children, in the order of ``opened``."""
    found = level(tree)
    assert found is not None, "a leaf has no children"
    return found[2](children)


def fixed(tree: Any) -> list[Any]:
    """Return the static data of a dataclass or of a registered class; [] for any other tree."""
    found = level(tree)
    return [] if found is None else list(found[3])


class _Matching(NamedTuple):
    """The settings of ``matched``, and the leaves found so far."""

    message: Callable[[str, str, str], str]
    whole: bool
    found: list[Any]


def _match(matching: _Matching, tree: Any, other: Any, where: str) -> None:
    mine, theirs = opened(tree), opened(other)
    if mine is None and (theirs is None or matching.whole):
        matching.found.append(other)
        return
    if (
        mine is None
        or theirs is None
        or type(tree) is not type(other)
        or mine.keys() != theirs.keys()
    ):
        raise ArgumentError(matching.message(where, _outline(tree, mine), _outline(other, theirs)))
    for key, child in mine.items():
        _match(matching, child, theirs[key], where + step(tree, key))


def _outline(tree: Any, parts: dict[Any, Any] | None) -> str:
    name = type(tree).__name__
    return name if parts is None or tree is None else f"{name} of {list(parts)}"


def _broadcast(
    prefix: Any, tree: Any, is_leaf: Callable[[Any], bool], found: list[Any], where: str
) -> None:
    if is_leaf(prefix):
        found.extend([prefix] * len(flatten(tree)[0]))
        return
    mine, whole = opened(prefix), opened(tree)
    if (
        mine is None
        or whole is None
        or type(prefix) is not type(tree)
        or mine.keys() != whole.keys()
    ):
        raise ArgumentError(f"{where}: {_outline(prefix, mine)} for {_outline(tree, whole)}")
    for key, child in whole.items():
        _broadcast(mine[key], child, is_leaf, found, where + step(tree, key))


def _all_children(tree: Any) -> Iterable[Any] | None:
    """Return the children of ``tree``, with all fields of a dataclass; None for a leaf."""
    if dataclasses.is_dataclass(tree) and not isinstance(tree, dict | list | tuple | type):
        names = [field.name for field in dataclasses.fields(tree)]
        return [getattr(tree, name) for name in names if hasattr(tree, name)]
    found = level(tree)
    return None if found is None else [*found[1], *found[3]]


def _walk(tree: Any, found: list[Any], above: set[int]) -> Callable[[Iterator[Any]], Any]:
    opened = level(tree)
    if opened is None:
        found.append(tree)
        return next
    if id(tree) in above:
        raise ArgumentError(
            f"a {type(tree).__name__} contains itself; a tree of tensors must be finite"
        )
    above.add(id(tree))
    parts = [_walk(child, found, above) for child in opened[1]]
    above.discard(id(tree))
    build = opened[2]
    return lambda values: build([part(values) for part in parts])
