"""Groups of a program's calls as kernels.

A group with reductions along one axis is one kernel, in which a work-item (or a work-group of a
GPU) does all passes over a row. If there are few long rows, each level of reductions is separate
launches, for parts of rows and then for the parts' results; so are then the outputs. Groups that
reduce several axes which do not lie side by side are declined.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.plugin import (
    Group,
    GroupInput,
    GroupOutput,
    KernelRefusedError,
    Reduction,
    TensorType,
    expressions,
    shapes,
)
from tensorplug_opencl.codegen import calls, layouts
from tensorplug_opencl.groups import element_groups, passes, recipes, row_groups
from tensorplug_opencl.groups.element_groups import check_arguments, choose_width, strides_of
from tensorplug_opencl.groups.fold_states import FOLDS
from tensorplug_opencl.groups.row_bodies import Program
from tensorplug_opencl.groups.row_forms import Form, Operand
from tensorplug_opencl.reductions import rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from tensorplug.plugin import Expression, Shape
    from tensorplug_opencl.codegen import templates
    from tensorplug_opencl.groups.recipes import Recipe
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime

    Run = Callable[..., list[DeviceBuffer]]
    Span = tuple[bool, ...]


TILE: Final = 8  # vectors side by side that a work-item of a CPU takes, at most
LONGEST: Final = 1 << 20  # elements of a row in the caches of a CPU, whose parts save no time


def compile_group(group: Group, runtime: Runtime) -> Run | None:
    """Return a function of the inputs' buffers that returns those of the outputs; None to decline.

    Raises:
        BuildError: the device's compiler refuses the program.

    """
    makers = [runtime.prepare_empty(output.type) for output in group.outputs]
    if not any(output.type.size for output in group.outputs):
        return lambda *_inputs: [make() for make in makers]
    try:
        launch = _prepare(group, runtime)
    except KernelRefusedError:  # complex numbers, too many arguments, axes that lie apart
        return None

    def run(*inputs: DeviceBuffer) -> list[DeviceBuffer]:
        results = [make() for make in makers]
        launch(*inputs, *results)
        return results

    def overwrite(*inputs: DeviceBuffer) -> list[DeviceBuffer]:
        results = [
            make() if at is None else inputs[at] for make, at in zip(makers, into, strict=True)
        ]
        launch(*inputs, *results)
        return results

    into = [output.into for output in group.outputs]
    return run if into.count(None) == len(into) else overwrite


def _prepare(group: Group, runtime: Runtime) -> Callable[..., None]:
    """Return the launch of a group that has elements, of its inputs and then its outputs."""
    if not group.reductions:
        if not all(all(output.spans) for output in group.outputs):
            raise KernelRefusedError("an output does not span all axes")
        return element_groups.prepare(group, runtime)
    frame = _Frame.of(group)
    along = [_is_along(output, frame.kept) for output in group.outputs]
    recipe, values = recipes.find(group)
    plan = _plan(runtime, frame, recipe)
    walks_once = runtime.is_cpu and frame.length <= LONGEST and any(along)
    if plan.parts > 1 and walks_once:
        plan = plan._replace(parts=1)
    if plan.parts > 1:
        return _Stages(group, frame, runtime).run
    return _launch(runtime, group, recipe, frame, plan, values)


def _is_along(output: GroupOutput, kept: Span) -> bool:
    if output.spans != kept and not all(output.spans):
        raise KernelRefusedError("an output varies along some of the rows' axes")
    return output.spans != kept


class _Frame(NamedTuple):
    """The axes of a group's rows.

    ``reduced``: the axis along which elements are folded. ``side``: the last axis, if rows lie
    side by side along it. ``outer``: the others.
    """

    shape: Shape
    kept: Span
    reduced: int
    side: int | None
    outer: tuple[int, ...]

    @classmethod
    def of(cls, group: Group) -> _Frame:
        """Return the axes.

        Raises:
            KernelRefusedError: several axes are reduced, or there are no elements to reduce.

        """
        axes = group.reductions[0].axes
        reduced_axes = [axis for axis, reduced in enumerate(axes) if reduced]
        if len(reduced_axes) != 1 or not all(group.shape):
            raise KernelRefusedError(f"it does not reduce one axis, but {len(reduced_axes)}")
        (reduced,) = reduced_axes
        last = len(group.shape) - 1
        side = None if reduced == last else last
        outer = tuple(axis for axis in range(last + 1) if axis not in (reduced, side))
        return cls(group.shape, tuple(not axis for axis in axes), reduced, side, outer)

    @property
    def length(self) -> int:
        """The elements of a row."""
        return self.shape[self.reduced]

    @property
    def inner(self) -> int:
        """The rows side by side."""
        return 1 if self.side is None else self.shape[self.side]

    @property
    def blocks(self) -> int:
        """The number of rows, or of those that do not lie side by side."""
        return shapes.size(tuple(self.shape[axis] for axis in self.outer))

    @property
    def result(self) -> Shape:
        """The shape of one number for each row."""
        return tuple(n for n, kept in zip(self.shape, self.kept, strict=True) if kept)


class _Plan(NamedTuple):
    """How rows are shared out; ``units``: work-items, or groups of them, for one part of each."""

    form: Form
    units: int
    parts: int


def _plan(runtime: Runtime, frame: _Frame, recipe: Recipe) -> _Plan:
    width = choose_width(recipe, runtime) if runtime.is_cpu else 1
    rank = len(frame.outer)
    if frame.side is None and not runtime.is_cpu:
        form = Form("group", rows.choose_group(runtime, frame.length), rank)
        parts = rows.count_even_parts(runtime, frame.blocks, frame.length, group=form.width)
        return _Plan(form, frame.blocks, parts)
    if frame.side is None:
        form = Form("lanes", _cut(width, frame.length), rank)
        return _Plan(
            form, frame.blocks, rows.count_even_parts(runtime, frame.blocks, frame.length)
        )
    width = _cut(width, frame.inner)
    tile = 1
    while runtime.is_cpu and 2 * tile <= min(TILE, frame.inner // width):
        tile *= 2
    units = frame.blocks * -(-frame.inner // (width * tile))
    parts = rows.count_even_parts(runtime, units, frame.length, width * tile)
    return _Plan(Form("columns", width, rank, tile), units, parts)


def _cut(width: int, count: int) -> int:
    """Return the lanes of vectors for ``count`` neighbours."""
    return min(width, 1 << (count - 1).bit_length())


def _launch(
    runtime: Runtime,
    group: Group,
    recipe: Recipe,
    frame: _Frame,
    plan: _Plan,
    values: Sequence[np.generic],
) -> Launch:
    """Return the launch of a row's program: of the inputs, and the outputs or else the parts.

    ``values``: of the recipe's last inputs, which are numbers.
    """
    program = _outline(recipe)
    arrays: list[GroupInput | GroupOutput] = [*group.inputs, *group.outputs]
    strides = [strides_of(group, each.spans) for each in arrays]
    outer = layouts.collapse(
        tuple(frame.shape[axis] for axis in frame.outer),
        [tuple(own[axis] for axis in frame.outer) for own in strides],
    )
    packed = [outer]
    if frame.side is not None:
        packed.append(layouts.Layout((), tuple((own[frame.reduced],) for own in strides)))
    count = len(arrays) + len(program.parts)

    def of_width(width: int) -> Launch:
        form = plan.form._replace(width=width, rank=outer.rank)
        index = layouts.index_dtype(
            shapes.size(frame.shape),
            frame.blocks * frame.inner * plan.parts,
            plan.units * plan.parts,
            frame.length + 8 * width,
        )
        items = plan.units * plan.parts
        span = -(-frame.length // plan.parts)
        numbers = [items, plan.parts, frame.length, span, frame.inner]
        rooms = program.list_rooms(form)
        sized = zip(program.inputs, group.inputs, strict=False)
        numbers += [each.type.size for operand, each in sized if operand in rooms]
        struct = layouts.pack(packed, index)
        arguments: list[Any] = [*map(index.type, numbers), *([] if struct is None else [struct])]
        arguments += values
        check_arguments(count, arguments)
        text = _write(recipe, form, index)
        if form.kind == "group":
            runtime.check_steps(-(-span // width))
            return runtime.launch(text, count, arguments, items * width, group=width)
        runtime.check_steps(span)
        heavy = span > rows.LONG_WALK and (
            not runtime.is_cpu or items < 64 * runtime.parallel_items
        )
        return runtime.launch(text, count, arguments, items, heavy=heavy)

    width = plan.form.width
    if plan.form.kind == "group":
        return calls.shrink_until_allowed(of_width, width)
    return of_width(width)


@lru_cache(recipes.KEPT)
def _write(recipe: Recipe, form: Form, index: templates.Index) -> str:
    return row_groups.write_program(_outline(recipe), form, index)


@lru_cache(recipes.KEPT)
def _outline(recipe: Recipe) -> Program:
    """Return what the program of a group with reductions computes: parts, if it has no outputs."""
    group, row = recipe.group, recipe.row
    frame = _Frame.of(group)

    def name(letter: str, at: int, each: GroupInput | GroupOutput) -> Operand:
        across = frame.side is not None and each.spans[frame.side]
        return Operand(f"{letter}{at}", each.type.dtype, each.spans[frame.reduced], across)

    inputs = [name("x", at, each) for at, each in enumerate(group.inputs)]
    numbers = len(recipe.chosen)
    for at in range(len(inputs) - numbers, len(inputs)):
        inputs[at] = inputs[at]._replace(argument=True)
    outputs = [name("y", at, each) for at, each in enumerate(group.outputs)]
    folds = [fold for step in row.passes for fold in step.folds]
    parts = [
        (fold.number, Operand(f"part{at}", fold.expression.dtype.compute, False, True))  # noqa: FBT003
        for at, fold in enumerate(folds)
    ]
    return Program(recipe.title, inputs, outputs, row, [] if outputs else parts)


class _Stage(NamedTuple):
    """The launch of one level of reductions: what it reads, and what becomes of the parts."""

    launch: Launch
    reads: Sequence[int]
    make: Sequence[Callable[[], DeviceBuffer]]
    finish: Sequence[tuple[int, Callable[[DeviceBuffer], DeviceBuffer]]]


class _Stages:
    """Launches for few long rows. Buffers are numbered as parameters are, then the outputs."""

    def __init__(self, group: Group, frame: _Frame, runtime: Runtime) -> None:
        self._group, self._frame, self._runtime = group, frame, runtime
        self._inputs = len(group.inputs)
        self._values = [
            *group.inputs,
            *(
                GroupInput(TensorType(each.expression.dtype, frame.result), frame.kept)
                for each in group.reductions
            ),
        ]
        roots = [reduction.expression for reduction in group.reductions]
        self._stages = [
            self._prepare_level([group.reductions[at] for at in level], level)
            for level in passes.find_levels(self._inputs, roots)
        ]
        spans = dict.fromkeys(output.spans for output in group.outputs)
        self._ends = [self._prepare_outputs(each) for each in spans]

    def run(self, *buffers: DeviceBuffer) -> None:
        """Write the outputs."""
        values: list[Any] = [*buffers[: self._inputs], *[None] * len(self._group.reductions)]
        outputs = buffers[self._inputs :]
        for stage in self._stages:
            made = [make() for make in stage.make]
            stage.launch(*(values[at] for at in stage.reads), *made)
            for part, (number, finish) in zip(made, stage.finish, strict=True):
                values[number] = finish(part)
        for launch, reads, writes in self._ends:
            launch(*(values[at] for at in reads), *(outputs[at] for at in writes))

    def _restrict(self, roots: Sequence[Expression]) -> tuple[list[int], list[Expression]]:
        """Return the numbers of the parameters in use, and the roots with these from 0 on."""
        used = passes.list_parameters(roots)
        numbers = sorted(used)
        new = {
            number: expressions.parameter(at, used[number]) for at, number in enumerate(numbers)
        }
        unused = expressions.parameter(len(self._values), next(iter(used.values())))
        values = [new.get(number, unused) for number in range(len(self._values))]
        return numbers, expressions.substitute(roots, values)

    def _prepare_level(self, reductions: Sequence[Reduction], level: Sequence[int]) -> _Stage:
        runtime, frame = self._runtime, self._frame
        reads, roots = self._restrict([each.expression for each in reductions])
        folds = tuple(
            replace(each, expression=root) for each, root in zip(reductions, roots, strict=True)
        )
        inputs = tuple(self._values[at] for at in reads)
        group = Group(f"{self._group.name} parts", frame.shape, inputs, folds, ())
        recipe, numbers = recipes.find(group)
        plan = _plan(runtime, frame, recipe)
        parts = _outline(recipe).parts
        whole = (frame.blocks, plan.parts, frame.inner)
        launch = _launch(runtime, group, recipe, frame, plan, numbers)
        finish = []
        for number, each, (_, part) in zip(level, reductions, parts, strict=True):
            out = TensorType(each.expression.dtype, frame.result)
            reduce = rows.make_reducer(
                runtime,
                f"{each.op} of parts",
                rows.make_walk(whole, (1,)),
                part.dtype,
                out,
                FOLDS[each.op](out.dtype),
            )
            finish.append((self._inputs + number, reduce))
        make = [runtime.prepare_empty(TensorType(part.dtype, whole)) for _, part in parts]
        return _Stage(launch, reads, make, finish)

    def _prepare_outputs(self, spans: Span) -> tuple[Callable[..., None], list[int], list[int]]:
        """Return the launch of the outputs that span the same axes, what it reads and writes."""
        group = self._group
        writes = [at for at, output in enumerate(group.outputs) if output.spans == spans]
        outputs = [group.outputs[at] for at in writes]
        reads, roots = self._restrict([output.expression for output in outputs])

        def of(own: Span) -> Span:
            return tuple(each for each, has in zip(own, spans, strict=True) if has)

        part = Group(
            self._group.name,
            tuple(n for n, has in zip(group.shape, spans, strict=True) if has),
            tuple(GroupInput(self._values[at].type, of(self._values[at].spans)) for at in reads),
            (),
            tuple(
                GroupOutput(root, output.type, of(spans))
                for root, output in zip(roots, outputs, strict=True)
            ),
        )
        return element_groups.prepare(part, self._runtime), reads, writes
