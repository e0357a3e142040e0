"""The steps that compute a group in one block of elements, and the memory that they use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.plugin import expressions
from tensorplug_cpu.blocks import operations, reductions
from tensorplug_cpu.numerics.casting import copied

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tensorplug.plugin import Expression, Group, GroupOutput, Reduction, Shape
    from tensorplug_cpu.arrays import Array
    from tensorplug_cpu.blocks.loops import Loops, Spans


_NARROW: Final = 64  # elements up to which an operand of each block is repeated


class Declined(Exception):  # noqa: N818  # not an error
    """The group is not for this renderer."""


class Step(NamedTuple):
    """One body, on arrays with these numbers."""

    function: Any
    operands: tuple[int, ...]
    target: int


@dataclass(eq=False)
class _Value:
    """What one operation gives.

    ``shape``: in a block. ``moves``: whether it is computed for each block. ``function``: None if
    it is an input or a constant. ``in_place``: as in ``Body``.
    """

    dtype: np.dtype[Any]
    spans: Spans
    shape: Shape
    moves: bool
    function: Any
    operands: tuple[_Value, ...]
    in_place: bool
    constant: Array | None = None


class Plan:
    """Steps, and the numbers of the arrays between which they run.

    The arrays are the inputs, the outputs, and then others, in this order.

    Attributes:
        constants: numbers of rank 0, by number of the array.
        once: dtype and shape of the arrays that ``before`` fills, by number.
        scratch: dtype and shape of the arrays that every block overwrites, by number.
        before: the steps before the first block.
        steps: those for each block.
        sources: the arrays that hold what is reduced between blocks.
        count: the number of arrays beside inputs and outputs.

    """

    def __init__(
        self,
        group: Group,
        loops: Loops,
        outputs: Sequence[GroupOutput],
        partial: Sequence[Reduction],
    ) -> None:
        self._loops = loops
        self._values: list[_Value] = []
        self._by_expression: dict[int, _Value] = {}
        self.constants: dict[int, Array] = {}
        self.once: dict[int, tuple[np.dtype[Any], Shape]] = {}
        self.scratch: dict[int, tuple[np.dtype[Any], Shape]] = {}
        self.before: list[Step] = []
        self.steps: list[Step] = []
        self._given = [
            self._add(operand.type.dtype.numpy, operand.spans) for operand in group.inputs
        ]
        inputs = len(self._given)
        if not partial:
            for reduction in group.reductions:
                self._given.append(self._reduce(reduction))
        numbers: dict[_Value, int] = {}
        for number, output in enumerate(outputs, inputs):
            value = self._emit(output.expression)
            computed = value.moves and value.function is not None and value not in numbers
            if not computed or value.spans != output.spans:
                value = self._copy(value, output.spans, moves=True)
            numbers[value] = number
        sources = [self._source(reduction) for reduction in partial]
        copied_last = [
            value
            for value, output in zip(numbers, outputs, strict=True)
            if output.into is not None and not self._may_overwrite(value, output.into, sources)
        ]
        self._assign(inputs, numbers, sources, copied_last)

    def _add(
        self,
        dtype: np.dtype[Any],
        spans: Spans,
        function: Any = None,
        operands: Sequence[_Value] = (),
        *,
        in_place: bool = False,
        moves: bool | None = None,
    ) -> _Value:
        shape = self._loops.inside(spans) if any(spans) else ()
        varies = self._loops.varies(spans) if moves is None else moves
        value = _Value(dtype, spans, shape, varies, function, tuple(operands), in_place)
        self._values.append(value)
        return value

    # Values ------------------------------------------------------------------------------

    def _emit(self, root: Expression) -> _Value:
        """Return the value of an expression, after adding those that it needs."""
        for expression in expressions.linearize([root]):
            if id(expression) not in self._by_expression:
                self._by_expression[id(expression)] = self._value(expression)
        return self._by_expression[id(root)]

    def _value(self, expression: Expression) -> _Value:
        dtype = expression.dtype.numpy
        if expression.op == "parameter":
            return self._given[int(expression.value)]  # type: ignore[arg-type]  # an integer
        if expression.op == "constant":
            value = self._add(dtype, (False,) * len(self._loops.shape))
            value.constant = operations.constant(expression)
            return value
        operands = [self._by_expression[id(operand)] for operand in expression.operands]
        if expression.op == "cast" and expression.operands[0].dtype is expression.dtype:
            return operands[0]  # NumPy rounds each operation
        if expression.op == "fma":
            product = self._step(operations.MULTIPLY, operands[:2], dtype)
            return self._step(operations.ADD, [product, operands[2]], dtype)
        body = operations.body_of(expression)
        if body is None:
            raise Declined
        return self._step(body, operands, dtype)

    def _step(
        self, body: operations.Body, operands: Sequence[_Value], dtype: np.dtype[Any]
    ) -> _Value:
        spans = tuple(any(axis) for axis in zip(*(each.spans for each in operands), strict=True))
        if self._loops.varies(spans):
            operands = [self._repeated(body, operand, spans) for operand in operands]
        return self._add(dtype, spans, body.function, operands, in_place=body.in_place)

    def _repeated(self, body: operations.Body, operand: _Value, spans: Spans) -> _Value:
        """Return an operand, repeated to a block where NumPy would be slow without that."""
        slow = False
        if not any(operand.spans):
            slow = body.slow_numbers
        elif operand.spans != spans:
            slow = self._loops.is_narrow(operand.spans, _NARROW if operand.moves else None)
        return self._copy(operand, spans, moves=operand.moves) if slow else operand

    def _copy(self, operand: _Value, spans: Spans, *, moves: bool) -> _Value:
        """Return a copy of a value, repeated along ``spans``."""
        return self._add(operand.dtype, spans, copied, [operand], moves=moves)

    def _source(self, reduction: Reduction) -> _Value:
        """Return what a reduction reduces, with all axes along which it does."""
        value = self._emit(reduction.expression)
        spans = tuple(
            own or reduced for own, reduced in zip(value.spans, reduction.axes, strict=True)
        )
        if spans == value.spans and value.moves:
            return value
        return self._copy(value, spans, moves=True)

    def _reduce(self, reduction: Reduction) -> _Value:
        """Return the value of a reduction inside each block."""
        source, dtype, cut = self._source(reduction), reduction.expression.dtype, self._loops.cut
        axes = tuple(at - cut for at, reduced in enumerate(reduction.axes) if reduced)
        spans = tuple(
            own and not reduced for own, reduced in zip(source.spans, reduction.axes, strict=True)
        )
        function = reductions.of_block(reduction.op, axes, dtype)
        return self._add(dtype.numpy, spans, function, [source], moves=True)

    def _may_overwrite(self, value: _Value, number: int, sources: Sequence[_Value]) -> bool:
        """Return whether a value may be computed into the memory of an input."""
        overwritten = self._given[number]
        at = self._values.index(value)
        if overwritten in sources or any(
            overwritten in later.operands for later in self._values[at + 1 :]
        ):
            return False
        return overwritten not in value.operands or value.in_place

    # Arrays ------------------------------------------------------------------------------

    def _assign(
        self,
        inputs: int,
        numbers: dict[_Value, int],
        sources: Sequence[_Value],
        copied_last: Sequence[_Value],
    ) -> None:
        """Give each value an array; those of the scratch are used again once they are free.

        ``copied_last``: outputs to be computed in the scratch, and copied to their places in the
        end.
        """
        last: dict[_Value, _Value | None] = {}
        for value in self._values:
            last.update(dict.fromkeys(value.operands, value))
        last.update(dict.fromkeys([*sources, *copied_last]))  # used after the last step
        arrays = {value: at for at, value in enumerate(self._given[:inputs])}
        self._next = inputs + len(numbers)
        free: list[int] = []
        for value in self._values:
            if value in arrays:
                continue
            if value.constant is not None or not value.moves:
                arrays[value] = number = self._new()
                if value.constant is not None:
                    self.constants[number] = value.constant
                    continue
                self.once[number] = value.dtype, value.shape
                steps = self.before
            else:
                unused = [
                    arrays[operand]
                    for operand in dict.fromkeys(value.operands)
                    if last[operand] is value and arrays[operand] in self.scratch
                ]
                if value.in_place:
                    free += unused
                outside = None if value in copied_last else numbers.get(value)
                arrays[value] = self._scratch(value, free) if outside is None else outside
                if not value.in_place:
                    free += unused
                steps = self.steps
            operands = tuple(arrays[operand] for operand in value.operands)
            steps.append(Step(value.function, operands, arrays[value]))
        self.steps += [Step(copied, (arrays[value],), numbers[value]) for value in copied_last]
        self.sources = [arrays[source] for source in sources]
        self.count = self._next - inputs - len(numbers)

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    def _scratch(self, value: _Value, free: list[int]) -> int:
        for number in reversed(free):
            if self.scratch[number] == (value.dtype, value.shape):
                free.remove(number)
                return number
        number = self._new()
        self.scratch[number] = value.dtype, value.shape
        return number
