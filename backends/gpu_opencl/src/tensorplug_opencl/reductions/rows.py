"""Launches that walk along rows: the elements of each row, and the work-items that read them.

A row is a part of the input that becomes one number. If there are few long rows, they are cut into
parts. The order of the operations depends only on the shape and the device: results are
reproducible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.plugin import Shape, shapes
from tensorplug_opencl.codegen import calls, layouts, templates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug_opencl.codegen.layouts import Layout
    from tensorplug_opencl.codegen.templates import Array
    from tensorplug_opencl.runtime import Launch, Runtime


PART: Final = 8192  # elements that are worth another work-item on a CPU
PARTS: Final = 32  # parts of the work for each core of a CPU, so that all end together
FEWEST_PARTS: Final = 32  # fewer are some groups, most of which one core would get
LONG_WALK: Final = 32  # elements from which on a work-item counts as heavy


class Walk(NamedTuple):
    """The elements of each row: a layout over rows, and one inside a row."""

    kept: Layout
    reduced: Layout

    @property
    def outputs(self) -> int:
        """Number of rows."""
        return shapes.size(self.kept.sizes)

    @property
    def length(self) -> int:
        """Number of elements in each row."""
        return shapes.size(self.reduced.sizes)

    def row(self, number: str) -> str:
        """Return the C expression of the offset of a row; see ``launch_walk``."""
        return f"row_offset({number}, layout)" if self.kept.rank else "0"

    def element(self, number: str) -> str:
        """Return that of an element in its row."""
        return f"element_offset({number}, layout)" if self.reduced.rank else "0"


def launch_walk(
    runtime: Runtime,
    walk: Walk,
    title: str,
    arrays: Sequence[Array],
    sizes: Mapping[str, int],
    body: str,
    declarations: Sequence[str],
    steps: int,
) -> Launch:
    """Return the launch of ``sizes["items"]`` work-items, which take so many steps of a loop each.

    Offsets in the body are those of ``Walk.row`` and ``Walk.element``.
    """
    kept, reduced = walk.kept.rank, walk.reduced.rank
    fields = [("size", kept), ("by", kept), ("inner", reduced), ("inner_by", reduced)]
    offsets = (
        ("row_offset", kept, "size", "by"),
        ("element_offset", reduced, "inner", "inner_by"),
    )
    functions = [templates.define_offset(*each) for each in offsets if each[1]]
    index = layouts.index_dtype(walk.outputs * walk.length, sizes["items"])
    packed = layouts.pack([walk.kept, walk.reduced], index)
    runtime.check_steps(steps)
    return calls.launch_sized(
        runtime,
        title,
        arrays,
        sizes,
        body,
        index=index,
        declarations="\n".join([*declarations, templates.declare_layout(fields), *functions]),
        constants=[] if packed is None else [("Layout", "layout", packed)],
        heavy=steps > LONG_WALK,
    )


def make_walk(shape: Shape, axes: tuple[int, ...]) -> Walk:
    """Return the walk along ``axes`` of a dense array of ``shape``."""
    strides = layouts.row_major(shape)
    kept = [axis for axis in range(len(shape)) if axis not in axes]

    def lay_out(chosen: list[int]) -> Layout:
        sizes = tuple(shape[axis] for axis in chosen)
        return layouts.collapse(sizes, [tuple(strides[axis] for axis in chosen)])

    return Walk(lay_out(kept), lay_out(list(axes)))


def count_parts_on_cpu(runtime: Runtime, units: int, elements: int) -> int:
    """Return into how many parts each of ``units`` walks over ``elements`` is cut on a CPU."""
    idle = PARTS * runtime.device.max_compute_units // max(units, 1)
    parts = min(idle, elements // PART)
    return parts if parts > 1 and parts * units >= FEWEST_PARTS else 1
