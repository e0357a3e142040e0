"""Trees of tensors: nested dicts, lists, tuples, named tuples and dataclasses.

Everything else is a leaf; None is an empty tree. ``flatten`` returns the leaves in a fixed order
(dicts by insertion) and a function that builds the same tree with other leaves. The children of
a dataclass are the fields of its constructor, except those with ``metadata={"static": True}``,
which do not change. ``__post_init__`` computes the other fields again.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.contract.arguments import quoted
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "fixed",
    "flatten",
    "leaves",
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
    if tree.__class__ is Tensor or _open(tree) is None:
        return [tree], rebuild_leaf
    found: list[Any] = []
    try:
        rebuild = _walk(tree, found, set())
    except RecursionError:
        raise ArgumentError(f"a {type(tree).__name__} is nested too deeply") from None
    return found, lambda others: rebuild(iter(others))


def rebuild_leaf(others: list[Any]) -> Any:
    """Return the only leaf of a tree that is a leaf itself."""
    (leaf,) = others
    return leaf


def leaves(tree: Any) -> list[Any]:
    """Return all leaves in order, including those in static fields of dataclasses.

    Each container is visited once, so that it may contain itself.
    """
    found: list[Any] = []
    visited: dict[int, Any] = {}  # holds the containers, so that no id is reused
    stack = [tree]
    while stack:
        node = stack.pop()
        children = _all_children(node)
        if children is None:
            found.append(node)
        elif id(node) not in visited:
            visited[id(node)] = node
            stack.extend(reversed(list(children)))
    return found


def paths(tree: Any) -> list[str]:
    """Return the path of each leaf of ``flatten`` as Python code: ``['w'][0].bias``."""
    opened = _open(tree)
    if opened is None:
        return [""]
    fields = dataclasses.is_dataclass(tree)
    return [
        (f".{key}" if fields else f"[{key!r}]") + rest
        for key, child in opened.parts.items()
        for rest in paths(child)
    ]


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply ``function`` to matching leaves of trees of the same structure; return a tree.

    Dicts match by key, in any order.

    Raises:
        ArgumentError: ``function`` is not a function, the trees differ in structure, or one
            contains itself.

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
    found: list[Any] = []
    _match(_Matching(message, whole, found), tree, other, "")
    return found


def opened(tree: Any) -> dict[Any, Any] | None:
    """Return the children of ``tree`` by key, position or field; None for a leaf."""
    return _parts(tree)


def with_children(tree: Any, children: list[Any]) -> Any:
    """Return a tree like ``tree`` with other children, in the order of ``opened``."""
    level = _open(tree)
    assert level is not None, "a leaf has no children"
    return level.build(children)


def fixed(tree: Any) -> list[Any]:
    """Return the static fields of a dataclass; [] for any other tree."""
    if not dataclasses.is_dataclass(tree) or isinstance(tree, type):
        return []
    fields = dataclasses.fields(tree)
    return [getattr(tree, field.name) for field in fields if field.metadata.get("static")]


class _Matching(NamedTuple):
    """The settings of ``matched``, and the leaves found so far."""

    message: Callable[[str, str, str], str]
    whole: bool
    found: list[Any]


def _match(matching: _Matching, tree: Any, other: Any, where: str) -> None:
    mine, theirs = _parts(tree), _parts(other)
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
        _match(matching, child, theirs[key], f"{where}[{key!r}]")


def _outline(tree: Any, parts: dict[Any, Any] | None) -> str:
    name = type(tree).__name__
    return name if parts is None or tree is None else f"{name} of {list(parts)}"


class _Opened(NamedTuple):
    """One level of a tree: the children by key, position or field, and how to rebuild it."""

    parts: dict[Any, Any]
    build: Callable[[list[Any]], Any]


def _open(tree: Any) -> _Opened | None:
    """Return the level that starts at ``tree``; None for a leaf."""
    if tree is None:
        return _Opened({}, lambda _: None)
    if isinstance(tree, dict):
        return _open_dict(tree)
    if isinstance(tree, list):
        return _Opened(dict(enumerate(tree)), list if type(tree) is list else _filler(tree))
    if isinstance(tree, tuple):
        kind: Any = type(tree)
        return _Opened(dict(enumerate(tree)), getattr(kind, "_make", kind))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return _open_dataclass(tree)
    return None


def _parts(tree: Any) -> dict[Any, Any] | None:
    opened = _open(tree)
    return None if opened is None else opened.parts


def _open_dict(tree: dict[Any, Any]) -> _Opened:
    keys = list(tree)
    if type(tree) is dict:
        return _Opened(tree, lambda values: dict(zip(keys, values, strict=True)))
    shell = copy.copy(tree)  # keeps the attributes of a subclass, such as a default

    def build(values: list[Any]) -> dict[Any, Any]:
        clone = copy.copy(shell)
        for key, value in zip(keys, values, strict=True):
            clone[key] = value
        return clone

    return _Opened(dict(tree), build)


def _filler(tree: list[Any]) -> Callable[[list[Any]], Any]:
    shell = copy.copy(tree)

    def build(values: list[Any]) -> list[Any]:
        clone = copy.copy(shell)
        clone[:] = values
        return clone

    return build


def _open_dataclass(tree: Any) -> _Opened:
    fields = dataclasses.fields(tree)
    names = [field.name for field in fields if field.init and not field.metadata.get("static")]
    others = [field.name for field in fields if not field.init]

    def build(values: list[Any]) -> Any:
        clone = dataclasses.replace(tree, **dict(zip(names, values, strict=True)))
        for name in others:
            if hasattr(tree, name) and not hasattr(clone, name):
                object.__setattr__(clone, name, getattr(tree, name))  # the class may be frozen
        return clone

    return _Opened({name: getattr(tree, name) for name in names}, build)


def _all_children(tree: Any) -> Iterable[Any] | None:
    """Return the children of ``tree``, with all fields of a dataclass; None for a leaf."""
    if tree is None:
        return ()
    if isinstance(tree, dict):
        return list(tree.values())
    if isinstance(tree, list | tuple):
        return list(tree)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = [field.name for field in dataclasses.fields(tree)]
        return [getattr(tree, name) for name in names if hasattr(tree, name)]
    return None


def _walk(tree: Any, found: list[Any], above: set[int]) -> Callable[[Iterator[Any]], Any]:
    opened = _open(tree)
    if opened is None:
        found.append(tree)
        return next
    if id(tree) in above:
        raise ArgumentError(
            f"a {type(tree).__name__} contains itself; a tree of tensors must be finite"
        )
    above.add(id(tree))
    parts = [_walk(child, found, above) for child in opened.parts.values()]
    above.discard(id(tree))
    build = opened.build
    return lambda values: build([part(values) for part in parts])
