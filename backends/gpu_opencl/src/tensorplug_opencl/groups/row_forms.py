"""How rows of groups are shared out among work-items, and the arrays along them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from tensorplug_opencl.codegen import ctypes

if TYPE_CHECKING:
    from tensorplug.plugin import DType


class Form(NamedTuple):
    """How rows are walked: by vectors of ``width``, or by groups of ``width`` work-items.

    ``rank``: of the layout of rows, without those side by side.
    """

    kind: Literal["lanes", "group", "columns"]
    width: int
    rank: int
    tile: int = 1

    @property
    def lanes(self) -> int:
        """Elements that a work-item computes at once."""
        return 1 if self.kind == "group" else self.width


class Operand(NamedTuple):
    """An array: whether it varies along a row, and from each row to the one at its side.

    ``argument``: whether it is a single number instead of an array.
    """

    name: str
    dtype: DType
    along: bool
    across: bool
    argument: bool = False

    @property
    def stored(self) -> str:
        """The C type of its elements."""
        return ctypes.computed(self.dtype) if self.argument else ctypes.kept(self.dtype)
