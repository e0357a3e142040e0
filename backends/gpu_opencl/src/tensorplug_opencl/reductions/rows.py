"""Launches that walk along rows: the elements of each row, and the work-items that read them.

A row is a part of the input that becomes one number, or that is normalized separately. If there
are few long rows, they are cut into parts, and the parts' results are reduced again until each row
has one. The order of the operations depends only on the shape and the device: results are
reproducible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tensorplug.plugin import DType, Shape, TensorType, shapes
from tensorplug_opencl.codegen import calls, ctypes, layouts, templates, vectors
from tensorplug_opencl.codegen.layouts import Layout
from tensorplug_opencl.reductions import rowwise
from tensorplug_opencl.reductions.rowwise import Form, Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug_opencl.codegen.folds import Fold
    from tensorplug_opencl.codegen.templates import Array
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime


GROUP: Final = 256  # work-items that share a row on a GPU, if the device takes as many
FEWEST: Final = 32  # of which GPUs run as many at once
PART: Final = 8192  # elements that are worth another work-item on a CPU
PARTS: Final = 32  # parts of the work for each core of a CPU, so that all end together
FEWEST_PARTS: Final = 32  # fewer are some groups, most of which one core would get
GROUP_PART: Final = 8  # elements for each work-item of a group, at least, in a part of a row
SHORTEST_PART: Final = 32  # elements of a part if each work-item of a GPU has a row
LONG_WALK: Final = 32  # elements from which on a work-item counts as heavy
STAGED: Final = 32  # elements in a run from which a separate launch reduces it first


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


def count_parts(runtime: Runtime, outputs: int, length: int) -> int:
    """Return into how many parts a row is cut if each work-item walks alone."""
    idle = max(1, runtime.parallel_items // max(outputs, 1))
    return max(1, min(idle, length // (8 * SHORTEST_PART)))


def count_parts_on_cpu(runtime: Runtime, units: int, elements: int) -> int:
    """Return into how many parts each of ``units`` walks over ``elements`` is cut on a CPU."""
    idle = PARTS * runtime.device.max_compute_units // max(units, 1)
    parts = min(idle, elements // PART)
    return parts if parts > 1 and parts * units >= FEWEST_PARTS else 1


class Plan(NamedTuple):
    """The plan of a walk: the form, its layouts, and how many rows lie side by side."""

    form: Form
    walk: Walk  # for "columns", `kept` lacks the axis of the rows side by side
    inner: int
    tile: int = 1  # vectors that a work-item takes side by side

    @property
    def strips(self) -> int:
        """Number of work-items for the rows side by side."""
        if self.form.kind not in rowwise.SIDEWAYS:
            return 1
        return -(-self.inner // (self.form.width * self.tile))

    @property
    def units(self) -> int:
        """Number of work-items, or groups, if each walks a whole row (or strip)."""
        return shapes.size(self.walk.kept.sizes) * self.strips


def make_plan(runtime: Runtime, walk: Walk, width: int) -> Plan:
    """Return the plan for ``walk`` with vectors of at most ``width`` elements."""
    kept, reduced = walk
    if reduced.rank == 1 and reduced.strides[0] == (1,):
        if runtime.is_cpu:
            form = Form("lanes", width, kept.rank, 0)
        else:
            form = Form("group", choose_group(runtime, walk.length), kept.rank, 0)
        return Plan(form, walk, 1)
    inner = 1
    if kept.rank and kept.strides[0][-1] == 1:
        inner = kept.sizes[-1]
        kept = Layout(kept.sizes[:-1], (kept.strides[0][:-1],))
    side = min(width, 1 << (inner.bit_length() - 1)) if runtime.is_cpu else 1
    tile = min(rowwise.TILE, inner // side) if runtime.is_cpu else 1
    kind: Literal["tiles", "columns"] = "tiles" if tile > 1 else "columns"
    return Plan(Form(kind, side, kept.rank, reduced.rank), Walk(kept, reduced), inner, tile)


def choose_group(runtime: Runtime, length: int) -> int:
    """Return how many work-items share a row, a power of two."""
    most = min(GROUP, runtime.device.max_work_group_size)
    depth = max(FEWEST, 1 << (max(length // GROUP_PART, 1) - 1).bit_length())
    return 1 << (min(most, depth).bit_length() - 1)


def _count_parts(runtime: Runtime, plan: Plan) -> int:
    """Return into how many parts each row is cut, so that the device has enough to do."""
    form = plan.form
    width = form.width * plan.tile if form.kind in rowwise.SIDEWAYS else 1
    return count_even_parts(
        runtime, plan.units, plan.walk.length, width, form.width if form.kind == "group" else 0
    )


def count_even_parts(
    runtime: Runtime, units: int, length: int, width: int = 1, group: int = 0
) -> int:
    """Return into how many parts each of ``units`` walks is cut, so that all of the device works.

    A walk is ``length`` elements along ``width`` rows; ``group`` work-items share it, if any do.
    """
    if runtime.is_cpu:
        return count_parts_on_cpu(runtime, units, length * width)
    idle = runtime.parallel_items // (max(units, 1) * max(group, 1))
    least = GROUP_PART * group if group else SHORTEST_PART
    return max(1, min(idle, length // least))


def launch(
    runtime: Runtime,
    recipe: Recipe,
    plan: Plan,
    *,
    parts: int = 1,
    total: int | None = None,
) -> Launch:
    """Return the launch of ``recipe``: it takes the buffer of the input, then the output's."""

    def of_width(width: int) -> Launch:
        sized = plan._replace(form=plan.form._replace(width=width))
        return _launch_sized(runtime, recipe, sized, parts, total)

    width = plan.form.width
    return (
        calls.shrink_until_allowed(of_width, width)
        if plan.form.kind == "group"
        else of_width(width)
    )


