"""The walk of elementwise programs: each array is read as its strides require.

A work-item of a GPU takes one element, so that neighbours read neighbours. One of a CPU takes a
run of them, one after the other: drivers turn such a loop into vector instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tensorplug.plugin import shapes
from tensorplug_opencl.codegen import layouts, templates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import DType, Shape
    from tensorplug_opencl.codegen.layouts import Layout, Strides
    from tensorplug_opencl.codegen.templates import Index

# How an array is read for element i of the result: "whole", its element i; "single", the first.
# The others find the start of each row (the result's last axis) in the layout: "row" has one for
# each element of the row, "column" one for all of them. An "argument" is a number, not an array.
Access = Literal["whole", "single", "row", "column", "argument"]
BY_ROWS: Final = ("row", "column")

# Elements that a work-item computes on a CPU: few enough that the groups of a large array keep all
# cores busy, and enough that the start of a loop costs little.
RUN: Final = 1024


class Walked(NamedTuple):
    """An array, ``NAME_in`` or ``NAME_out`` in C: the type of its elements, and how it is read."""

    name: str
    dtype: DType
    stored: str
    access: Access


class Walk(NamedTuple):
    """How arrays are read, and the layout of their axes, merged as far as possible."""

    accesses: tuple[Access, ...]
    layout: Layout

    @classmethod
    def of(cls, shape: Shape, strides: Sequence[Strides | None]) -> Walk:
        """Return the walk over ``shape``; None: of a single number, whatever the shape."""
        none = (0,) * len(shape)
        every = [
            *(none if steps is None else steps for steps in strides),
            layouts.row_major(shape),
        ]
        layout = layouts.collapse(shape, every)
        *own, whole = layout.strides
        accesses = (
            "single" if steps is None else _classify(walked, whole)
            for steps, walked in zip(strides, own, strict=True)
        )
        return cls(tuple(accesses), layout)

    @property
    def rank(self) -> int:
        """The number of axes before the last; 0 if no array is read by rows."""
        return self.layout.rank - 1 if set(BY_ROWS) & set(self.accesses) else 0

    def arguments(self, index: Index) -> list[Any]:
        """Return the values of the constants that ``declare`` declares."""
        sizes, strides = self.layout
        size = index.type(shapes.size(sizes))
        walked = zip(self.accesses, strides, strict=False)
        outer = tuple(steps[:-1] for access, steps in walked if access in BY_ROWS)
        if not outer:
            return [size]
        rows = layouts.pack([layouts.Layout(sizes[:-1], outer)], index)
        return [size, index.type(sizes[-1]), rows]


def _classify(steps: Strides, whole: Strides) -> Access:
    """Return how an array with these strides is read, from those of the result."""
    if steps == whole:
        return "whole"
    if not any(steps):
        return "single"
    return "row" if steps[-1] else "column"  # dense arrays have no other step along a row than 1


def declare(arrays: Sequence[Walked], rank: int) -> tuple[list[str], list[str]]:
    """Return the C functions that find rows of the arrays, and the constants' declarations.

    Constants are ``n``; then, if an array is read by rows, ``length``, that of a row, and the
    layout of the ``rank`` axes before the last: sizes, then the strides of each such array.
    """
    names = [array.name for array in arrays if array.access in BY_ROWS]
    if not names:
        return [], templates.declare_indices("n")
    fields = [("size", rank), *((f"{name}_step", rank) for name in names)]
    functions = [
        templates.define_offset(f"{name}_offset", rank, "size", f"{name}_step") for name in names
    ]
    constants = templates.declare_indices("n", "length", layout=True)
    return [templates.declare_layout(fields), *functions], constants


def write_body(
    arrays: Sequence[Walked],
    run: int,
    element: Callable[[], Sequence[str]],
    loop: Callable[[str, str], Sequence[str]],
) -> str:
    """Return the body of a program whose work-items compute ``run`` elements each.

    ``element`` gives the statements for element ``i``, ``loop`` the loop over some neighbours:
    from which on, and how many.
    """
    by_rows = any(array.access in BY_ROWS for array in arrays)
    if run == 1:
        lines = ["  const index_t i = get_global_id(0);", "  if (i >= n) return;"]
        if by_rows:
            lines.append("  const index_t row = i / length, column = i - row * length;")
        return "\n".join([*lines, *element()])
    limits = [
        f"  const index_t start = get_global_id(0) * (index_t){run};",
        "  if (start >= n) return;",
        f"  const index_t end = start + min(n - start, (index_t){run});",
    ]
    if not by_rows:
        return "\n".join([*limits, *loop("start", "end - start")])
    return "\n".join(
        [
            *limits,
            "  for (index_t at = start; at < end;) {",
            "  const index_t row = at / length, column = at - row * length;",
            "  const index_t count = min(length - column, end - at);",
            *loop("at", "count"),
            "  at += count;",
            "  }",
        ]
    )


def read(array: Walked, whole: str = "i") -> str:
    """Return the expression of the array's element for element ``whole`` of the result."""
    if array.access == "argument":
        return f"{array.name}_argument"
    return f"{array.name}_in[{_offset(array, whole)}]"


def point(array: Walked, start: str) -> str | None:
    """Return the declaration of ``NAME_run``, from ``start`` on; None if all read one element."""
    if array.access not in ("whole", "row"):
        return None
    at = _offset(array, start)
    return f"  global const {array.stored} *{array.name}_run = {array.name}_in + {at};"


def _offset(array: Walked, whole: str) -> str:
    if array.access in ("whole", "single"):
        return whole if array.access == "whole" else "0"
    start = f"{array.name}_offset(row, layout)"
    return f"{start} + column" if array.access == "row" else start
