"""The signature of a call of a compiled function: its arguments without the tensors' data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.dispatch import keys
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import CompileError
from tensorplug.tensors import tree

if TYPE_CHECKING:
    from collections.abc import Hashable


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
        for child in value.values():
            append_signature(child, key, tensors, floats)
    elif kind is tuple or kind is list:
        key.append((kind, len(value)))
        for child in value:
            if child.__class__ is Tensor:  # without a call, since most of them are
                key.append(child._placement)
                tensors.append(child)
            else:
                append_signature(child, key, tensors, floats)
    elif kind is float and floats is not None:
        key.append(float)
        floats.append(value)
    else:
        _append_other(value, key, tensors, floats)


def convert_arrays(arguments: Any) -> Any:
    """Return a tree with tensors on the current device in place of its NumPy arrays."""
    return tree.tree_map(
        lambda leaf: as_tensor(leaf, what="an argument") if isinstance(leaf, np.ndarray) else leaf,
        arguments,
    )


def _append_other(
    value: Any, key: list[Hashable], tensors: list[Tensor], floats: list[float] | None
) -> None:
    if isinstance(value, Tensor):  # a variable, which every call reads
        key.append(_Same(value))
        return
    if isinstance(value, np.ndarray):
        raise FoundArrayError
    opened = tree.level(value)
    if opened is None:
        key.append(_freeze(value, "an argument"))
        return
    names, children, _, static = opened
    key.append((type(value), *keys.freeze_names(names)))
    if static:
        where = f"the static data of {type(value).__name__}"
        key.extend(_freeze(field, where) for field in static)
    for child in children:
        append_signature(child, key, tensors, floats)


def _freeze(value: Any, where: str) -> Hashable:
    try:
        return tuple(keys.freeze_attributes({"": value}))
    except TypeError:
        raise CompileError(
            f"compile: {where} contains {type(value).__name__}, which is {_reason(value)}"
        ) from None


def _reason(value: Any) -> str:
    if isinstance(value, Tensor):
        return "not static: make it a child of the tree"
    return (
        "neither a tensor nor hashable; convert arrays with asarray, and other values to hashable "
        "ones"
    )