def _launch_sized(
    runtime: Runtime,
    recipe: Recipe,
    plan: Plan,
    parts: int,
    total: int | None,
) -> Launch:
    """Return the launch for vectors or groups of exactly the form's width."""
    length = plan.walk.length
    whole = length if total is None else total
    units = plan.units * parts
    index = layouts.index_dtype(
        plan.walk.outputs * plan.inner * max(length, parts), units, whole + 8 * plan.form.width
    )
    numbers = (units, parts, length, whole, -(-length // parts), plan.inner, plan.tile)
    sideways = plan.form.kind in rowwise.SIDEWAYS
    packed = [plan.walk.kept, plan.walk.reduced] if sideways else [plan.walk.kept]
    struct = layouts.pack(packed, index)
    arguments = [*map(index.type, numbers), *([] if struct is None else [struct])]
    text = rowwise.write_source(recipe, plan.form, index)
    together = plan.form.width if plan.form.kind == "group" else 1
    runtime.check_steps(-(-length // (parts * together)))
    if plan.form.kind == "group":
        size = plan.form.width
        return runtime.launch(text, 2, arguments, units * size, group=size)
    # A group of a CPU runs on one core: groups are small unless there are many of them.
    heavy = length > LONG_WALK and (not runtime.is_cpu or units < 64 * runtime.parallel_items)
    return runtime.launch(text, 2, arguments, units, heavy=heavy)


def make_reducer(
    runtime: Runtime,
    title: str,
    walk: Walk,
    source: DType,
    out: TensorType,
    fold: Fold,
    *,
    last: str = "acc",
    total: int | None = None,
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    """Return a callable that reduces a buffer along ``walk`` into ``out`` (not empty).

    ``last`` is the expression for the result once all is folded, which may name ``count``;
    ``total`` is for the recursion: the number of elements in a row of the whole reduction.
    """
    whole = walk.length if total is None else total
    between = out.dtype.compute

    def then(rest: Walk, first: Launch) -> Callable[[DeviceBuffer], DeviceBuffer]:
        """Return a callable that runs ``first``, then reduces its result further."""
        make = runtime.prepare_empty(TensorType(between, (rest.outputs, rest.length)))
        finish = make_reducer(runtime, title, rest, between, out, fold, last=last, total=whole)

        def run(x: DeviceBuffer) -> DeviceBuffer:
            y = make()
            first(x, y)
            return finish(y)

        return run

    runs = walk.reduced
    if runs.rank > 1 and runs.strides[0][-1] == 1 and runs.sizes[-1] >= STAGED:
        first, outer = _walk_runs(walk)
        plan, recipe = _plan_reduction(runtime, title, first, source, between, fold, "acc")
        rest = make_walk((walk.outputs, outer), (1,))
        return then(rest, launch(runtime, recipe, plan, total=whole))
    plan, recipe = _plan_reduction(runtime, title, walk, source, between, fold, "acc")
    parts = _count_parts(runtime, plan)
    if parts == 1:
        plan, recipe = _plan_reduction(runtime, title, walk, source, out.dtype, fold, last)
        return calls.make_producer(runtime, out, launch(runtime, recipe, plan, total=whole))
    begin = launch(runtime, recipe, plan, parts=parts, total=whole)
    blocks = walk.outputs // plan.inner
    return then(make_walk((blocks, parts, plan.inner), (1,)), begin)


def _plan_reduction(
    runtime: Runtime,
    title: str,
    walk: Walk,
    source: DType,
    target: DType,
    fold: Fold,
    result: str,
) -> tuple[Plan, Recipe]:
    stored = ctypes.stored(source), ctypes.stored(target)
    plan = make_plan(runtime, walk, vectors.choose_lanes(runtime, fold.element, *stored))
    return plan, Recipe(f"{title} {source} to {target}", *stored, fold, result)


def _walk_runs(walk: Walk) -> tuple[Walk, int]:
    """Return the walk along contiguous runs only, and how many of them each row has."""
    kept, reduced = walk
    sizes = (*kept.sizes, *reduced.sizes[:-1])
    strides = (*kept.strides[0], *reduced.strides[0][:-1])
    run = Layout(reduced.sizes[-1:], ((1,),))
    return Walk(layouts.collapse(sizes, [strides]), run), shapes.size(reduced.sizes[:-1])
