"""The statements of a group with reductions: the row's numbers, and pass after pass along it.

Numbers of a row are variables; where a work-item takes rows side by side (form "columns"), they
are arrays of vectors, because each walk then visits all of these rows before the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import ctypes, vectors
from tensorplug_opencl.codegen.statements import Writer
from tensorplug_opencl.groups import passes
from tensorplug_opencl.groups.fold_states import Folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tensorplug.plugin import Expression
    from tensorplug_opencl.codegen.numbers import Value
    from tensorplug_opencl.groups.passes import Pass, Row
    from tensorplug_opencl.groups.row_forms import Form, Operand


CHEAP: Final = 8  # the cost up to which a pass takes multiple vectors at a time
UNROLLED: Final = 4  # as many


class Program(NamedTuple):
    """What is computed: inputs, and the outputs of ``row``.

    ``parts``: arrays for the results of its folds along parts of rows, in the place of outputs.
    """

    title: str
    inputs: Sequence[Operand]
    outputs: Sequence[Operand]
    row: Row
    parts: Sequence[tuple[int, Operand]] = ()

    @property
    def arrays(self) -> list[Operand]:
        """The inputs that are arrays."""
        return [operand for operand in self.inputs if not operand.argument]

    def list_rooms(self, form: Form) -> list[Operand]:
        """Return the inputs whose numbers of elements are arguments before the layout.

        A vector that ends beyond its row may be read whole if it ends within the array.
        """
        if form.kind != "lanes" or form.width == 1:
            return []
        return [operand for operand in self.inputs if operand.along]


class Body:
    """The writer of one program's body."""

    def __init__(self, program: Program, form: Form) -> None:
        """Prepare to write ``program`` for work-items that share rows out as ``form`` says."""
        self._program = program
        self._form = form
        self._lanes = form.lanes
        self._columns = form.kind == "columns"
        self._rooms = {f"{each.name}_in" for each in program.list_rooms(form)}
        self._row_writer = Writer(self._lanes if self._columns else 1)
        self._numbers: dict[int, Value] = {}  # of the row, by the number of the parameter

    def write(self) -> Iterator[str]:
        """Write all lines between the kernel's braces."""
        yield from self._write_head()
        for at, operand in enumerate(self._program.inputs):
            if not operand.along:
                yield from self._read_number(at, operand)
        for step in self._program.row.passes:
            yield from self._write_numbers(step.before)
            if step.folds or step.stores:
                yield from self._walk(step)
        yield from self._write_numbers(self._program.row.before)
        ends = [
            (f"{self._program.outputs[output].name}_out", expression)
            for output, expression in self._program.row.ends
        ]
        yield from self._write_ends(ends)
        for number, own in self._program.parts:
            value = self._numbers[number]._replace(dtype=own.dtype)  # perhaps a wider one
            yield from self._store_number(f"{own.name}_out", value)

    def _write_head(self) -> Iterator[str]:
        form = self._form
        # A group leaves as a whole: its work-items meet at barriers, which none of them may miss.
        number = "get_group_id(0)" if form.kind == "group" else "get_global_id(0)"
        yield f"  const index_t i = {number};\n  if (i >= items) return;"
        if self._columns:
            broad = form.width * form.tile
            yield f"""  const index_t strips = (inner + {broad - 1}) / {broad};
  const index_t first = i % strips * {broad}, own = i / strips % parts, row = i / strips / parts;
  const index_t across = min(inner - first, (index_t){broad});"""
        else:
            yield "  const index_t own = i % parts, row = i / parts;"
        if form.kind == "group":
            yield "  const index_t lane = get_local_id(0);"
        yield "  const index_t begin = own * span, end = min(length, begin + span);"
        named = [(f"{each.name}_in", each) for each in self._program.arrays]
        named += [(f"{each.name}_out", each) for each in self._program.outputs]
        for name, operand in named:
            start = f"{name}_offset(row, layout)" if form.rank else "0"
            yield f"  {name} += {start}{' + first' * (self._columns and operand.across)};"
            if name in self._rooms:
                yield f"  const index_t {operand.name}_room = {operand.name}_size - {start};"
        for _, own in self._program.parts:
            start = "(row * parts + own) * inner + first" if self._columns else "i"
            yield f"  {own.name}_out += {start};"

    # Numbers of the row ----------------------------------------------------------------------

    def _for_each_vector(self, lines: Iterable[str]) -> Iterator[str]:
        """Write statements about the rows side by side, for each vector of them."""
        if not self._columns:
            yield from (f"  {line}" for line in ("{", *lines, "}"))
            return
        width = self._form.width
        yield f"  for (index_t t = 0; t < {self._form.tile} && t * {width} < across; t++) {{"
        yield f"  const index_t rest = across - t * {width};"
        yield from (f"  {line}" for line in (*lines, "}"))

    def _declare(self, value: Value) -> str:
        size = f"[{self._form.tile}]" if self._columns else ""
        return f"  {self._row_writer.type_of(value)} {value.name}{size};"

    def _target(self, value: Value) -> str:
        return f"{value.name}[t]" if self._columns else value.name

    def _read_number(self, at: int, operand: Operand) -> Iterator[str]:
        if self._columns and operand.across and self._lanes > 1:
            text = f"read_{operand.stored}({operand.name}_in + t * {self._lanes}, rest)"
        else:
            text = f"{operand.name}_argument" if operand.argument else f"{operand.name}_in[0]"
            if self._lanes > 1 and self._columns:
                text = f"({self._row_writer.wide(operand.stored)})({text})"
        value, read = self._row_writer.read(
            f"{operand.name}_read", operand.dtype, text, number=operand.argument
        )
        own = value._replace(name=operand.name)
        self._numbers[at] = own
        yield self._declare(own)
        yield from self._for_each_vector([read, f"{self._target(own)} = {value.name};"])

    def _compute_numbers(self, roots: Sequence[Expression]) -> tuple[list[str], list[Value]]:
        """Return statements for one vector that compute numbers of the row, and these."""
        used = passes.list_parameters(roots)
        parameters, lines = {}, []
        for number in used:
            value = self._numbers[number]
            parameters[number] = value
            if self._columns:
                own = value._replace(name=f"{value.name}_own")
                kind = self._row_writer.type_of(value)
                lines.append(f"const {kind} {own.name} = {value.name}[t];")
                parameters[number] = own
        statements, values = self._row_writer.write(roots, parameters)
        return [*lines, *statements], values

    def _write_numbers(self, numbers: Sequence[tuple[int, Expression]]) -> Iterator[str]:
        for number, expression in numbers:
            lines, (result,) = self._compute_numbers([expression])
            value = result._replace(name=f"r{number}")
            self._numbers[number] = value
            yield self._declare(value)
            yield from self._for_each_vector([*lines, f"{self._target(value)} = {result.name};"])

    def _write_ends(self, ends: Sequence[tuple[str, Expression]]) -> Iterator[str]:
        """Write the row's own outputs."""
        for name, expression in ends:
            lines, (value,) = self._compute_numbers([expression])
            yield from self._for_each_vector([*lines, self._store_end(name, value)])

    def _store_number(self, name: str, value: Value) -> Iterator[str]:
        own = value._replace(name=self._target(value))
        yield from self._for_each_vector([self._store_end(name, own)])

    def _store_end(self, name: str, value: Value) -> str:
        stored = self._row_writer.stored(value)
        if self._columns and self._lanes > 1:
            ctype = ctypes.kept(value.dtype)
            return f"write_{ctype}({name} + t * {self._lanes}, {stored}, rest);"
        guard = "if (lane == 0) " if self._form.kind == "group" else ""
        return f"{guard}{name}[0] = {stored};"

    # Walks -----------------------------------------------------------------------------------

    def _walk(self, step: Pass) -> Iterator[str]:
        states = [Folded(fold, self._lanes) for fold in step.folds]
        self._numbers |= {
            fold.number: state.result for fold, state in zip(step.folds, states, strict=True)
        }
        for state in states:
            yield self._declare(state.result)
            if self._form.kind == "group":
                yield f"  local {state.ctype} {state.name}_shared[{self._form.width}];"
        if self._columns:
            yield from self._walk_columns(step, states)
            return
        yield "  {"
        yield from (f"  {state.declare()}" for state in states)
        width = self._form.width
        if self._form.kind == "group":
            yield f"  for (index_t c = begin + lane; c < end; c += {width}) {{"
            yield from self._write_element(step, states, "c", whole=True)
            yield "  }"
            for state in states:
                yield from state.join_group(width)
        else:
            yield "  index_t c = begin;"
            if width > 1:
                count = self._unroll(step)
                yield f"  for (; c + {count * width} <= end; c += {count * width}) {{"
                yield from self._write_elements(step, states, count)
                yield "  }"
            yield f"  for (; c < end; c += {width}) {{"
            if width > 1:
                yield "  const index_t rest = end - c;"
            yield from self._write_element(step, states, "c", whole=width == 1)
            yield "  }"
            for state in states:
                yield from state.join_lanes(width)
        yield "  }"

    def _unroll(self, step: Pass) -> int:
        """Return how many vectors a pass takes at a time."""
        # Each step of a fold waits for the one before. Where a step costs little else, vectors are
        # joined as a tree first, so that the chain of steps is a quarter as long.
        cost = passes.rate([fold.expression for fold in step.folds])
        return UNROLLED if step.folds and not step.stores and cost <= CHEAP else 1

    def _walk_columns(self, step: Pass, states: Sequence[Folded]) -> Iterator[str]:
        tile, width = self._form.tile, self._form.width
        for state in states:
            low = f", {state.name}_lows[{tile}]" * state.fold.compensated
            yield f"  {state.ctype} {state.name}_all[{tile}]{low};"
        yield f"  for (index_t t = 0; t < {tile}; t++) {{"
        yield from (f"  {state.declare()} {state.keep()}" for state in states)
        # All rows of a tile take an element before any takes the next one: their elements are
        # neighbours in memory, and those along a row are not.
        yield "  }\n  { index_t at = begin;"
        for count in dict.fromkeys((self._unroll(step), 1)):
            yield f"  for (; at + {count} <= end; at += {count}) {{"
            yield f"  for (index_t t = 0; t < {tile}; t++) {{"
            if width > 1:
                yield f"  if (t * {width} >= across) break;"
                yield f"  const index_t rest = across - t * {width};"
            yield from (f"  {state.resume()}" for state in states)
            if count > 1:
                yield from self._write_elements(step, states, count)
            else:
                yield from self._write_element(step, states, "at", whole=False)
            yield from (f"  {state.keep()}" for state in states)
            yield "  } }"
        yield f"  }}\n  for (index_t t = 0; t < {tile}; t++) {{"
        for state in states:
            yield f"  {state.resume()} {state.result.name}[t] = {state.fold.close(state.name)};"
        yield "  }"

    def _write_elements(self, step: Pass, states: Sequence[Folded], count: int) -> Iterator[str]:
        """Write a step of ``count`` whole vectors, which are joined before they are taken."""
        if count == 1:
            yield from self._write_element(step, states, "c", whole=True)
            return
        for at in range(count):
            yield "  " + " ".join(f"{each.ctype} {each.name}_{at};" for each in states)
            offset = f"at + {at}" if self._columns else f"c + {at * self._lanes}"
            lines, values = self._compute(step, offset, whole=not self._columns)
            yield "  {"
            yield from (f"    {line}" for line in lines)
            yield from (
                f"    {each.name}_{at} = {value.name};"
                for each, value in zip(states, values, strict=False)
            )
            yield "  }"
        for each in states:
            yield from each.join_together(count)
            yield f"  {each.take(f'{each.name}_0')}"

    def _write_element(
        self, step: Pass, states: Sequence[Folded], offset: str, *, whole: bool
    ) -> Iterator[str]:
        """Write a step of one vector; unless ``whole``, it may have no more than ``rest``."""
        lines, values = self._compute(step, offset, whole=whole)
        yield from (f"    {line}" for line in lines)
        for each, value in zip(states, values, strict=False):
            name = value.name
            if not whole and not self._columns:
                name = f"{each.name}_new"
                yield f"    const {each.ctype} {name} = {each.mask(value.name)};"
            yield f"    {each.take(name)}"
        for (output, _), value in zip(step.stores, values[len(states) :], strict=True):
            operand = self._program.outputs[output]
            stored = Writer(self._lanes).stored(value)
            to = self._point(f"{operand.name}_out", operand, offset)
            yield f"    {self._store(operand.stored, to, stored, whole=whole)}"

    def _store(self, ctype: str, to: str, value: str, *, whole: bool) -> str:
        if self._lanes == 1:
            return f"*({to}) = {value};"
        if whole:
            return vectors.store(ctype, self._lanes, to, value)
        return f"write_{ctype}({to}, {value}, rest);"

    def _compute(self, step: Pass, offset: str, *, whole: bool) -> tuple[list[str], list[Value]]:
        """Return the statements that compute one vector of all that a pass takes, and these."""
        roots = [fold.expression for fold in step.folds]
        roots += [expression for _, expression in step.stores]
        writer = Writer(self._lanes)
        lines: list[str] = []
        parameters: dict[int, Value] = {}
        for number in passes.list_parameters(roots):
            if number in self._numbers:
                value, declared = self._spread(self._numbers[number], writer)
            else:
                value, declared = self._read(number, offset, writer, whole=whole)
            parameters[number] = value
            lines.append(declared)
        statements, values = writer.write(roots, parameters)
        return [*lines, *statements], values

    def _spread(self, value: Value, writer: Writer) -> tuple[Value, str]:
        """Return a number of the row as a vector, and its declaration."""
        own = value._replace(name=f"{value.name}_own")
        if self._columns:
            return own, f"const {writer.type_of(own)} {own.name} = {value.name}[t];"
        if value.dtype is dt.bool_ and self._lanes > 1:
            own = own._replace(nbytes=1)
            text = f"(char)(-{value.name})"
        else:
            text = value.name
        wide = writer.type_of(own)
        return own, f"const {wide} {own.name} = ({wide})({text});"

    def _read(self, number: int, offset: str, writer: Writer, *, whole: bool) -> tuple[Value, str]:
        """Return the elements of an array as a vector, and its declaration."""
        output = self._program.row.kept.get(number)
        if output is None:
            operand, suffix = self._program.inputs[number], "in"
        else:
            operand, suffix = self._program.outputs[output], "out"
        at = self._point(f"{operand.name}_{suffix}", operand, offset)
        wide = writer.wide(operand.stored)
        if self._lanes == 1:
            text = f"*({at})"
        elif self._columns and not operand.across:
            text = f"({wide})(*({at}))"
        elif whole:
            text = vectors.load(operand.stored, self._lanes, at)
        elif output is None and not self._columns:  # what lies behind the row is masked
            text = f"read_{operand.stored}({at}, {operand.name}_room - ({offset}))"
        else:
            text = f"read_{operand.stored}({at}, rest)"
        return writer.read(f"{operand.name}_{suffix}_read", operand.dtype, text)

    def _point(self, name: str, operand: Operand, offset: str) -> str:
        """Return the address of an element along the row."""
        if not self._columns:
            return f"{name} + {offset}"
        across = f" + t * {self._form.width}" if operand.across else ""
        return f"{name} + ({offset}) * layout.{name}_by[0]{across}"
