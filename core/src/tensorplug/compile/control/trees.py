"""Trees of tensors that loops and branches take and return, as lists of their leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.dispatch.calls import as_tensor
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.tensors.tree import flatten, matched, paths
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor


_NUMBERS = (bool, int, float, complex)


class Given:
    """A tree of tensors that a function gets, as leaves and how to build it.

    Args:
        tree: of tensors, or of what ``asarray`` takes.
        what: names it in messages, such as ``"scan: init"``.

    """

    def __init__(self, tree: Any, what: str) -> None:
        values, build = flatten(tree)
        self.build: Callable[[list[Any]], Any] = build
        self.what = what
        self.places: list[str] = paths(tree)
        self.tensors: list[Tensor] = [
            # Aliases, which the function may dispose of, or assign to.
            alias(as_tensor(value, what=what + path))
            for value, path in zip(values, self.places, strict=True)
        ]
        self.types: list[TensorType] = [tensor.type for tensor in self.tensors]
        self.tree: Any = self.build([*self.tensors])

    def read(self, result: Any, what: str) -> list[Tensor]:
        """Return the leaves of a tree that takes the place of this one.

        Raises:
            ArgumentError: its structure or the type of a leaf differs; ``what`` names the tree.

        """

        def message(where: str, before: str, after: str) -> str:
            return f"{what}{where} is {after}, but {self.what}{where} is {before}"

        leaves = []
        values = matched(self.tree, result, message)
        for value, type_, path in zip(values, self.types, self.places, strict=True):
            number = value.__class__ in _NUMBERS
            dtype = dt.of_scalar(value, type_.dtype) if number else None
            tensor = as_tensor(value, dtype, what=what + path)
            if tensor.type != type_:
                raise ArgumentError(
                    f"{what}{path} is {tensor.type}, but {self.what}{path} is {type_}; a loop "
                    "must keep dtypes and shapes: convert one of them"
                )
            leaves.append(tensor)
        return leaves


class Returned:
    """The tree that a function returns: known from its first call on.

    ``who`` names the result in messages, such as ``"scan: y"``.
    """

    def __init__(self, who: str) -> None:
        self.who = who
        self._tree: Any = None
        self._types: list[TensorType] | None = None
        self._first = ""

    def read(self, result: Any, what: str = "") -> list[Tensor]:
        """Return the leaves of a result; all results have the types of the first one.

        ``what``: which of several functions returned it, for messages.

        Raises:
            ArgumentError: it differs from the first one in structure, or in the type of a leaf.

        """
        values, places = flatten(result)[0], paths(result)
        tensors = [
            as_tensor(value, what=f"{self.who}{path}")
            for value, path in zip(values, places, strict=True)
        ]
        types = [tensor.type for tensor in tensors]
        if self._types is None:
            self._tree, self._types, self._first = result, types, what
            return tensors
        before = f" in {self._first}" if self._first else " before"
        after = f" in {what}" if what else ""

        def message(where: str, mine: str, theirs: str) -> str:
            return f"{self.who}{where} is {theirs}{after}, but {mine}{before}"

        ordered = matched(self._tree, flatten(result)[1]([*tensors]), message)
        for tensor, type_, path in zip(ordered, self._types, paths(self._tree), strict=True):
            if tensor.type != type_:
                raise ArgumentError(message(path, str(type_), str(tensor.type)))
        return ordered

    def build(self, tensors: Sequence[Tensor]) -> Any:
        """Return the tree with ``tensors`` as leaves."""
        rebuild: Callable[[list[Any]], Any] = flatten(self._tree)[1]
        return rebuild(list(tensors))


def find_length(xs: Given, length: Any, who: str) -> int:
    """Return the number of steps over slices of ``xs`` along the first axis.

    Raises:
        ArgumentError: ``length`` is not an integer, is negative, or is missing without tensors.
        ShapeError: a tensor has no axis, or the lengths differ.

    """
    declared = None if length is None else shapes.index(length, f"{who}: length")
    if declared is not None and declared < 0:
        raise ArgumentError(f"{who}: length must not be negative, got {declared}")
    count, first = declared, "length"
    for type_, path in zip(xs.types, xs.places, strict=True):
        name = f"xs{path}"
        if not type_.shape:
            raise ShapeError(f"{who}: {name} is {type_}, which has no axis to go along")
        if count is None:
            count, first = type_.shape[0], name
        elif type_.shape[0] != count:
            raise ShapeError(
                f"{who}: {name} is {type_}, of {type_.shape[0]} slices, but {first} says {count}"
            )
    if count is None:
        raise ArgumentError(f"{who}: without a tensor in xs, length must say the number of steps")
    return count
