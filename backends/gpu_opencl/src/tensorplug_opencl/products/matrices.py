"""Strided matrices in memory, as operands of products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug_opencl.codegen import templates

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.layouts import Strides


class Matrix(NamedTuple):
    """Distances in elements between rows, columns, and along the batch axes of the product."""

    row: int
    column: int
    batch: Strides

    @property
    def turned(self) -> Matrix:
        """The transposed matrix."""
        return Matrix(self.column, self.row, self.batch)

    @property
    def by_rows(self) -> bool:
        """Whether neighbours in a row lie at most as far apart as neighbours in a column."""
        return self.column <= self.row

    def outlined(self, rank: int) -> Matrix:
        """Return a matrix with ``rank`` batch axes for which program texts are the same."""
        column = 1 if self.column == 1 else 3
        row = 1 if self.row == 1 else 4 if self.by_rows else 2
        return Matrix(row, column, (1,) * rank)

    # Arguments of the programs and the C text in their bodies: see ``gathers.Gathered``.

    @property
    def form(self) -> str:
        """The form of the C text for offsets, for titles: always the same."""
        return ""

    def parameters(self, name: str) -> list[str]:
        """Return the declarations of the kernel's parameters for the matrix ``name``."""
        return templates.declare_indices(f"{name}_row", f"{name}_column")

    def arguments(self, index: templates.Index) -> list[Any]:
        """Return the values of these."""
        return [index.type(self.row), index.type(self.column)]

    def declarations(self, _name: str) -> str:
        """Return the declarations that the program needs: none."""
        return ""

    def part_type(self, _name: str) -> str:
        """Return the type of the part of a offset that the row, or the column, decides."""
        return "index_t"

    def part(self, name: str, axis: str, number: str) -> str:
        """Return the expression of the part that a row's or column's number decides."""
        return f"({number}) * {name}_{axis}"

    def offset(self, row: str, column: str) -> str:
        """Return the offset that two parts, by their names, make together."""
        return f"{row} + {column}"

    def inside(self, _name: str, _row: str, _column: str) -> str | None:
        """Return the condition that two parts make an offset in the array: they always do."""
        return None
