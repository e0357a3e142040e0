"""Groups without reductions as one kernel: the expressions of a group in C.

A CPU's work-item computes a run of elements in vectors, a GPU's one element, so that neighbours
read neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tensorplug.plugin import Expression, Group, KernelRefusedError, expressions, shapes
from tensorplug_opencl.codegen import ctypes, layouts, pointwise, templates, vectors
from tensorplug_opencl.codegen.statements import Writer
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.groups import constants

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import DType
    from tensorplug_opencl.runtime import Runtime

    Span = tuple[bool, ...]


TITLE: Final = 60  # characters, at most, of the calls' names in a program's title
ARGUMENTS: Final = 1024  # bytes that every device allows


class _Array(NamedTuple):
    """An input or output of the kernel, and how it is walked: as a ``templates.Operand`` is.

    An "argument" is a single number instead of an array.
    """

    name: str
    dtype: DType
    stored: str
    access: templates.Access | Literal["argument"]


def prepare(group: Group, runtime: Runtime) -> Callable[..., None]:
    """Return the launch of a group without reductions, all of whose outputs span all axes.

    It takes the buffers of the inputs, then of the outputs, which have elements.

    Raises:
        KernelRefusedError: the group has complex numbers, or too many arrays for one kernel.

    """
    size = shapes.size(group.shape)
    steps = [strides_of(group, operand.spans) for operand in group.inputs]
    layout = layouts.collapse(group.shape, [*steps, layouts.row_major(group.shape)])
    inputs, placed = [], []
    for at, (operand, own) in enumerate(zip(group.inputs, layout.strides, strict=False)):
        access = pointwise.classify_access(own, layout.strides[-1])
        if access in ("row", "column"):
            placed.append(own[:-1])
        dtype = operand.type.dtype
        inputs.append(_Array(f"x{at}", dtype, ctypes.kept(dtype), access))
    outputs = [
        _Array(f"y{at}", output.type.dtype, ctypes.kept(output.type.dtype), "whole")
        for at, output in enumerate(group.outputs)
    ]
    index = layouts.index_dtype(size, *(operand.type.size for operand in group.inputs))
    group, values = constants.extract(group)
    for at in range(len(inputs), len(group.inputs)):
        dtype = group.inputs[at].type.dtype
        inputs.append(_Array(f"x{at}", dtype, ctypes.computed(dtype), "argument"))
    roots = [output.expression for output in group.outputs]
    apart = all(output.into is None for output in group.outputs)
    width = choose_width(roots, runtime) if runtime.is_cpu else 1
    run = pointwise.RUN if runtime.is_cpu else 1
    rank = layout.rank - 1 if placed else 0
    program = _Program(write_title(group), inputs, outputs, roots, width, apart)
    source = program.write(rank, run, index)
    arguments: list[Any] = [index.type(size)]
    if placed:
        arguments.append(index.type(layout.sizes[-1]))
        outer = layouts.Layout(layout.sizes[:-1], tuple(placed))
        arguments.append(layouts.pack([outer], index))
    arguments += values
    arrays = len(inputs) - len(values) + len(outputs)
    check_arguments(arrays, arguments)
    return runtime.launch(source, arrays, arguments, -(-size // run), heavy=run > 1)


def check_arguments(arrays: int, arguments: Sequence[Any]) -> None:
    """Check that a kernel may have so many arguments.

    Raises:
        KernelRefusedError: it may not.

    """
    if 16 * arrays + sum(argument.nbytes for argument in arguments) > ARGUMENTS:
        raise KernelRefusedError(f"{arrays} arrays are too many for one kernel")


def write_title(group: Group) -> str:
    """Return the calls' names, or the first of them."""
    if len(group.name) <= TITLE:
        return group.name
    return f"{group.name[:TITLE]}... of {len(expressions.linearize(group.expressions()))}"


def strides_of(group: Group, spans: Span) -> layouts.Strides:
    """Return the strides of an input along the group's axes, 0 where it is repeated."""
    own = tuple(n if spanned else 1 for n, spanned in zip(group.shape, spans, strict=True))
    steps = zip(layouts.row_major(own), spans, strict=True)
    return tuple(step if spanned else 0 for step, spanned in steps)


def choose_width(roots: Sequence[Expression], runtime: Runtime) -> int:
    """Return how many elements of the longest dtype a vector holds."""
    dtypes = {node.dtype for node in expressions.linearize(list(roots))}
    return vectors.choose_lanes(runtime, *(ctypes.computed(dtype) for dtype in dtypes))


