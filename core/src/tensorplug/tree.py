"""Trees of tensors: nested dicts, lists, tuples, named tuples and dataclasses.

``flatten`` gives the leaves in a fixed order (dicts by insertion) and a function that builds
the same tree around other leaves.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["flatten", "leaves", "tree_map"]


def flatten(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Return the leaves of ``tree`` and the function that puts other leaves in their places."""
    found: list[Any] = []
    rebuild = _walk(tree, found)
    return found, lambda others: rebuild(iter(others))


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of ``tree`` in order."""
    return flatten(tree)[0]


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Return the tree of ``function`` applied to matching leaves of trees of one structure.

    Dicts match by key, whatever their order.

    Raises:
        ArgumentError: when the trees differ in structure, saying where.

    """
    first, rebuild = flatten(tree)
    rest: list[list[Any]] = []
    for other in others:
        rest.append([])
        _match(tree, other, "tree", rest[-1])
    return rebuild([function(*each) for each in zip(first, *rest, strict=True)])


def _match(tree: Any, other: Any, where: str, found: list[Any]) -> None:
    """Collect the leaves of ``other`` in the order in which ``tree`` has its own."""
    mine, theirs = _children(tree), _children(other)
    if mine is None and theirs is None:
        found.append(other)
        return
    if (
        mine is None
        or theirs is None
        or type(tree) is not type(other)
        or (mine.keys() != theirs.keys())
    ):
        raise ArgumentError(
            f"tree_map: {where} is {_outline(tree, mine)} in the first tree, but "
            f"{_outline(other, theirs)} in another"
        )
    for key, child in mine.items():
        _match(child, theirs[key], f"{where}[{key!r}]", found)


def _children(tree: Any) -> dict[Any, Any] | None:
    """Return what stands right below, by key, position or field; None for a leaf."""
    if isinstance(tree, dict):
        return dict(tree)
    if isinstance(tree, list | tuple):
        return dict(enumerate(tree))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return {
            field.name: getattr(tree, field.name)
            for field in dataclasses.fields(tree)
            if field.init
        }
    return None


def _outline(tree: Any, children: dict[Any, Any] | None) -> str:
    name = type(tree).__name__
    return name if children is None else f"{name} of {list(children)}"


def _walk(tree: Any, found: list[Any]) -> Callable[[Iterator[Any]], Any]:
    if isinstance(tree, dict):
        keys = list(tree)
        parts = [_walk(tree[key], found) for key in keys]
        return lambda it: dict(zip(keys, [part(it) for part in parts], strict=True))
    if isinstance(tree, list):
        parts = [_walk(each, found) for each in tree]
        return lambda it: [part(it) for part in parts]
    if isinstance(tree, tuple):
        parts = [_walk(each, found) for each in tree]
        if hasattr(tree, "_fields"):
            kind: Any = type(tree)
            return lambda it: kind(*[part(it) for part in parts])
        return lambda it: tuple([part(it) for part in parts])
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = [field.name for field in dataclasses.fields(tree) if field.init]
        parts = [_walk(getattr(tree, name), found) for name in names]
        return lambda it: dataclasses.replace(
            tree, **dict(zip(names, [part(it) for part in parts], strict=True))
        )
    found.append(tree)
    return next
