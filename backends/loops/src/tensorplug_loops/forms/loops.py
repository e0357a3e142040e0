"""Building groups: loops over a shape, what they read, reduce and write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import (
    DType,
    Expression,
    Group,
    GroupInput,
    GroupOutput,
    Reduction,
    Scalar,
    Shape,
    TensorType,
    expressions,
    groups,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.table import Form, Operand, Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


_LARGEST: Final = 2**63 - 1


def whole(value: int | Expression) -> Expression:
    """Return an int64: of a number of Python, or of an integer expression.

    Numbers of uint64 that do not fit become the largest one that does.
    """
    if not isinstance(value, Expression):
        return expressions.constant(value, dt.int64)
    if value.dtype is not dt.uint64:
        return expressions.cast(value, dt.int64)
    fits = value <= _LARGEST
    return expressions.where(fits, expressions.cast(value, dt.int64), whole(_LARGEST))


def quotient(index: Expression, by: int) -> Expression:
    """Return ``index // by``, rounded down."""
    return index if by == 1 else expressions.apply("floor_divide", index, by)


def rest(index: Expression, by: int) -> Expression:
    """Return ``index % by``, which is not negative."""
    return whole(0) if by == 1 else expressions.apply("remainder", index, by)


def clamped(index: Expression, length: int) -> Expression:
    """Return the nearest index in [0, length)."""
    least = expressions.apply("maximum", index, 0)
    return expressions.apply("minimum", least, length - 1)


def from_end(index: Expression, length: int) -> Expression:
    """Return an index, negative ones counted from the end, as an int64."""
    at = whole(index)
    if index.dtype not in dt.SIGNED:
        return at
    # Of the index itself: Mesa 22 takes an int64 that was an int32 for an unsigned one here.
    return expressions.where(index < 0, at + length, at)


def both(*conditions: Expression) -> Expression:
    """Return whether all conditions hold."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = expressions.apply("logical_and", result, condition)
    return result


def either(*conditions: Expression) -> Expression:
    """Return whether any condition holds."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = expressions.apply("logical_or", result, condition)
    return result


def flat(indices: Iterable[Expression], shape: Sequence[int]) -> Expression:
    """Return the position in row-major order of an element of ``shape``."""
    result: Expression | None = None
    for index, length in zip(indices, shape, strict=True):
        result = index if result is None else result * length + index
    return whole(0) if result is None else result


def is_nan(x: Expression) -> Expression:
    """Return whether a number is NaN."""
    if x.dtype not in dt.FLOATING:
        return expressions.constant(0, dt.bool_)
    return expressions.apply("logical_not", is_number(x))


def widened(x: Expression) -> Expression:
    """Return a narrow float as a number of the dtype in which it is computed."""
    return expressions.cast(x, x.dtype.compute) if x.dtype in dt.FLOATING else x


def is_number(x: Expression) -> Expression:
    """Return whether a float is not NaN."""
    return expressions.apply("equal", x, x)


def broadcast(
    shape: Shape, index: Sequence[int | Expression], target: Shape
) -> list[int | Expression]:
    """Return the index in an array of ``shape`` for an index in one to which it broadcasts."""
    lead = len(target) - len(shape)
    lengths = zip(shape, target[lead:], index[lead:], strict=True)
    return [at if length == whole else 0 for length, whole, at in lengths]


