"""The signature of a call of a compiled function: its arguments without the tensors' data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tensorplug.dispatch import keys
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import CompileError
from tensorplug.tensors import tree
from tensorplug.tensors.tree_nodes import OfDataclass, opening_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence


class FoundArrayError(Exception):
    """A leaf of the arguments is an array of NumPy's, which the program takes as a tensor."""


class _Same:
    """An object as part of a key, compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def append_signature(
    value: Any, key: list[Hashable], tensors: list[Tensor], floats: list[float] | None
) -> None:
    """Append the tensors and floats of a tree to ``tensors`` and ``floats``.

    Append its structure and static values to ``key``; without ``floats``, floats are static.

    Raises:
        CompileError: a leaf is neither a tensor nor hashable.
        FoundArrayError: one is an array of NumPy's; see ``convert_arrays``.

    """
    kind = value.__class__
    if kind is Tensor:
        key.append(value._placement)
        tensors.append(value)
    elif kind is dict:
        key.append((dict, *keys.freeze_names(value)))
        _append_children(value.values(), key, tensors, floats)
    elif kind is tuple or kind is list:
        key.append((kind, len(value)))
        _append_children(value, key, tensors, floats)
    elif kind is float and floats is not None:
        key.append(float)
        floats.append(value)
    elif value is None:
        key.append(None)
    else:
        _append_other(value, key, tensors, floats)


def _append_children(
    children: Iterable[Any],
    key: list[Hashable],
    tensors: list[Tensor],
    floats: list[float] | None,
) -> None:
    for child in children:
        if child.__class__ is Tensor:  # without a call, since most of them are
            key.append(child._placement)
            tensors.append(child)
        elif child is None:
            key.append(None)
        else:
            append_signature(child, key, tensors, floats)


def convert_arrays(arguments: Any) -> Any:
    """Return a tree with tensors on the current device in place of its NumPy arrays."""
    return tree.tree_map(
        lambda leaf: as_tensor(leaf, what="an argument") if isinstance(leaf, np.ndarray) else leaf,
        arguments,
    )


def _append_other(
    value: Any, key: list[Hashable], tensors: list[Tensor], floats: list[float] | None
) -> None:
    opening = opening_of(value)
    children: Sequence[Any]
    static: Sequence[Any]
    if opening.__class__ is OfDataclass:
        key.append(cast("Hashable", type(value)))  # which says what the children are
        children, static = opening.children(value), opening.static(value)
    elif opening is not None:
        names, children, _, static = opening(value)
        key.append((type(value), *keys.freeze_names(names)))
    elif isinstance(value, Tensor):  # a variable, which every call reads
        key.append(_Same(value))
        return
    elif isinstance(value, np.ndarray):
        raise FoundArrayError
    else:
        key.append(_freeze(value))
        return
    if static:
        key.extend([_freeze(field, value) for field in static])
    _append_children(children, key, tensors, floats)


def _freeze(value: Any, owner: Any = None) -> Hashable:
    """Return a static value in a hashable form; ``owner``: the node of a tree that has it."""
    if value.__class__ in keys.PLAIN:
        return value.__class__, value
    try:
        return tuple(keys.freeze_attributes({"": value}))
    except TypeError:
        of = "an argument" if owner is None else f"the static data of {type(owner).__name__}"
        raise CompileError(
            f"compile: {of} contains {type(value).__name__}, which is {_reason(value)}"
        ) from None


def _reason(value: Any) -> str:
    if isinstance(value, Tensor):
        return "not static: make it a child of the tree"
    return (
        "neither a tensor nor hashable; convert arrays with asarray, and other values to hashable "
        "ones"
    )
