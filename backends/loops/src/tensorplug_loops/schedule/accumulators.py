"""Variables in which reductions accumulate, and what they become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import Expression
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.lowering import extreme
from tensorplug_loops.statements import Assign, name_of, variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import DType, Scalar
    from tensorplug_loops.schedule.writer import Writer

DEPTH: Final = 16
"""The number of terms that are added one after the other; the sums of such blocks are added with
their rounding errors."""


def accumulated(op: str, dtype: DType, *, wide: bool) -> DType:
    """Return the dtype in which numbers of ``dtype`` are accumulated.

    A sum or product of float32 whose parts do not fit into float32 may still be a float32.
    """
    sums = op in {"sum", "prod"} and dtype in dt.FLOATING
    return dt.float64 if sums and wide else dtype.compute


def identity(op: str, dtype: DType) -> Scalar:
    """Return the number that changes no result of the reduction ``op``."""
    if op in {"sum", "prod"}:
        return 0 if op == "sum" else 1
    if dtype in dt.FLOATING:
        return float("-inf" if op == "max" else "inf")
    return bool(op == "min") if dtype is dt.bool_ else int(dtype.min if op == "max" else dtype.max)


def combine(op: str, a: Expression, b: Expression) -> Expression:
    """Return one step of the reduction ``op``."""
    if a.dtype is dt.bool_:
        return ex.apply("logical_or" if op in {"sum", "max"} else "logical_and", a, b)
    if op in {"max", "min"}:
        return extreme(op == "max", a, b)
    return a + b if op == "sum" else a * b


class Accumulator:
    """The accumulators of one reduction of numbers of ``dtype``.

    ``copies``: how many there are, so that their additions overlap. ``lanes``: of each.
    ``exact``: whether sums that no wider dtype holds carry the error of each addition; otherwise,
    ``close_block`` adds those of blocks. ``plain``: there are so few that they are just added.
    """

    def __init__(
        self,
        w: Writer,
        op: str,
        dtype: DType,
        *,
        wide: bool,
        copies: int,
        lanes: int,
        exact: bool,
        plain: bool = False,
    ) -> None:
        self._w, self._op, self._given, self._lanes = w, op, dtype, lanes
        self.dtype = accumulated(op, dtype, wide=wide)
        summed = op == "sum" and dtype in dt.FLOATING and not plain
        carries = summed and self.dtype is dtype.compute
        self._exact, self.blocked = carries and exact, carries and not exact
        start = ex.constant(identity(op, self.dtype), self.dtype)

        def declare(count: int) -> list[str]:
            return [w.declare(start, lanes) for _ in range(count)]

        self._parts = declare(copies)
        self._sums = declare(int(self.blocked))
        self._errors = declare(int(carries))

    def _get(self, name: str) -> Expression:
        return variable(name, self.dtype)

    def terms(self, root: Expression) -> list[Expression]:
        """Write the value of an expression that is to be added; of a product, the factors."""
        plain = self._op == "sum" and self.dtype is self._given and not self._exact
        fuses = plain and root.op == "multiply" and self.dtype in dt.FLOATING
        return [self._w.value(each) for each in (root.operands if fuses else [root])]

    def add(self, copy: int, value: Expression, by: Expression | None = None) -> None:
        """Combine a copy with a number, as it is held, or with its product by another one."""
        w, name = self._w, self._parts[copy]
        if by is not None:
            w.emit(Assign(name, Expression("fma", self.dtype, (value, by, self._get(name)))))
            return
        value = w.here(w.lowering.converter.cast(value, self._given, self.dtype))
        if self._exact:
            self._add_exactly(name, self._errors[0], value)
        else:
            w.emit(Assign(name, w.here(combine(self._op, self._get(name), value))))

    def _add_exactly(self, name: str, error: str, b: Expression) -> None:
        """Add a number to a sum, and what is lost to the sum's error.

        Source: Knuth, The Art of Computer Programming, volume 2, section 4.2.2, theorem B.
        """
        w, a = self._w, self._get(name)
        after = w.let(a + b)
        part = after - a
        left = w.here((a - (after - part)) + (b - part))
        w.emit(Assign(error, self._get(error) + left))
        w.emit(Assign(name, after))

    def variables(self) -> list[tuple[str, DType]]:
        """Return the variables of the only copy."""
        return [(name, self.dtype) for name in (*self._parts, *self._errors)]

    def join(self, values: Sequence[Expression]) -> None:
        """Combine the only copy's variables with others."""
        w, (name, *errors) = self._w, [name for name, _ in self.variables()]
        if not errors:
            w.emit(Assign(name, w.here(combine(self._op, self._get(name), values[0]))))
            return
        self._add_exactly(name, errors[0], values[0])
        w.emit(Assign(errors[0], w.here(self._get(errors[0]) + values[1])))

    def gather_lanes(self) -> None:
        """Leave one copy of one lane, which has what all have accumulated."""
        if self._lanes == 1:
            return
        w = self._w
        own = [self._fold(self._sums or self._parts), *map(self._get, self._errors)]
        first, *rest = zip(*[self._apart(w.copy(value)) for value in own], strict=True)
        names = [w.declare(value, 1) for value in first]
        self._parts, self._errors, self._sums = names[:1], names[1:], []
        self._lanes, self.blocked = 1, False
        for values in rest:
            self.join(values)

    def _apart(self, value: Expression) -> list[Expression]:
        """Return what each lane has."""
        values = [value]
        for _ in range(self._lanes.bit_length() - 1):
            values = [
                self._w.let(Expression("half", self.dtype, (each,), which))
                for each in values
                for which in (0, 1)
            ]
        return values

    def close_block(self) -> None:
        """Add what all copies have to the sum."""
        if self.blocked:
            value = self._w.copy(self._fold(self._parts))
            self._add_exactly(self._sums[0], self._errors[0], value)
            for part in self._parts:
                self._w.emit(Assign(part, ex.constant(0, self.dtype)))

    def total(self, *, across: bool) -> Expression:
        """Write the fold of all copies; of all lanes if ``across``."""
        total = self._fold(self._sums or self._parts)
        if self._errors:  # where a sum is infinite, its error is NaN, and means nothing
            error = self._fold(self._errors)
            zero = ex.constant(0, self.dtype)
            total = total + ex.where(ex.apply("equal", error, error), error, zero)
            total = self._w.here(total)
        return self._across(total) if across else total

    def result(self, *, across: bool) -> Expression:
        """Write the total, rounded to the dtype of the numbers, as it is held."""
        w = self._w
        total = self.total(across=across)
        return w.here(w.lowering.converter.cast(total, self.dtype, self._given))

    def _fold(self, names: Sequence[str]) -> Expression:
        """Combine what copies have, in pairs."""
        values = [self._get(name) for name in names]
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=True)
            values = [self._w.here(combine(self._op, a, b)) for a, b in pairs]
        return values[0]

    def _across(self, value: Expression) -> Expression:
        """Combine what lanes have, in pairs."""
        w = self._w
        for _ in range(self._lanes.bit_length() - 1):
            halves = [w.let(Expression("half", self.dtype, (value,), which)) for which in (0, 1)]
            value = w.here(combine(self._op, *halves))
        return value


class State:
    """The variables of a fold."""

    def __init__(
        self,
        w: Writer,
        initial: Sequence[Expression],
        combination: Sequence[Expression],
    ) -> None:
        self._w, self._combination = w, combination
        self.names = [w.declare(each) for each in initial]
        self._dtypes = [each.dtype for each in initial]

    def values(self) -> list[Expression]:
        """Return the state."""
        return [variable(name, d) for name, d in zip(self.names, self._dtypes, strict=True)]

    def variables(self) -> list[tuple[str, DType]]:
        """Return the variables, with their dtypes."""
        return list(zip(self.names, self._dtypes, strict=True))

    def gather_lanes(self) -> None:
        """It has one lane in work-groups."""

    def join(self, element: Sequence[Expression]) -> None:
        """Combine the state with one that follows."""
        w = self._w
        roots = ex.substitute(self._combination, [*self.values(), *element])
        new = [w.here(root) for root in roots]
        names = set(self.names)
        new = [w.copy(each) if name_of(each) in names else each for each in new]
        for name, value in zip(self.names, new, strict=True):
            w.emit(Assign(name, value))