class _Program(NamedTuple):
    """The program of an elementwise group; ``apart``: it overwrites no input."""

    title: str
    inputs: Sequence[_Array]
    outputs: Sequence[_Array]
    roots: Sequence[Expression]
    width: int
    apart: bool

    def write(self, rank: int, run: int, index: templates.Index) -> str:
        """Return its text; ``rank``: of the layout of rows; ``run``: elements of a work-item."""
        placed = [each.name for each in self.inputs if each.access in ("row", "column")]
        fields = [("size", rank), *((f"{name}_step", rank) for name in placed)] if placed else []
        declarations = [templates.declare_layout(fields)]
        declarations += [
            templates.define_place(f"{name}_place", rank, "size", f"{name}_step")
            for name in placed
        ]
        if self.width > 1:
            stored = (each.stored for each in (*self.inputs, *self.outputs))
            declarations.append(vectors.define_parts(self.width, *stored))
        sizes = (
            templates.declare_indices("n", "length", layout=True)
            if placed
            else (templates.declare_indices("n"))
        )
        numbers = [each for each in self.inputs if each.access == "argument"]
        sizes += [f"const {each.stored} {each.name}_argument" for each in numbers]
        arrays = [
            Array(f"{each.name}_in", each.stored) for each in self.inputs if each not in numbers
        ]
        arrays += [Array(f"{each.name}_out", each.stored, written=True) for each in self.outputs]
        body = self._write_element() if run == 1 else self._write_run(run, by_rows=bool(placed))
        return templates.write_program(
            f"{self.title} by {self.width}",
            arrays,
            sizes,
            "\n".join(body),
            index=index,
            declarations="\n".join(declarations),
            apart=self.apart,
            vectors=f"float{self.width}" if self.width > 1 else "",
        )

    def _write_element(self) -> list[str]:
        """Return the body that computes the element with this work-item's number."""
        lines = ["  const index_t i = get_global_id(0);", "  if (i >= n) return;"]
        if any(each.access in ("row", "column") for each in self.inputs):
            lines.append("  const index_t row = i / length, column = i - row * length;")
        reads = [
            f"{each.name}_in[i]" if each.access == "whole" else _write_one(each)
            for each in self.inputs
        ]
        statements, results = self._compute(reads)
        stores = [
            f"{each.name}_out[i] = {result};"
            for each, result in zip(self.outputs, results, strict=True)
        ]
        return [*lines, *(f"  {line}" for line in (*statements, *stores))]

    def _write_run(self, run: int, *, by_rows: bool) -> list[str]:
        """Return the body that computes a run of elements, row by row if inputs need that."""
        limits = [
            f"  const index_t start = get_global_id(0) * (index_t){run};",
            "  if (start >= n) return;",
            f"  const index_t end = start + min(n - start, (index_t){run});",
        ]
        if not by_rows:
            return [*limits, *self._write_loop("start", "end - start")]
        return [
            *limits,
            "  for (index_t at = start; at < end;) {",
            "  const index_t row = at / length, column = at - row * length;",
            "  const index_t count = min(length - column, end - at);",
            *self._write_loop("at", "count"),
            "  at += count;",
            "  }",
        ]

    def _write_loop(self, start: str, count: str) -> list[str]:
        """Return a loop over ``count`` neighbouring elements."""
        width = self.width
        lines, reads = [], []
        for each in self.inputs:
            wide = each.stored if width == 1 else f"{each.stored}{width}"
            if each.access in ("whole", "row"):
                at = start if each.access == "whole" else _place_in_row(each)
                lines.append(
                    f"  global const {each.stored} *{each.name}_run = {each.name}_in + {at};"
                )
                name = f"{each.name}_run"
                reads.append(
                    f"read_{each.stored}({name} + k, rest)" if width > 1 else f"{name}[k]"
                )
            else:
                # The same element for the whole run: read once, before the loop.
                one = _write_one(each)
                lines.append(f"  const {wide} {each.name}_one = ({wide})({one});")
                reads.append(f"{each.name}_one")
        statements, results = self._compute(reads)
        lines += [
            f"  for (index_t k = 0; k < {count}; k += {width}) {{",
            f"  const index_t rest = {count} - k;",
            *(f"  {statement}" for statement in statements),
        ]
        for each, result in zip(self.outputs, results, strict=True):
            to = f"{each.name}_out + {start} + k"
            lines.append(
                f"  write_{each.stored}({to}, {result}, rest);"
                if width > 1
                else f"  *({to}) = {result};"
            )
        return [*lines, "  }"]

    def _compute(self, reads: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the statements that compute the outputs from what ``reads`` give, and these."""
        writer = Writer(self.width)
        lines, parameters = [], {}
        for at, (each, text) in enumerate(zip(self.inputs, reads, strict=True)):
            number = each.access == "argument"
            parameters[at], declared = writer.read(each.name, each.dtype, text, number=number)
            lines.append(declared)
        statements, values = writer.write(self.roots, parameters)
        return [*lines, *statements], [writer.stored(value) for value in values]


def _write_one(array: _Array) -> str:
    """Return the element of an array at the place of the result's, or its only one."""
    if array.access == "argument":
        return f"{array.name}_argument"
    return f"{array.name}_in[{'0' if array.access == 'single' else _place_in_row(array)}]"


def _place_in_row(array: _Array) -> str:
    start = f"{array.name}_place(row, layout)"
    return f"{start} + column" if array.access == "row" else start
