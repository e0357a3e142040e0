"""Trees of tensors: nested dicts, lists, tuples, named tuples and dataclasses.

``flatten`` gives the leaves in a fixed order (dicts by insertion) and a function that builds
the same tree around other leaves.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

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
    """Return the tree of ``function`` applied to matching leaves of trees of one structure."""
    first, rebuild = flatten(tree)
    rest = [leaves(other) for other in others]
    return rebuild([function(*each) for each in zip(first, *rest, strict=True)])


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
