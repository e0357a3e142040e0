"""Groups as kernels of LLVM.

A group without reductions is one kernel over rows. So is one with reductions along its last axis,
if a row fits into the cache: softmax reads and writes memory once. Other reductions are taken
level by level: a kernel computes partial results of blocks of fixed sizes, which are combined
afterwards; another one computes the outputs.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import expressions
from tensorplug_cpu.jit.codegen import settings
from tensorplug_cpu.jit.codegen.compiler import CompilationError
from tensorplug_cpu.jit.groups import columns, rows
from tensorplug_cpu.jit.groups.accumulators import accumulated
from tensorplug_cpu.jit.groups.layouts import Strided, arguments, collapse, dense_strides
from tensorplug_cpu.jit.groups.roots import cost_of, find_levels, lowered, renumber
from tensorplug_cpu.jit.groups.steps import Folding, Kernel, Memory, Step, make_arrays, run_one
from tensorplug_cpu.jit.groups.threads import make_launch
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tensorplug.plugin import DType, Expression, Group, Shape
    from tensorplug_cpu.arrays import Array
    from tensorplug_cpu.jit.groups.layouts import Layout, Span


_SEGMENT: Final = 1 << 14  # elements of a row that one item covers, where it covers a part
_COLUMNS: Final = 1 << 12  # elements of a row that an item covers where it covers several rows
_LONGEST_ROW: Final = 1 << 16  # elements; longer ones do not stay in a core's cache
_FEW_ROWS: Final = 4
_SHORT_ROW: Final = 1 << 13  # elements; a few longer ones are taken in parts, by all threads
_KEPT_BYTES: Final = 1 << 18  # of values kept for a row, on the stack of a thread


def compile_group(group: Group) -> Callable[..., list[Array]] | None:
    """Return a function that computes a group through LLVM; None to decline it.

    It takes arrays positionally and returns arrays in row-major order. Groups with complex
    numbers, and without elements, are declined, and those that LLVM refuses.
    """
    if settings.least_elements() is None or not all(group.shape):
        return None
    roots = lowered(tuple(group.expressions()))
    if roots is None:
        return None
    try:
        return _Plan(group, roots).runner()
    except CompilationError:  # by LLVM, which names no reason that a user could act on
        return None


class _Value(NamedTuple):
    """An array that a kernel reads or writes: an input, a result of a reduction, an output."""

    dtype: DType
    spans: Span


def kernels_of(group: Group) -> tuple[list[Step], range] | None:
    """Return the kernels of a group, in order, and the numbers of its outputs; None to decline.

    Each ``launch`` is a ``Kernel``, and what is allocated is ``Memory``.
    """
    roots = lowered(tuple(group.expressions())) if all(group.shape) else None
    if roots is None:
        return None
    plan = _Plan(group, roots, Kernel.of, Memory)
    return plan.steps, plan.outputs


class _Plan:
    """The kernels of a group, in order.

    Arrays are numbered: the inputs and the results of reductions, as parameters are, then the
    outputs.
    """

    def __init__(
        self,
        group: Group,
        roots: Sequence[Expression],
        make: Callable[..., Any] = make_launch,
        allocate: Callable[..., Any] = allocator,
    ) -> None:
        self._make, self._allocate = make, allocate
        count = len(group.reductions)
        self._shape = group.shape
        self._inputs = len(group.inputs)
        self._ops = [reduction.op for reduction in group.reductions]
        self._reduced, self._outputs = roots[:count], roots[count:]
        axes = group.reductions[0].axes if count else (False,) * len(group.shape)
        self._kept = tuple(not axis for axis in axes)
        self._arrays = [
            *(_Value(operand.type.dtype, operand.spans) for operand in group.inputs),
            *(_Value(root.dtype, self._kept) for root in self._reduced),
            *(_Value(output.type.dtype, output.spans) for output in group.outputs),
        ]
        self._first_output = self._inputs + count
        self.outputs = range(self._first_output, len(self._arrays))
        self._targets = group.outputs
        self._left = list(self.outputs)  # to be written
        self._levels = find_levels(tuple(self._reduced), self._inputs)
        self.steps: list[Step] = []
        if not count or not self._add_rows():
            for level in self._levels:
                self._add_reductions(level)
            self._add_outputs()

    def runner(self) -> Callable[..., list[Array]]:
        """Return the function that computes the outputs."""
        if len(self.steps) != 1:
            return self._run
        step = self.steps[0]
        if (*step.reads, *step.writes) != (*range(self._inputs), *self.outputs):
            return self._run
        return run_one(step)

    def _run(self, *buffers: Array) -> list[Array]:
        arrays: list[Any] = [None] * len(self._arrays)
        arrays[: self._inputs] = map(np.ascontiguousarray, buffers)
        for step in self.steps:
            made = make_arrays(step.allocate, arrays)
            step.launch(*[arrays[number] for number in step.reads], *made)
            for number, array in zip(step.writes, made, strict=True):
                arrays[number] = array
            for number, finish in zip(step.writes, step.finish, strict=False):
                arrays[number] = finish(arrays[number])
        return arrays[self._first_output :]

    def _strided(self, layout: Layout, number: int) -> Strided:
        """Return an array, but for the last axis of a layout."""
        value = self._arrays[number]
        return Strided(layout.strides(value.dtype.itemsize, value.spans)[:-1])

    def _operands(self, layout: Layout, numbers: Sequence[int]) -> tuple[rows.Operand, ...]:
        return tuple(
            rows.Operand(self._arrays[number].dtype, layout.marks(self._arrays[number].spans)[-1])
            for number in numbers
        )

    def _allocators(self, outputs: Sequence[int]) -> list[Callable[[], Array] | int]:
        targets = [self._targets[number - self._first_output] for number in outputs]
        return [
            self._allocate(each.type.shape, each.type.dtype.numpy)
            if each.into is None
            else each.into
            for each in targets
        ]

    def _add_rows(self) -> bool:
        """Add one kernel for everything, if the group has that form; return whether it has."""
        whole = (True,) * len(self._shape)
        outputs = self.outputs
        if any(self._arrays[number].spans not in (whole, self._kept) for number in outputs):
            return False
        reads = range(self._inputs)
        numbers = [*reads, *outputs]
        layout = collapse(
            self._shape, [self._kept, *(self._arrays[number].spans for number in numbers)]
        )
        *outer, length = layout.lengths
        *before, kept = layout.marks(self._kept)
        if kept or not all(before):
            return False
        if length > _LONGEST_ROW or (prod(outer) < _FEW_ROWS and length > _SHORT_ROW):
            return False
        form = rows.Form(
            len(outer),
            self._operands(layout, reads),
            tuple(zip(self._ops, self._reduced, strict=True)),
            self._levels,
            tuple(
                rows.Target(root, operand.dtype, operand.inner)
                for root, operand in zip(
                    self._outputs, self._operands(layout, outputs), strict=True
                )
            ),
        )
        module = rows.write_rows(form)
        sizes: dict[Hashable, int] = {
            ("kept", at): length * dtype.itemsize for at, dtype in enumerate(module.kept)
        }
        if sum(sizes.values()) > _KEPT_BYTES:
            return False
        operands = [self._strided(layout, number) for number in numbers]
        values = {**arguments(outer, length, length, operands), **sizes}
        work = length * (cost_of((*self._reduced, *self._outputs)) + 2 * len(numbers))
        launch = self._make(module, values, work)
        self.steps.append(Step(launch, reads, outputs, self._allocators(outputs)))
        return True

    def _add_outputs(self) -> None:
        """Add a kernel for the outputs that span the same axes, for each such set of axes."""
        outputs: dict[Span, list[int]] = {}
        for number in self._left:
            outputs.setdefault(self._arrays[number].spans, []).append(number)
        for spans, writes in outputs.items():
            used = tuple([self._outputs[each - self._first_output] for each in writes])
            reads, roots = renumber(used)
            layout = collapse(self._shape, [self._arrays[each].spans for each in reads], spans)
            *outer, length = layout.lengths
            dtypes = [self._arrays[number].dtype for number in writes]
            form = rows.Form(
                len(outer),
                self._operands(layout, reads),
                targets=tuple(
                    rows.Target(root, dtype, inner=True)
                    for root, dtype in zip(roots, dtypes, strict=True)
                ),
            )
            operands = [self._strided(layout, number) for number in (*reads, *writes)]
            segment = min(length, _SEGMENT)
            values = arguments(outer, length, segment, operands)
            work = segment * (cost_of(roots) + 2 * len(operands))
            launch = self._make(rows.write_rows(form), values, work)
            self.steps.append(Step(launch, reads, writes, self._allocators(writes)))

    def _add_reductions(self, level: Sequence[int]) -> None:
        """Add a kernel for partial results of the reductions of one level.

        It also writes the outputs that depend on inputs alone, if it goes along their rows.
        """
        numbers = [self._inputs + number for number in level]
        roots = tuple([self._reduced[number] for number in level])
        ops = [self._ops[number] for number in level]
        whole = (True,) * len(self._shape)
        free = [
            number
            for number in self._left
            if self._arrays[number].spans == whole
            and max(renumber((self._outputs[number - self._first_output],))[0], default=0)
            < self._inputs
        ]
        made = None
        for outputs in (free, []):
            more = tuple([self._outputs[number - self._first_output] for number in outputs])
            reads, renumbered = renumber(roots + more)
            reductions = list(zip(ops, renumbered, strict=False))
            spans = [self._arrays[number].spans for number in (*reads, *outputs)]
            layout = collapse(self._shape, [self._kept, *spans])
            if layout.marks(self._kept)[-1]:
                if not outputs:
                    made = self._reduce_columns(layout, reads, reductions)
            else:
                targets = list(zip(outputs, renumbered[len(ops) :], strict=True))
                made = self._reduce_rows(layout, reads, reductions, targets)
            if made is not None:
                break
        assert made is not None
        launch, shape, axes = made
        self._left = [number for number in self._left if number not in outputs]
        result = tuple(
            length for length, kept in zip(self._shape, self._kept, strict=True) if kept
        )
        memory = [
            self._allocate(shape, accumulated(op, root.dtype).numpy) for op, root in reductions
        ]
        folds = [Folding(op, axes, root.dtype, result) for op, root in reductions]
        memory += self._allocators(outputs)
        self.steps.append(Step(launch, reads, [*numbers, *outputs], memory, folds))

    def _reduce_rows(
        self,
        layout: Layout,
        reads: Sequence[int],
        reductions: Sequence[tuple[str, Expression]],
        outputs: Sequence[tuple[int, Expression]],
    ) -> tuple[Callable[..., None], Shape, list[int]] | None:
        """Return a kernel, the shape of its results, and the axes along which they are folded.

        An item is a segment of the last axis. ``outputs``: by number, those that it writes too;
        None if they need values that their rows cannot keep.
        """
        *outer, length = layout.lengths
        segment = min(length, 2 * _SEGMENT)
        shape = (*outer, -(-length // segment))
        targets = [
            rows.Target(
                expressions.parameter(len(reads) + at, root.dtype),
                accumulated(op, root.dtype),
                inner=False,
            )
            for at, (op, root) in enumerate(reductions)
        ]
        form = rows.Form(
            len(outer),
            self._operands(layout, reads),
            tuple(reductions),
            (tuple(range(len(reductions))),),
            (
                *targets,
                *(rows.Target(root, self._arrays[at].dtype, inner=True) for at, root in outputs),
            ),
            partial=True,
        )
        module = rows.write_rows(form)
        if module.kept:
            return None
        operands = [self._strided(layout, number) for number in reads]
        for each in targets:
            *strides, between = dense_strides(shape, each.dtype.itemsize)
            operands.append(Strided(tuple(strides), between))
        operands += [self._strided(layout, number) for number, _ in outputs]
        values = arguments(outer, length, segment, operands)
        work = segment * (cost_of(tuple(form.roots())) + 2 * len(reads))
        kept = layout.marks(self._kept)
        axes = [axis for axis, spanned in enumerate(kept) if not spanned]
        return self._make(module, values, work), shape, axes

    def _reduce_columns(
        self, layout: Layout, reads: Sequence[int], reductions: Sequence[tuple[str, Expression]]
    ) -> tuple[Callable[..., None], Shape, list[int]]:
        """Return a kernel, the shape of its results, and the axes along which they are folded.

        An item is a segment of the last axis in some adjacent rows.
        """
        lengths, kept = layout.lengths, layout.marks(self._kept)
        across = max((axis for axis, spanned in enumerate(kept) if not spanned), default=-1)
        deep = lengths[across] if across >= 0 else 1  # all reduced axes have length 1
        outer = [axis for axis in range(len(kept) - 1) if axis != across]
        marks = [layout.marks(self._arrays[number].spans) for number in reads]
        form = columns.Columns(
            len(outer),
            tuple(
                columns.ColumnOperand(
                    self._arrays[number].dtype, across >= 0 and mark[across], mark[-1]
                )
                for number, mark in zip(reads, marks, strict=True)
            ),
            tuple(reductions),
        )
        depth = columns.DEPTH * form.together
        shape = (*(lengths[axis] for axis in outer), -(-deep // depth), lengths[-1])
        operands: list[Strided] = []
        steps: dict[Hashable, int] = {}
        for k, number in enumerate(reads):
            value = self._arrays[number]
            strides = layout.strides(value.dtype.itemsize, value.spans)
            step = steps["row", k] = strides[across] if across >= 0 else 0
            operands.append(Strided((*(strides[axis] for axis in outer), depth * step)))
        operands += [Strided(dense_strides(shape, dtype.itemsize)[:-1]) for dtype in form.targets]
        segment = min(lengths[-1], _COLUMNS)
        values = {
            **arguments(shape[:-1], lengths[-1], segment, operands),
            **steps,
            "rows": deep,
            "depth": depth,
        }
        root_cost = cost_of(tuple([root for _, root in reductions]))
        work = depth * segment * (root_cost + 2 * len(reads))
        axes = [at for at, axis in enumerate(outer) if not kept[axis]] + [len(outer)]
        return self._make(columns.write_columns(form), values, work), shape, axes
