"""Kernels over rows: elementwise expressions, and reductions along the last axis.

One item is a row, or a segment of one. It is passed over once for each level of reductions, a
level being those that need the results of the level before, and once for the outputs. A costly
value that a later pass needs again is kept, in the row of an output where one has its dtype.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import expressions
from tensorplug_cpu.jit.codegen import processor
from tensorplug_cpu.jit.codegen.instructions import Code
from tensorplug_cpu.jit.groups.accumulators import DEPTH, Accumulator
from tensorplug_cpu.jit.groups.evaluation import (
    Evaluator,
    choose_lanes,
    cost,
    load_scalar,
    load_vector,
    number_of,
    store_scalar,
    store_vector,
)
from tensorplug_cpu.jit.groups.frame import Frame, Item
from tensorplug_cpu.jit.groups.threads import MOST_MODULES, Module

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Expression


_WORTH_KEEPING: Final = 5  # instructions; fewer are computed again


@dataclass(frozen=True, slots=True)
class Operand:
    """An input of a kernel. ``inner``: whether it varies along a row."""

    dtype: DType
    inner: bool


@dataclass(frozen=True, slots=True)
class Target:
    """An output of a kernel. ``inner``: whether it has one element for each of a row's."""

    expression: Expression
    dtype: DType
    inner: bool


@dataclass(frozen=True, slots=True)
class Form:
    """What a kernel over rows computes.

    ``rank``: of the outer axes. ``levels``: numbers of reductions, ``reductions`` their ops and
    expressions; parameters are numbered as in a group. ``partial``: whether targets that are
    reductions are written as accumulated, before they are rounded to their dtype.
    """

    rank: int
    inputs: tuple[Operand, ...]
    reductions: tuple[tuple[str, Expression], ...] = ()
    levels: tuple[tuple[int, ...], ...] = ()
    targets: tuple[Target, ...] = ()
    partial: bool = False

    def roots(self) -> list[Expression]:
        """Return all expressions."""
        return [
            *(expression for _, expression in self.reductions),
            *(target.expression for target in self.targets),
        ]


