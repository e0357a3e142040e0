"""Programs: the kernels of a group, in order, with the values of their numbers."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import (
    Group,
    GroupInput,
    GroupOutput,
    TensorType,
)
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.held import dtypes_of
from tensorplug_loops.schedule import columns, orders, parts, product_plans, scatters, tiles
from tensorplug_loops.schedule.forms import Form, form_of, generalize
from tensorplug_loops.schedule.lanes import cost
from tensorplug_loops.schedule.launches import Launch, Program
from tensorplug_loops.schedule.loops import Loops, is_running, reduced_axes
from tensorplug_loops.schedule.nests import Nest
from tensorplug_loops.schedule.pieces import cut
from tensorplug_loops.schedule.references import (
    is_dense,
    levels_of,
    needs_none,
    result_dtypes,
    result_owners,
    results_roots,
    results_written,
    used,
)
from tensorplug_loops.schedule.structures import parameter, renumbered
from tensorplug_loops.schedule.work_groups import WorkGroups

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tensorplug.plugin import DType
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.statements import Kernel

_LEAST: Final = 128  # elements of a segment: some vectors of neighbours
_KERNELS_KEPT: Final = 4096

_kernels: Final[dict[Hashable, tuple[Kernel, int]]] = {}


def plan(group: Group, machine: Machine) -> Program | None:
    """Return the program of a group; None for one with complex numbers."""
    if not dtypes_of(group) <= dt.REAL | dt.BOOL:
        return None
    planner = _Planner(group, machine)
    inputs = range(len(group.inputs))
    outputs = range(len(inputs), len(inputs) + len(group.outputs))
    planner.add(group, tuple(inputs), tuple(outputs))
    return Program(
        tuple(planner.launches),
        tuple(output.type for output in group.outputs),
        tuple(planner.temporaries),
    )


class _Planner:
    def __init__(self, group: Group, machine: Machine) -> None:
        self._machine = machine
        self._first = len(group.inputs) + len(group.outputs)
        self.launches: list[Launch] = []
        self.temporaries: list[tuple[DType, int]] = []

    def add(self, group: Group, inputs: tuple[int, ...], outputs: Sequence[int]) -> None:
        """Add the launches of a group whose arrays have these numbers."""
        if not group.reductions and not group.folds:
            self._add_elements(group, inputs, outputs)
            return
        if self._add_product(group, (*inputs, *outputs)):
            return
        group = orders.in_order(group, reduced_axes(group))
        axes, running = reduced_axes(group), is_running(group)
        whole = (True,) * len(axes)
        kept = whole if running else tuple(not axis for axis in axes)
        split = not running and parts.is_split(group, axes, self._machine)
        inner = {
            j
            for j, output in enumerate(group.outputs)
            if not split and is_dense(group, j) and output.spans in {kept, whole}
        }
        rest = [j for j in range(len(group.outputs)) if j not in inner]
        shape = _along(group.shape, kept)
        if running and not rest and self._add_scan(group, inputs, outputs):
            return
        results: list[GroupInput] = []
        numbers: list[int] = []
        if rest:
            results = [
                GroupInput(TensorType(dtype, shape), kept) for dtype in result_dtypes(group)
            ]
            direct = results_written(group, kept) if split else {}
            rest = [j for j in rest if j not in direct.values()]
            numbers = [
                outputs[direct[at]]
                if at in direct
                else self._temporary(own.type.dtype, prod(shape))
                for at, own in enumerate(results)
            ]
        if split:  # the first kernel also writes the outputs that need no result
            free = [j for j in rest if group.outputs[j].spans == whole and needs_none(group, j)]
            rest = [j for j in rest if j not in free]
            own = replace(group, outputs=tuple(group.outputs[j] for j in free))
            self._add_levels(own, inputs, [outputs[j] for j in free], numbers, results)
        else:
            first = len(group.inputs)
            made = [
                GroupOutput(parameter(first + at, each.type.dtype), each.type, kept)
                for at, each in enumerate(results)
            ]
            own = replace(group, outputs=(*(group.outputs[j] for j in sorted(inner)), *made))
            self._add_nest(own, (*inputs, *(outputs[j] for j in sorted(inner)), *numbers))
        if rest:
            elements = replace(
                group,
                inputs=(*group.inputs, *results),
                reductions=(),
                folds=(),
                outputs=tuple(group.outputs[j] for j in rest),
            )
            self._add_elements(elements, (*inputs, *numbers), [outputs[j] for j in rest])

    def _add_product(self, group: Group, arrays: Sequence[int]) -> bool:
        """Add the launches of a product, if the group is one that tiles suit."""
        if (product := product_plans.parts_of(group, self._machine)) is None:
            return False
        numbers = [*arrays, *(self._temporary(*memory) for memory in product.temporaries)]
        for each in product.launches:
            self.launches.append(each._replace(arrays=tuple([numbers[at] for at in each.arrays])))
        if product.rest is not None:
            following, read = product.rest
            self.add(following, tuple(numbers[at] for at in read), arrays[len(group.inputs) :])
        return True

    def _temporary(self, dtype: DType, size: int) -> int:
        self.temporaries.append((dtype, size))
        return self._first + len(self.temporaries) - 1

    def _add_elements(self, group: Group, inputs: tuple[int, ...], outputs: Sequence[int]) -> None:
        """Add the launches of a group without reductions."""
        together: dict[tuple[bool, ...], list[int]] = {}
        for j, output in enumerate(group.outputs):
            if is_dense(group, j):
                together.setdefault(output.spans, []).append(j)
            else:
                self._add_scatter(replace(group, outputs=(output,)), inputs, outputs[j])
        for spans, numbers in together.items():
            own = group
            if len(numbers) < len(group.outputs):
                own = replace(group, outputs=tuple(group.outputs[j] for j in numbers))
            own, kept = used(own)
            for piece, own_inputs in [(own, kept)] if self._machine.neighbours else cut(own, kept):
                arrays = [inputs[k] for k in own_inputs]
                self._add_nest(piece, (*arrays, *(outputs[j] for j in numbers)), spans)

    def _add_scatter(self, group: Group, inputs: tuple[int, ...], number: int) -> None:
        """Add the launches that fill an output, combine elements with it, and round it."""
        (output,) = group.outputs
        initial, shape = output.initial, output.type.shape
        assert initial is not None
        dtype = output.type.dtype
        wide = scatters.held(output, self._machine)
        target = number if wide is dtype else self._temporary(wide, prod(shape))
        whole = (True,) * len(shape)
        given: tuple[int, ...] = ()
        if initial.op == "parameter":
            given = (inputs[int(initial.value)],)  # type: ignore[arg-type]  # a number
            initial = ex.parameter(0, dtype)
        type_ = TensorType(wide, shape)
        fill = Group(
            f"{group.name}: initial",
            shape,
            tuple(GroupInput(output.type, whole) for _ in given),
            (),
            (GroupOutput(ex.cast(initial, wide), type_, whole),),
        )
        self._add_nest(fill, (*given, target))
        own = replace(
            output, type=type_, expression=ex.cast(output.expression, wide), initial=None
        )
        scatter, kept = used(replace(group, outputs=(own,)))
        loops = Loops(scatter, own.spans)
        arrays = (*(inputs[k] for k in kept), target)
        if own.combine == "last" and scatters.never_meet(loops):
            self._run(loops, form_of(loops, self._machine, split=False), arrays)
        elif 0 not in loops.lengths:
            key = loops.key(), self._machine, "scatter"
            made = _kernels.get(key) or _keep(key, scatters.write(loops, self._machine), 1)
            items = [loops.lengths[axis] for axis in scatters.apart(loops, self._machine)]
            for numbers, steps in scatters.shares(loops, self._machine):
                loops.values.update(numbers)
                self._launch(made[0], loops, arrays, prod(items), steps * 8, steps)
        if target != number:
            source = GroupInput(type_, whole)
            rounded = GroupOutput(parameter(0, wide, dtype), output.type, whole)
            self._add_nest(
                Group(f"{group.name}: rounded", shape, (source,), (), (rounded,)),
                (target, number),
            )

    def _add_levels(
        self,
        group: Group,
        inputs: tuple[int, ...],
        outputs: Sequence[int],
        numbers: Sequence[int],
        results: Sequence[GroupInput],
    ) -> None:
        """Add the launches of reductions that are taken in parts: of one level after another."""
        owners, first = result_owners(group), len(group.inputs)
        for at, level in enumerate(levels_of(group)):
            own = [k for k, owner in enumerate(owners) if owner in level]
            before = [k for k, owner in enumerate(owners) if owner not in level]
            new = tuple((first + k, first + now) for now, k in enumerate([*before, *own]))
            count = len(group.reductions)
            part = replace(
                group,
                inputs=(*group.inputs, *(results[k] for k in before)),
                reductions=tuple(
                    replace(group.reductions[number], expression=renumbered(roots, new)[0])
                    for number, roots in enumerate(results_roots(group))
                    if number in level and number < count
                ),
                folds=tuple(
                    replace(
                        group.folds[number - count],
                        elements=renumbered(roots, new),
                    )
                    for number, roots in enumerate(results_roots(group))
                    if number in level and number >= count
                ),
                outputs=() if at else group.outputs,
            )
            arrays = (*inputs, *(numbers[k] for k in before))
            written = () if at else outputs
            targets = [(numbers[k], results[k]) for k in own]
            self._add_parts(part, arrays, written, targets)

    def _add_parts(
        self,
        group: Group,
        arrays: tuple[int, ...],
        written: Sequence[int],
        targets: Sequence[tuple[int, GroupInput]],
    ) -> None:
        """Add a launch for the parts of reductions, and those that combine the parts."""
        made = self._add_part_kernel(group, arrays, written)
        numbers, results = zip(*targets, strict=True)
        types = [each.type for each in results]
        self.add(made.combination(group, types), made.numbers, numbers)

    def _add_part_kernel(
        self,
        group: Group,
        arrays: tuple[int, ...],
        written: Sequence[int] = (),
        part: int | None = None,
    ) -> parts.Parts:
        """Add the launch that writes parts; ``part``: of so much of an axis, if it is given."""
        group, kept = used(group)
        loops = Loops(group)
        form = form_of(loops, self._machine, split=True, alone=part is not None)
        axis = loops.reduced.index(True)
        if part is None:
            part = parts.choose_part(loops, axis, self._machine)
            if parts.takes_columns(loops, form):
                form = form._replace(columns=True, vectors=1)
                part = min(loops.lengths[axis], columns.rows_of_item(group))
        count = -(-loops.lengths[axis] // part)
        loops.values.update(part=part, parts=count)
        side = form.segmented or form.across
        shape = parts.shape_of(loops, count, across=side)
        dtypes = parts.dtypes_of(group, self._machine)
        numbers = tuple(self._temporary(dtype, prod(shape)) for dtype in dtypes)
        self._run(loops, form, [*(arrays[k] for k in kept), *written, *numbers])
        return parts.Parts(dtypes, numbers, shape, len(shape) - 1 - side)

    def _add_scan(self, group: Group, inputs: tuple[int, ...], outputs: Sequence[int]) -> bool:
        """Add the launches of scans in parts, if that keeps neighbours busy.

        They reduce the parts, scan the results, and scan each part from there.
        """
        if not parts.is_scanned_in_parts(group, self._machine):
            return False
        total = replace(
            group,
            reductions=tuple(replace(each, running=False) for each in group.reductions),
            outputs=(),
        )
        loops, other = Loops(group), Loops(used(total)[0])
        if (loops.lengths, loops.reduced) != (other.lengths, other.reduced):
            return False
        axis = loops.reduced.index(True)
        part = parts.choose_part(loops, axis, self._machine, alone=True)
        made = self._add_part_kernel(total, inputs, part=part)
        carried = [self._temporary(dtype, prod(made.shape)) for dtype in made.dtypes]
        self.add(made.sums_before(group), made.numbers, tuple(carried))
        form = form_of(loops, self._machine, split=True, alone=True)
        loops.values.update(part=part, parts=-(-loops.lengths[axis] // part))
        self._run(loops, form, [*inputs, *outputs, *carried])
        return True

    def _add_nest(
        self, group: Group, arrays: Sequence[int], over: Sequence[bool] | None = None
    ) -> None:
        if over is None and self._add_product(group, arrays):
            return
        loops = Loops(group, over)
        self._run(loops, form_of(loops, self._machine, split=False), arrays)

    def _run(self, loops: Loops, form: Form, arrays: Sequence[int]) -> None:
        """Add the launch of one nest, if it has items."""
        kept = [loops.lengths[axis] for axis in loops.kept()]
        if 0 in kept:
            return
        if form.tail:
            del kept[-1]
        inside = prod(loops.lengths) // max(1, prod(kept))
        items = prod(kept)
        if form.segmented:
            size = self._segment(loops, form, kept[-1], inside)
            segments = -(-kept[-1] // size)
            loops.values.update(size=size, segments=segments)
            if segments == 1 and len(loops.lengths) > 1:  # of one axis, a kernel takes any length
                form = form._replace(whole=True)
            elif form.rows:
                form = form._replace(rows=False)
            items, inside = prod(kept[: -1 - form.rows]) * segments, inside * min(size, kept[-1])
            inside *= kept[-2] if form.rows else 1
        if form.tiled is not None:
            items, inside = tiles.share_out(loops, form.tiled, self._machine)
        if form.split:
            items, inside = items * loops.values["parts"], inside // loops.values["parts"]
        generalize(loops, form, self._machine)
        key = loops.key(), self._machine, form
        made = _kernels.get(key)
        if made is None:
            writer = columns.Columns if form.columns else WorkGroups if form.members > 1 else Nest
            writer = writer if form.tiled is None else tiles.Tiles
            nest = writer(loops, self._machine, form)
            made = _keep(key, nest.kernel(), nest.cost)
        steps = max(1, inside // form.members)
        self._launch(made[0], loops, arrays, items, steps * made[1], steps)

    def _segment(self, loops: Loops, form: Form, length: int, inside: int) -> int:
        """Return how many elements of the last axis that is kept an item takes."""
        if form.strip is not None:
            return form.lanes
        if form.columns:
            return min(length, columns.SEGMENT)
        most = self._machine.segment * (1 if cost(loops.roots) else 2)  # what is only moved
        return max(_LEAST, min(length, most // max(1, inside)))

    def _launch(
        self, kernel: Kernel, loops: Loops, arrays: Sequence[int], items: int, *costs: int
    ) -> None:
        numbers = tuple([loops.value(number.name) for number in kernel.numbers])
        self.launches.append(Launch(kernel, tuple(arrays), numbers, items, *costs))


def _keep(key: Hashable, kernel: Kernel, cost: int) -> tuple[Kernel, int]:
    if len(_kernels) >= _KERNELS_KEPT:
        del _kernels[next(iter(_kernels))]
    _kernels[key] = kernel, cost
    return kernel, cost


def _along(shape: Sequence[int], spans: Sequence[bool]) -> tuple[int, ...]:
    return tuple(length for length, spanned in zip(shape, spans, strict=True) if spanned)