class Loops:
    """Loops over a shape, from which a group is made.

    Read all inputs first, then reduce, then fold: this is the order of a group's parameters.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self.axes = [groups.axis(number) for number in range(len(shape))]
        self._inputs: list[GroupInput] = []
        self._sources: list[int | Table] = []
        self._reductions: list[Reduction] = []
        self._folds: list[groups.Fold] = []
        self._outputs: list[GroupOutput] = []
        self._results = 0

    def read(
        self, x: Operand, *index: int | Expression, outside: Scalar | None = None
    ) -> Expression:
        """Return an element of an input, for which there is one index for each axis.

        ``outside``: its value where the index lies outside of it; None if it never does.
        """
        at = [whole(each) for each in index]
        spans = self._dense(x, at)
        if spans is None:
            made = groups.mapped(x.type, at, self.shape, self._inputs, outside=outside)
        else:
            made = GroupInput(x.type, spans)
        return self._enter(x, made)

    def read_broadcast(self, x: Operand) -> Expression:
        """Return an element of an input that broadcasts to the loops' shape."""
        return self.read(x, *broadcast(x.shape, self.axes, self.shape))

    def shifted(self, begin: Sequence[int]) -> list[Expression]:
        """Return the loops' indices, each with a number added."""
        return [at + by if by else at for at, by in zip(self.axes, begin, strict=True)]

    def read_in_order(self, x: Operand, axes: Collection[int] | None = None) -> Expression:
        """Return the elements of an input in row-major order along these axes, or all."""
        spans = tuple(axes is None or at in axes for at in range(len(self.shape)))
        return self._enter(x, GroupInput(x.type, spans))

    def read_whole(self, x: Operand) -> Expression:
        """Return what an output that is written at indices holds at first."""
        return self._enter(x, GroupInput(x.type, (False,) * len(self.shape)))

    def _enter(self, x: Operand, made: GroupInput) -> Expression:
        assert not self._results, "inputs come before results"
        self._inputs.append(made)
        self._sources.append(x.number)
        return expressions.parameter(len(self._inputs) - 1, x.dtype)

    def _dense(self, x: Operand, index: Sequence[Expression]) -> groups.Span | None:
        """Return along which axes the input lies in row-major order, if it is read so."""
        spans = [False] * len(self.shape)
        last = -1
        for at, length in zip(index, x.shape, strict=True):
            if at.op == "constant" and at.value == 0 and length == 1:
                continue
            number = int(at.value) if at.op == "axis" else -1  # type: ignore[arg-type]
            if number <= last or self.shape[number] != length:
                return None
            spans[number], last = True, number
        return tuple(spans)

    def reduce(
        self, op: Any, value: Expression, axes: Collection[int], *, running: bool = False
    ) -> Expression:
        """Return a reduction: "sum", "prod", "max" or "min" along these axes."""
        assert not self._folds, "reductions come before folds"
        self._reductions.append(Reduction(op, value, self._spans(axes), running))
        return self._result(value.dtype)

    def fold(
        self,
        elements: Sequence[Expression],
        initial: Sequence[Scalar],
        combine: Any,
        axes: Collection[int],
    ) -> list[Expression]:
        """Return the numbers of a state, of elements along these axes.

        ``combine``: a function of the state of some elements, a list, and that of the following
        ones, which returns that of all.
        """
        dtypes = [element.dtype for element in elements]
        count = len(dtypes)
        former = [expressions.parameter(at, dtype) for at, dtype in enumerate(dtypes)]
        latter = [expressions.parameter(count + at, dtype) for at, dtype in enumerate(dtypes)]
        first = tuple(expressions.constant(v, d) for v, d in zip(initial, dtypes, strict=True))
        states = tuple(combine(former, latter))
        self._folds.append(groups.Fold(tuple(elements), first, states, self._spans(axes)))
        return [self._result(dtype) for dtype in dtypes]

    def _result(self, dtype: DType) -> Expression:
        self._results += 1
        return expressions.parameter(len(self._inputs) + self._results - 1, dtype)

    def _spans(self, axes: Collection[int]) -> groups.Span:
        return tuple(at in axes for at in range(len(self.shape)))

    def write(self, out: TensorType, value: Expression) -> Form:
        """Add an output along the axes that are not reduced; return the form so far."""
        self._outputs.append(GroupOutput(value, out, self._kept()))
        return self.form()

    def write_all(self, out: TensorType, value: Expression) -> Form:
        """Add an output along all axes, in row-major order; return the form so far."""
        self._outputs.append(GroupOutput(value, out, (True,) * len(self.shape)))
        return self.form()

    def write_at(
        self,
        out: TensorType,
        index: Sequence[int | Expression],
        value: Expression,
        combine: Any,
        initial: Expression | Scalar | None,
    ) -> Form:
        """Add an output at an index; return the form so far.

        Without ``combine`` and ``initial``, no elements meet, and what is not written stays.
        """
        if not isinstance(initial, Expression | None):
            initial = expressions.constant(initial, out.dtype)
        at = tuple(whole(each) for each in index)
        made = GroupOutput(value, out, self._kept(), index=at, combine=combine, initial=initial)
        self._outputs.append(made)
        return self.form()

    def _kept(self) -> groups.Span:
        results: list[Reduction | groups.Fold] = [*self._reductions, *self._folds]
        if not results or results[0].running:
            return (True,) * len(self.shape)
        return tuple(not is_reduced for is_reduced in results[0].axes)

    def form(self) -> Form:
        """Return the group of what was read, reduced and written."""
        group = Group(
            "",
            self.shape,
            tuple(self._inputs),
            tuple(self._reductions),
            tuple(self._outputs),
            tuple(self._folds),
        )
        return Form(group, tuple(self._sources))