@lru_cache(MOST_MODULES)
def write_rows(form: Form) -> Module:
    """Return the module; ``("kept", at)`` is the slot of the bytes of a row of kept values."""
    writer = _Rows(form)
    writer.write()
    return Module(writer.code.write(processor.attributes()), writer.frame.slots, writer.kept)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A value that the pass ``first`` writes to memory for later ones.

    ``target``: the number of the target whose row holds it; None if it has a row of its own.
    """

    node: Expression
    first: int
    target: int | None


class _Rows:
    def __init__(self, form: Form) -> None:
        self._form = form
        self._lanes = choose_lanes(form.roots())
        self._varying: dict[int, bool] = {}
        self._inner = [each for each in form.targets if each.inner]
        self._passes = [
            *([form.reductions[number][1] for number in level] for level in form.levels),
            [each.expression for each in self._inner],
        ]
        self._kept = self._choose_kept()
        self.kept = [each.node.dtype for each in self._kept if each.target is None]
        self.code = Code()
        self.frame = Frame(self.code, form.rank, len(form.inputs) + len(form.targets))
        self._to = Evaluator(self.code, self._lanes, self._varies, self._load_scalar)
        self._index = self.code.allocate("i64")
        self._block = self.code.allocate("i64")
        self._item: Item
        self._memory: dict[int, str] = {}  # of kept values, by identity
        self._results: dict[int, str] = {}  # of reductions, by their numbers as parameters

    def _varies(self, node: Expression) -> bool:
        varying = self._varying
        for part in expressions.order([node], lambda node: id(node) in varying):
            if part.op == "parameter":
                number, inputs = number_of(part), self._form.inputs
                varying[id(part)] = number < len(inputs) and inputs[number].inner
            else:
                varying[id(part)] = any(varying[id(operand)] for operand in part.operands)
        return varying[id(node)]

    def _choose_kept(self) -> list[_Kept]:
        """Return what a later pass needs again and is not worth computing again."""
        first: dict[int, int] = {}
        chosen: dict[int, Expression] = {}

        for at, roots in enumerate(self._passes):

            def is_known(node: Expression) -> bool:
                if not self._varies(node):
                    return True
                if id(node) not in first or cost([node]) < _WORTH_KEEPING:
                    return False
                chosen[id(node)] = node
                return True

            for node in expressions.order(roots, is_known, rare=False):
                first.setdefault(id(node), at)
        # A row of an output holds a value until the last pass writes the output itself.
        rows = [
            (number, each.dtype) for number, each in enumerate(self._form.targets) if each.inner
        ]
        kept = []
        for node in chosen.values():
            row = next((row for row in rows if row[1] is node.dtype), None)
            if row is not None:
                rows.remove(row)
            kept.append(_Kept(node, first[id(node)], None if row is None else row[0]))
        return kept

    def write(self) -> None:
        """Write the whole function."""
        form, code = self._form, self.code
        sizes = [self.frame.argument(("kept", at)) for at in range(len(self.kept))]
        rows = [code.emit(f"alloca i8, i64 {size}, align 64") for size in sizes]
        with self.frame.items() as item:
            self._item = item
            outputs = item.starts[len(form.inputs) :]
            own = iter(rows)
            for each in self._kept:
                memory = next(own) if each.target is None else outputs[each.target]
                self._memory[id(each.node)] = memory
            for at, level in enumerate(form.levels):
                self._reduce(at, level)
            self._write_vectors(
                [
                    (target, start)
                    for target, start in zip(form.targets, outputs, strict=True)
                    if target.inner
                ]
            )
            for target, start in zip(form.targets, outputs, strict=True):
                if not target.inner:
                    self._write_scalar(target, start)

    def _load_scalar(self, parameter: Expression) -> str:
        number = number_of(parameter)
        if number in self._results:
            return self._results[number]
        return load_scalar(self.code, parameter.dtype, self._item.starts[number])

    def _reduce(self, at: int, level: tuple[int, ...]) -> None:
        """Write the pass for the reductions of one level, and define their results."""
        code, item, form = self.code, self._item, self._form
        reductions = [form.reductions[number] for number in level]
        roots = [expression for _, expression in reductions]
        steps = self._overlap(roots)
        self._prepare(at, roots)
        accumulators = [
            Accumulator(self._to, op, expression.dtype, steps) for op, expression in reductions
        ]
        for accumulator in accumulators:
            accumulator.start()
        stride = steps * self._lanes

        def add_up_to(stop: str) -> None:
            with code.loop(self._index, stride, stop, least=stride) as first:
                for step in range(steps):
                    position = code.emit(f"add nsw i64 {first}, {step * self._lanes}")
                    values = self._evaluate(at, roots, position, None)
                    for accumulator, value in zip(accumulators, values, strict=True):
                        accumulator.add(step, value)

        code.do(f"store i64 {item.low}, ptr {self._index}")
        if any(accumulator.blocked for accumulator in accumulators):
            code.do(f"store i64 {item.low}, ptr {self._block}")
            with code.loop(self._block, DEPTH * stride, item.high) as start:
                end = code.emit(f"add nsw i64 {start}, {DEPTH * stride}")
                add_up_to(code.call("llvm.smin", "i64", [end, item.high]))
                for accumulator in accumulators:
                    accumulator.close_block()
        else:
            add_up_to(item.high)
        with code.loop(self._index, self._lanes, item.high) as position:
            mask = code.mask(position, item.high, self._lanes)
            values = self._evaluate(at, roots, position, mask)
            for accumulator, value in zip(accumulators, values, strict=True):
                accumulator.add(0, value, mask)
        for number, accumulator in zip(level, accumulators, strict=True):
            accumulator.close_block()
            self._define(number, accumulator)

    def _define(self, number: int, accumulator: Accumulator) -> None:
        """Make the result of a reduction known to the expressions that refer to it."""
        value, dtype = accumulator.result(), accumulator.dtype
        result_dtype = self._form.reductions[number][1].dtype
        if not self._form.partial:
            value, dtype = self._to.narrow.cast(value, dtype, result_dtype), result_dtype
        self._results[len(self._form.inputs) + number] = value

    def _write_vectors(self, outputs: list[tuple[Target, str]]) -> None:
        """Write the pass for the outputs that have an element for each of a row's."""
        if not outputs:
            return
        code, item, at = self.code, self._item, len(self._passes) - 1
        roots = self._passes[at]
        self._prepare(at, roots)
        code.do(f"store i64 {item.low}, ptr {self._index}")
        for least in (self._lanes, 1):
            with code.loop(self._index, self._lanes, item.high, least=least) as position:
                mask = None if least > 1 else code.mask(position, item.high, self._lanes)
                values = self._evaluate(at, roots, position, mask)
                for (target, start), value in zip(outputs, values, strict=True):
                    store_vector(code, target.dtype, value, start, position, self._lanes, mask)

    def _write_scalar(self, target: Target, start: str) -> None:
        store_scalar(self.code, target.dtype, self._to.scalar(target.expression), start)

    def _prepare(self, at: int, roots: list[Expression]) -> None:
        """Write in front of the loop of a pass what it does not change."""
        self._to.prepare(roots, [id(each.node) for each in self._kept if each.first < at])

    def _evaluate(
        self, at: int, roots: list[Expression], position: str, mask: str | None
    ) -> list[str]:
        """Return the vectors of a pass's roots for one step, and keep what later ones need."""
        code, starts, lanes = self.code, self._item.starts, self._lanes
        known: dict[int, str] = {}
        before = [each for each in self._kept if each.first < at]
        needed = {id(node) for node in expressions.order(roots, lambda _: False)}
        for each in before:
            node = each.node
            if id(node) in needed:
                row = self._memory[id(node)]
                known[id(node)] = load_vector(code, node.dtype, row, position, lanes, mask)

        def load(node: Expression) -> str:
            start = starts[number_of(node)]
            return load_vector(code, node.dtype, start, position, lanes, mask)

        values = self._to.vectors(roots, load, known)
        for each in self._kept:
            node = each.node
            if each.first == at:
                row = self._memory[id(node)]
                store_vector(code, node.dtype, known[id(node)], row, position, lanes, mask)
        return values

    def _overlap(self, roots: list[Expression]) -> int:
        """Return how many vectors to compute at once: as many as the registers hold."""
        size = cost(roots) + 2 * len(roots)
        most = 8 if size <= 6 else 4 if size <= 16 else 2 if size <= 40 else 1
        return max(1, min(most, processor.registers() // 4 // len(roots)))
