"""Kernels for reductions along an axis before the last one: sums of columns.

One item is a segment of some adjacent rows, and its results are one row of partial ones. A few
rows at a time are combined and added to these, which stay in the cache meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import expressions
from tensorplug_cpu.jit.codegen import processor
from tensorplug_cpu.jit.codegen.instructions import Code
from tensorplug_cpu.jit.groups.accumulators import accumulated, combine, identity
from tensorplug_cpu.jit.groups.evaluation import (
    Evaluator,
    choose_lanes,
    cost,
    load_scalar,
    load_vector,
    number_of,
    store_vector,
)
from tensorplug_cpu.jit.groups.frame import Frame, Item
from tensorplug_cpu.jit.groups.threads import MOST_MODULES, Module

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Expression


DEPTH: Final = 16
"""How many groups of rows one item adds, so that the error of a sum is that of blocks."""


@dataclass(frozen=True, slots=True)
class ColumnOperand:
    """An input. ``rows``, ``inner``: whether it varies along the reduced and the last axis."""

    dtype: DType
    rows: bool
    inner: bool


@dataclass(frozen=True, slots=True)
class Columns:
    """What a kernel over columns computes: partial results of reductions, as accumulated.

    ``rank``: of the axes before the reduced one. An item's last index is that of its rows.
    """

    rank: int
    inputs: tuple[ColumnOperand, ...]
    reductions: tuple[tuple[str, Expression], ...]

    @property
    def together(self) -> int:
        """How many rows are combined before they are added."""
        size = cost(expression for _, expression in self.reductions) + 2 * len(self.reductions)
        return 8 if size <= 8 else 4 if size <= 20 else 2 if size <= 60 else 1

    @property
    def targets(self) -> list[DType]:
        """The dtypes of the partial results."""
        return [accumulated(op, expression.dtype) for op, expression in self.reductions]


@lru_cache(MOST_MODULES)
def write_columns(form: Columns) -> Module:
    """Return the module.

    Its arguments: beside those of ``Frame``, there are ``"rows"``, the number of rows,
    ``"depth"``, that of an item, and ``("row", k)``, the bytes from one row of an operand to the
    next.
    """
    writer = _Columns(form)
    writer.write()
    return Module(writer.code.write(processor.attributes()), writer.frame.slots)


class _Columns:
    def __init__(self, form: Columns) -> None:
        self._form = form
        self._lanes = choose_lanes([expression for _, expression in form.reductions])
        self.code = Code()
        self.frame = Frame(self.code, form.rank + 1, len(form.inputs) + len(form.reductions))
        self._rows = self.frame.argument("rows")
        self._depth = self.frame.argument("depth")
        self._strides = [self.frame.argument(("row", k)) for k in range(len(form.inputs))]
        self._row, self._index = self.code.allocate("i64"), self.code.allocate("i64")
        self._varying: dict[int, tuple[bool, bool]] = {}
        self._item: Item

    def _varies(self, node: Expression) -> tuple[bool, bool]:
        """Return whether an operation varies along the rows, and inside of one."""
        varying = self._varying
        for part in expressions.order([node], lambda node: id(node) in varying):
            if part.op == "parameter":
                operand = self._form.inputs[number_of(part)]
                varying[id(part)] = operand.rows, operand.inner
            else:
                below = [varying[id(operand)] for operand in part.operands]
                varying[id(part)] = (
                    any(rows for rows, _ in below),
                    any(inner for _, inner in below),
                )
        return varying[id(node)]

    def write(self) -> None:
        """Write the whole function."""
        form, code = self._form, self.code
        with self.frame.items() as item:
            self._item = item
            self._fill(item.starts[len(form.inputs) :])
            first = code.emit(f"mul nsw i64 {item.indices[-1]}, {self._depth}")
            left = code.emit(f"sub nsw i64 {self._rows}, {first}")
            stop = code.call("llvm.smin", "i64", [left, self._depth])
            code.do(f"store i64 0, ptr {self._row}")
            for together in dict.fromkeys((form.together, 1)):
                with code.loop(self._row, together, stop, least=together) as row:
                    self._add(row, together)

    def _fill(self, targets: list[str]) -> None:
        """Set the partial results to the identity."""
        code, lanes = self.code, self._lanes
        wide = Evaluator(code, lanes, lambda _: True, lambda _: "").wide
        code.do(f"store i64 {self._item.low}, ptr {self._index}")
        for least in (lanes, 1):
            with code.loop(self._index, lanes, self._item.high, least=least) as at:
                mask = None if least > 1 else code.mask(at, self._item.high, lanes)
                for (op, _), dtype, target in zip(
                    self._form.reductions, self._form.targets, targets, strict=True
                ):
                    value = wide.constant(identity(op, dtype), dtype)
                    store_vector(code, dtype, value, target, at, lanes, mask)

    def _add(self, row: str, together: int) -> None:
        """Combine adjacent rows, and add them to the partial results."""
        code, lanes, item, form = self.code, self._lanes, self._item, self._form
        roots = [expression for _, expression in form.reductions]
        starts, evaluators = [], []
        for step in range(together):
            line = code.emit(f"add nsw i64 {row}, {step}")
            row_starts = []
            for start, stride in zip(item.starts, self._strides, strict=False):
                offset = code.emit(f"mul nsw i64 {line}, {stride}")
                row_starts.append(code.emit(f"getelementptr i8, ptr {start}, i64 {offset}"))

            def load(node: Expression, row_starts: list[str] = row_starts) -> str:
                return load_scalar(code, node.dtype, row_starts[number_of(node)])

            to = Evaluator(code, lanes, lambda node: self._varies(node)[1], load)
            to.prepare(roots)
            starts.append(row_starts)
            evaluators.append(to)
        code.do(f"store i64 {item.low}, ptr {self._index}")
        for least in (lanes, 1):
            with code.loop(self._index, lanes, item.high, least=least) as at:
                mask = None if least > 1 else code.mask(at, item.high, lanes)
                shared: dict[int, str] = {}  # what is the same in all rows
                values = []
                for row_starts, to in zip(starts, evaluators, strict=True):
                    values.append(self._evaluate(to, roots, row_starts, shared, at, mask))
                self._accumulate(evaluators[0], values, at, mask)

    def _evaluate(
        self,
        to: Evaluator,
        roots: list[Expression],
        starts: list[str],
        shared: dict[int, str],
        at: str,
        mask: str | None,
    ) -> list[str]:
        """Return the vectors of one row, whose operands start at ``starts``.

        ``shared``: by identity, what is the same in all rows; this adds to it.
        """
        known = dict(shared)

        def load(node: Expression) -> str:
            start = starts[number_of(node)]
            return load_vector(self.code, node.dtype, start, at, self._lanes, mask)

        values = to.vectors(roots, load, known)
        for node in expressions.order(roots, lambda node: id(node) not in known):
            if self._varies(node) == (False, True):
                shared[id(node)] = known[id(node)]
        return values

    def _accumulate(
        self, to: Evaluator, values: list[list[str]], at: str, mask: str | None
    ) -> None:
        """Add the values of some rows, in pairs, to the partial results."""
        code, lanes, form = self.code, self._lanes, self._form
        targets = self._item.starts[len(form.inputs) :]
        for number, ((op, expression), dtype) in enumerate(
            zip(form.reductions, form.targets, strict=True)
        ):
            terms = [to.wide.cast(row[number], expression.dtype, dtype) for row in values]
            while len(terms) > 1:
                terms = [
                    combine(to.wide, op, dtype, *terms[pair : pair + 2])
                    for pair in range(0, len(terms), 2)
                ]
            before = load_vector(code, dtype, targets[number], at, lanes, mask)
            after = combine(to.wide, op, dtype, before, terms[0])
            store_vector(code, dtype, after, targets[number], at, lanes, mask)
