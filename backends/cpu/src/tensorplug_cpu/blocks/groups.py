"""Groups, block by block."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import Group, GroupInput, GroupOutput, Reduction, expressions
from tensorplug_cpu.blocks import operations
from tensorplug_cpu.blocks.loops import Loops, spanned
from tensorplug_cpu.blocks.plans import Declined, Plan
from tensorplug_cpu.blocks.reductions import Partial
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.execution.outputs import output_allocator
from tensorplug_cpu.memory.pool import empty

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Expression, Shape
    from tensorplug_cpu.arrays import Array, Call


LEAST: Final = 1 << 14
"""With fewer elements, blocks cost more than they save."""

BLOCK: Final = 1 << 18  # bytes of a block of the widest dtype
_SHARED: Final = 1 << 20  # elements from which several threads are worth their hand-over
_LINE: Final = 64  # bytes of a line of the cache
_BYTE: Final = np.dtype(np.uint8)
_SMALL: Final = 16  # how many times smaller what is computed after the blocks must be


def compile_group(group: Group) -> Call | None:
    """Return a function of the inputs' buffers that returns the list of outputs.

    None if the group is small, or if its kernels are better run one after the other.
    """
    if prod(group.shape) < LEAST:
        return None
    try:
        return without_warnings(_Runner(group.unified()).run)
    except Declined:
        return None


def _with_leading_axis(group: Group) -> Group:
    """Return the same group with a leading axis of length 1, which reductions leave."""
    return Group(
        group.name,
        (1, *group.shape),
        tuple(GroupInput(each.type, (any(each.spans), *each.spans)) for each in group.inputs),
        tuple(
            Reduction(each.op, each.expression, (False, *each.axes)) for each in group.reductions
        ),
        tuple(
            GroupOutput(each.expression, each.type, (True, *each.spans)) for each in group.outputs
        ),
    )


class _Runner:
    """A group, cut into blocks."""

    def __init__(self, group: Group) -> None:
        nodes = expressions.linearize(group.expressions())
        widest = max(node.dtype.itemsize for node in nodes)
        most = max(1, BLOCK // widest)
        if group.reductions and prod(group.shape) <= most:
            group = _with_leading_axis(group)
        self._group = group
        self._loops = loops = Loops.of(group.shape, most)
        self._inside = not any(any(each.axes[: loops.cut + 1]) for each in group.reductions)
        late = [at for at, output in enumerate(group.outputs) if self._is_late(output)]
        early = [at for at in range(len(group.outputs)) if at not in late]
        self._early = [group.outputs[at] for at in early]
        self._late = [group.outputs[at] for at in late]
        self._order = np.argsort([*early, *late]).tolist()
        self._check()
        partial = [] if self._inside else list(group.reductions)
        self._plan = Plan(group, loops, self._early, partial)
        self._partial = [Partial(each, loops) for each in partial]
        self._allocate = [
            (output_allocator(each.type), None if late else each.into, each.type.shape)
            for each in self._early
        ]
        spans = [operand.spans for operand in group.inputs]
        spans += [output.spans for output in self._early]
        self._shapes = [spanned(group.shape, own) for own in spans]
        self._moving = [(at, own) for at, own in enumerate(spans) if loops.varies(own)]
        self._fixed = [at for at, own in enumerate(spans) if not loops.varies(own)]
        self._pieces: list[tuple[int, np.dtype[Any], Shape, int, int]] = []
        self._bytes = 0
        for at, (dtype, shape) in (*self._plan.once.items(), *self._plan.scratch.items()):
            start, stop = self._bytes, self._bytes + prod(shape) * dtype.itemsize
            self._pieces.append((at, dtype, shape, start, stop))
            self._bytes = -(-stop // _LINE) * _LINE
        self._shared = prod(group.shape) >= _SHARED and loops.count > 1

    def _refers(self, expression: Expression) -> bool:
        """Return whether an expression uses the result of a reduction."""
        first = len(self._group.inputs)
        return any(
            node.op == "parameter" and int(node.value) >= first  # type: ignore[arg-type]  # an integer
            for node in expressions.linearize([expression])
        )

    def _is_late(self, output: GroupOutput) -> bool:
        """Return whether an output is computed once, after all blocks."""
        if not all(output.spans[: self._loops.cut + 1]):
            return True
        return not self._inside and self._refers(output.expression)

    def _check(self) -> None:
        """Decline what blocks do not help."""
        size = prod(self._group.shape)
        small = [spanned(self._group.shape, output.spans) for output in self._late]
        if not self._inside:
            small += [self._loops.partial_shape(each.axes) for each in self._group.reductions]
            if any(self._refers(each.expression) for each in self._group.reductions):
                raise Declined
        elif self._group.reductions and self._late:
            raise Declined
        if any(prod(shape) * _SMALL > size for shape in small):
            raise Declined

    def run(self, *inputs: Array) -> list[Array]:
        """Return the outputs."""
        loops = self._loops
        results = [
            allocate() if into is None else _overwritten(inputs[into], shape, allocate)
            for allocate, into, shape in self._allocate
        ]
        arrays = [
            _arranged(array, shape)
            for array, shape in zip((*inputs, *results), self._shapes, strict=True)
        ]
        partials = [reduction.empty() for reduction in self._partial]

        def work(numbers: Array) -> None:
            self._blocks(arrays, partials, int(numbers[0]), int(numbers[-1]) + 1)

        if self._shared:
            parallel.share_out(work, (), np.arange(loops.count))
        else:
            self._blocks(arrays, partials, 0, loops.count)
        totals = [
            reduction.combine(partial)
            for reduction, partial in zip(self._partial, partials, strict=True)
        ]
        results += self._after(arrays[: len(inputs)], totals)
        return [results[at] for at in self._order]

    def _blocks(
        self, parameters: Sequence[Array], partials: Sequence[Array], first: int, end: int
    ) -> None:
        """Compute the blocks from ``first`` to ``end``."""
        plan, loops = self._plan, self._loops
        arrays: list[Any] = [*parameters, *[None] * plan.count]
        for at, array in plan.constants.items():
            arrays[at] = array
        memory = empty((self._bytes,), _BYTE)
        for at, dtype, shape, start, stop in self._pieces:
            arrays[at] = memory[start:stop].view(dtype).reshape(shape)
        for at in self._fixed:
            array = arrays[at]
            arrays[at] = array.reshape(array.shape[loops.cut :] if array.size > 1 else ())
        for function, operands, target in plan.before:
            operations.run(function, arrays[target], [arrays[at] for at in operands])
        whole = list(arrays)
        length = loops.chunk
        for number in range(first, end):
            before, start, stop = loops.locate(number)
            if stop - start != length:
                length = stop - start
                self._set_length(arrays, whole, length)
            for at, spans in self._moving:
                arrays[at] = parameters[at][loops.index(spans, before, slice(start, stop))]
            for function, operands, target in plan.steps:
                operations.run(function, arrays[target], [arrays[at] for at in operands])
            for source, reduction, partial in zip(
                plan.sources, self._partial, partials, strict=True
            ):
                index = loops.partial_index(reduction.axes, before, number, start, stop)
                reduction.of_block(partial[index], arrays[source])

    def _set_length(self, arrays: list[Any], whole: Sequence[Array], length: int) -> None:
        """Cut the arrays of the plan to the length of a block, which is shorter at the end."""
        for at in (*self._plan.once, *self._plan.scratch):
            if whole[at].ndim and len(whole[at]) == self._loops.chunk:
                arrays[at] = whole[at][:length]

    def _after(self, inputs: Sequence[Array], totals: Sequence[Array]) -> list[Array]:
        """Return the outputs that are computed once, from whole arrays."""
        parameters = [*inputs, *totals]
        arrays: dict[int, Array] = {}
        for node in expressions.linearize([output.expression for output in self._late]):
            arrays[id(node)] = _whole(node, arrays, parameters)
        results = []
        for output in self._late:
            shape = spanned(self._group.shape, output.spans)
            full = np.broadcast_to(arrays[id(output.expression)], shape)
            results.append(full.reshape(output.type.shape).copy())
        return results


def _whole(node: Expression, arrays: dict[int, Array], parameters: Sequence[Array]) -> Array:
    """Return an operation on whole arrays."""
    if node.op == "parameter":
        return parameters[int(node.value)]  # type: ignore[arg-type]  # an integer
    if node.op == "constant":
        return operations.constant(node)
    operands = [arrays[id(operand)] for operand in node.operands]
    shape = np.broadcast_shapes(*[operand.shape for operand in operands])
    result = np.empty(shape, node.dtype.numpy)
    if node.op == "fma":
        np.add(np.multiply(operands[0], operands[1]), operands[2], out=result)
        return result
    body = operations.body_of(node)
    if body is None:
        raise Declined
    operations.run(body.function, result, operands)
    return result


def _overwritten(array: Array, shape: Shape, allocate: Callable[[], Array]) -> Array:
    """Return the memory of an array, in another shape; new memory if it cannot be written to."""
    flags = array.flags
    return array.reshape(shape) if flags.c_contiguous and flags.writeable else allocate()


def _arranged(array: Array, shape: tuple[int, ...]) -> Array:
    """Return an array in another shape, with its last axis in one piece."""
    view = array.reshape(shape)
    if view.strides and view.strides[-1] not in (0, view.itemsize):
        return np.ascontiguousarray(view)
    return view
