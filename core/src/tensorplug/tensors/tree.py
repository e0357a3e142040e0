"""Trees of tensors: nested dicts, lists, tuples, named tuples and dataclasses.

Everything else is a leaf; None is an empty tree. ``flatten`` gives the leaves in a fixed order
(dicts by insertion) and a function that builds the same tree around other leaves. Of a
dataclass it takes the fields that its constructor takes, except those declared with
``metadata={"static": True}``; these stay as they are. What the constructor does not take, the
class makes anew in its ``__post_init__``.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["fixed", "flatten", "leaves", "matched", "opened", "paths", "tree_map"]


def flatten(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Return the leaves of ``tree`` and the function that puts other leaves in their places.

    Raises:
        ArgumentError: when a container holds itself.

    """
    if _open(tree) is None:
        return [tree], _only
    found: list[Any] = []
    rebuild = _walk(tree, found, set())
    return found, lambda others: rebuild(iter(others))


def _only(others: list[Any]) -> Any:
    """Return the tree around one leaf, which is the leaf."""
    (leaf,) = others
    return leaf


def leaves(tree: Any) -> list[Any]:
    """Return every leaf within reach, in order.

    Each container is entered once, so that one may hold itself; of dataclasses every field is.
    """
    found: list[Any] = []
    entered: dict[int, Any] = {}  # with the containers, lest an id be used again
    stack = [tree]
    while stack:
        each = stack.pop()
        below = _below(each)
        if below is None:
            found.append(each)
        elif id(each) not in entered:
            entered[id(each)] = each
            stack.extend(reversed(list(below)))
    return found


def paths(tree: Any) -> list[str]:
    """Return where each leaf of ``flatten`` stands, as one would write it: ``['w'][0].bias``."""
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
    """Return the tree of ``function`` applied to matching leaves of trees of one structure.

    Dicts match by key, whatever their order.

    Raises:
        ArgumentError: when the trees differ in structure, saying where, or one holds itself.

    """
    first, rebuild = flatten(tree)

    def message(where: str, mine: str, theirs: str) -> str:
        return f"tree_map: tree{where} is {mine} in the first tree, but {theirs} in another"

    rest = [matched(tree, other, message) for other in others]
    return rebuild([function(*item) for item in zip(first, *rest, strict=True)])


def matched(
    tree: Any, other: Any, message: Callable[[str, str, str], str], *, whole: bool = False
) -> list[Any]:
    """Return the leaves of ``other`` in the order in which ``tree`` has its own.

    ``whole``: what stands where ``tree`` has a leaf is taken as it is, such as a list of numbers.

    Raises:
        ArgumentError: when the structures differ, with what ``message`` makes of the place and
            of what stands there in either.

    """
    found: list[Any] = []
    _match(_Matching(message, whole, found), tree, other, "")
    return found


def opened(tree: Any) -> dict[Any, Any] | None:
    """Return what stands right below ``tree``, by key, position or field; None for a leaf."""
    return _parts(tree)


def fixed(tree: Any) -> list[Any]:
    """Return the fields of a dataclass that are declared static; of all else nothing."""
    if not dataclasses.is_dataclass(tree) or isinstance(tree, type):
        return []
    fields = dataclasses.fields(tree)
    return [getattr(tree, field.name) for field in fields if field.metadata.get("static")]


class _Matching(NamedTuple):
    """The settings of ``matched``, and what it has found so far."""

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
    """One level of a tree: what stands below by key, position or field, and how it is rebuilt."""

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
    shell = copy.copy(tree)  # keeps what a subclass has besides, such as a default

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
        made = dataclasses.replace(tree, **dict(zip(names, values, strict=True)))
        for name in others:
            if hasattr(tree, name) and not hasattr(made, name):
                object.__setattr__(made, name, getattr(tree, name))  # the class may be frozen
        return made

    return _Opened({name: getattr(tree, name) for name in names}, build)


def _below(tree: Any) -> Iterable[Any] | None:
    """Return all that stands right below ``tree``; None for a leaf."""
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
            f"a {type(tree).__name__} holds itself; a tree of tensors must end somewhere"
        )
    above.add(id(tree))
    parts = [_walk(child, found, above) for child in opened.parts.values()]
    above.discard(id(tree))
    build = opened.build
    return lambda values: build([part(values) for part in parts])
