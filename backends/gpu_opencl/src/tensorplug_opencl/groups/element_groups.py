"""Groups without reductions as one kernel: the expressions of a group in C.

A CPU's work-item computes a run of elements in vectors, a GPU's one element (see ``walks``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.plugin import KernelRefusedError, shapes
from tensorplug_opencl.codegen import ctypes, layouts, templates, vectors, walks
from tensorplug_opencl.codegen.statements import Writer
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.codegen.walks import Walk, Walked
from tensorplug_opencl.groups import recipes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Expression, Group
    from tensorplug_opencl.groups.recipes import Recipe
    from tensorplug_opencl.runtime import Runtime

    Span = tuple[bool, ...]


ARGUMENTS: Final = 1024  # bytes that every device allows


def prepare(group: Group, runtime: Runtime) -> Callable[..., None]:
    """Return the launch of a group without reductions, all of whose outputs span all axes.

    It takes the buffers of the inputs, then of the outputs, which have elements.

    Raises:
        KernelRefusedError: the group has complex numbers, or too many arrays for one kernel.

    """
    recipe, values = recipes.find(group)
    size = shapes.size(group.shape)
    walk = Walk.of(group.shape, [strides_of(group, operand.spans) for operand in group.inputs])
    index = layouts.index_dtype(size, *(operand.type.size for operand in group.inputs))
    width = choose_width(recipe, runtime) if runtime.is_cpu else 1
    run = walks.RUN if runtime.is_cpu else 1
    source = _write(recipe, walk.accesses, walk.rank, width, run, index)
    arguments = [*walk.arguments(index), *values]
    arrays = len(group.inputs) + len(group.outputs)
    check_arguments(arrays, arguments)
    return runtime.launch(source, arrays, arguments, -(-size // run), heavy=run > 1)


@lru_cache(recipes.KEPT)
def _write(
    recipe: Recipe,
    accesses: tuple[walks.Access, ...],
    rank: int,
    width: int,
    run: int,
    index: templates.Index,
) -> str:
    """Return the program's text; ``accesses``: of the inputs that are no constants."""
    group = recipe.group
    inputs = []
    for at, operand in enumerate(group.inputs):
        dtype = operand.type.dtype
        number = at >= len(accesses)
        stored = ctypes.computed(dtype) if number else ctypes.kept(dtype)
        inputs.append(Walked(f"x{at}", dtype, stored, "argument" if number else accesses[at]))
    outputs = [
        Walked(f"y{at}", output.type.dtype, ctypes.kept(output.type.dtype), "whole")
        for at, output in enumerate(group.outputs)
    ]
    apart = all(output.into is None for output in group.outputs)
    program = _Program(recipe.title, inputs, outputs, recipe.roots, width, apart)
    return program.write(rank, run, index)


def check_arguments(arrays: int, arguments: Sequence[Any]) -> None:
    """Check that a kernel may have so many arguments.

    Raises:
        KernelRefusedError: it may not.

    """
    if 16 * arrays + sum(argument.nbytes for argument in arguments) > ARGUMENTS:
        raise KernelRefusedError(f"{arrays} arrays are too many for one kernel")


def strides_of(group: Group, spans: Span) -> layouts.Strides:
    """Return the strides of an input along the group's axes, 0 where it is repeated."""
    own = tuple(n if spanned else 1 for n, spanned in zip(group.shape, spans, strict=True))
    steps = zip(layouts.row_major(own), spans, strict=True)
    return tuple(step if spanned else 0 for step, spanned in steps)


def choose_width(recipe: Recipe, runtime: Runtime) -> int:
    """Return how many elements of the longest dtype a vector holds."""
    return vectors.choose_lanes(runtime, *recipe.computed)


class _Program(NamedTuple):
    """The program of an elementwise group; ``apart``: it overwrites no input."""

    title: str
    inputs: Sequence[Walked]
    outputs: Sequence[Walked]
    roots: Sequence[Expression]
    width: int
    apart: bool

    def write(self, rank: int, run: int, index: templates.Index) -> str:
        """Return its text; ``rank``: of the layout of rows; ``run``: elements of a work-item."""
        declarations, sizes = walks.declare(self.inputs, rank)
        if self.width > 1:
            stored = (each.stored for each in (*self.inputs, *self.outputs))
            declarations.append(vectors.define_parts(self.width, *stored))
        numbers = [each for each in self.inputs if each.access == "argument"]
        sizes += [f"const {each.stored} {each.name}_argument" for each in numbers]
        arrays = [
            Array(f"{each.name}_in", each.stored) for each in self.inputs if each not in numbers
        ]
        arrays += [Array(f"{each.name}_out", each.stored, written=True) for each in self.outputs]
        return templates.write_program(
            f"{self.title} by {self.width}",
            arrays,
            sizes,
            walks.write_body(self.inputs, run, self._write_element, self._write_loop),
            index=index,
            declarations="\n".join(declarations),
            apart=self.apart,
            vectors=f"float{self.width}" if self.width > 1 else "",
        )

    def _write_element(self) -> list[str]:
        """Return the statements that compute element i."""
        statements, results = self._compute([walks.read(each) for each in self.inputs])
        stores = [
            f"{each.name}_out[i] = {result};"
            for each, result in zip(self.outputs, results, strict=True)
        ]
        return [f"  {line}" for line in (*statements, *stores)]

    def _write_loop(self, start: str, count: str) -> list[str]:
        """Return a loop over ``count`` neighbouring elements."""
        width = self.width
        lines, reads = [], []
        for each in self.inputs:
            wide = each.stored if width == 1 else f"{each.stored}{width}"
            pointer = walks.point(each, start)
            # The same element for the whole run is read once, before the loop.
            one = f"  const {wide} {each.name}_one = ({wide})({walks.read(each)});"
            lines.append(pointer or one)
            if not pointer:
                reads.append(f"{each.name}_one")
            elif width > 1:
                reads.append(f"read_{each.stored}({each.name}_run + k, rest)")
            else:
                reads.append(f"{each.name}_run[k]")
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
