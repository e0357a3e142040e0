"""What tells one call of a compiled function from another: everything but the tensors' data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.dispatch import keys
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import CompileError
from tensorplug.tensors import tree

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["signed"]


class _Same:
    """An object as part of a key: equal to itself only, and kept alive."""

    __slots__ = ("given",)

    def __init__(self, given: object) -> None:
        self.given = given

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.given is self.given

    def __hash__(self) -> int:
        return id(self.given)


def signed(given: Any, key: list[Hashable], tensors: list[Tensor]) -> None:
    """Append the tensors of a tree to ``tensors``, and all else that it is to ``key``.

    Raises:
        CompileError: a leaf is neither a tensor nor hashable.

    """
    kind = given.__class__
    if kind is Tensor:
        key.append(given._placement)
        tensors.append(given)
    elif kind is dict:
        key.append((dict, *given))
        for item in given.values():
            signed(item, key, tensors)
    elif kind is tuple or kind is list:
        key.append((kind, len(given)))
        for item in given:
            signed(item, key, tensors)
    else:
        _otherwise(given, key, tensors)


def _otherwise(given: Any, key: list[Hashable], tensors: list[Tensor]) -> None:
    if isinstance(given, Tensor):  # a variable is read where the function reads it
        key.append(_Same(given))
        return
    parts = tree.opened(given)
    if parts is None:
        key.append(_static(given))
        return
    key.append((type(given), *parts, *_fixed(given)))
    for part in parts.values():
        signed(part, key, tensors)


def _fixed(given: Any) -> list[Hashable]:
    """Return the static fields of a dataclass, which its tree does not hold."""
    return [_static(item) for item in tree.fixed(given)]


def _static(given: Any) -> Hashable:
    try:
        return tuple(keys.freeze_attributes({"": given}))
    except TypeError:
        raise CompileError(
            f"compile: an argument holds {type(given).__name__}, which is neither a tensor nor "
            "hashable; make arrays tensors with asarray, and give other values as hashable ones"
        ) from None
