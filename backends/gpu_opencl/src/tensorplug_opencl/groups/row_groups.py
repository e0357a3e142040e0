"""Program texts of groups with reductions: pass after pass along a row, then its elements.

A ``Form`` shares rows out among work-items:

- "lanes": a work-item takes a row (or a part of one) that is contiguous, in vectors, whose lanes
  are folded together at the end. For CPUs.
- "group": the work-items of a group take the elements of such a row in turn, and fold what each
  has in local memory, as a tree. For GPUs, where neighbours then read neighbouring elements.
- "columns": a work-item takes neighbouring rows, in ``tile`` vectors side by side (one vector of
  length 1 on GPUs), whose elements lie apart. For rows along any axis but the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug_opencl.codegen import templates, vectors
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.groups.row_bodies import Body, Program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorplug_opencl.groups.row_forms import Form, Operand


# The work-items needed, the parts of a row, the elements of a row and from one part to the next,
# and the rows side by side.
CONSTANTS: Final = ("items", "parts", "length", "span", "inner")


def _name_vectors(form: Form) -> str:
    """Return a type that tells drivers that work-items compute in vectors."""
    return f"float{form.lanes}" if form.lanes > 1 else ""


def write_program(program: Program, form: Form, index: templates.Index) -> str:
    """Return the text of ``program``: arrays are the inputs, the outputs, then the parts.

    Inputs that are numbers are the last arguments.
    """
    named = [*_name(program.arrays, "in"), *_name(program.outputs, "out")]
    names = [name for name, _ in named]
    fields = [("size", form.rank), *((f"{name}_step", form.rank) for name in names)]
    if form.kind == "columns":
        fields += [(f"{name}_by", 1) for name in names]
    struct = templates.declare_layout(fields)
    declarations = [struct]
    if form.rank:
        declarations += [
            templates.define_offset(f"{name}_offset", form.rank, "size", f"{name}_step")
            for name in names
        ]
    if form.lanes > 1:
        stored = {operand.stored for _, operand in named}
        stored |= {operand.stored for _, operand in program.parts}
        declarations.append(vectors.define_parts(form.lanes, *stored))
    rooms = [f"{operand.name}_size" for operand in program.list_rooms(form)]
    numbers = [
        f"const {operand.stored} {operand.name}_argument"
        for operand in program.inputs
        if operand.argument
    ]
    arrays = [
        Array(name, operand.stored, written=operand in program.outputs) for name, operand in named
    ]
    arrays += [Array(f"{own.name}_out", own.stored, written=True) for _, own in program.parts]
    return templates.write_program(
        f"{program.title} by {form.kind} of {form.width}" + f" x {form.tile}" * (form.tile > 1),
        arrays,
        [*templates.declare_indices(*CONSTANTS, *rooms, layout=bool(struct)), *numbers],
        "\n".join(Body(program, form).write()),
        index=index,
        declarations="\n".join(text for text in declarations if text),
        apart=True,
        vectors=_name_vectors(form),
    )


def _name(operands: Iterable[Operand], suffix: str) -> list[tuple[str, Operand]]:
    return [(f"{operand.name}_{suffix}", operand) for operand in operands]
