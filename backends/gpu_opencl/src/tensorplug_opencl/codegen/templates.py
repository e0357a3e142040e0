"""Program texts, one function per access pattern; types and expressions are parameters.

Every program holds one kernel, ``run``. Its parameters are pairs of (pointer, offset in
elements), one per array, then constants. Programs depend on types, ranks and expressions, never
on sizes, so that few are built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from tensorplug_opencl.codegen import ctypes

if TYPE_CHECKING:
    from collections.abc import Sequence


Index = np.dtype[np.generic]  # of index_t: uint32, or uint64 for large arrays
Access = Literal["whole", "single", "row", "column"]

# A fused multiply-add rounds once. That is fine on request, but it would break the error-free
# transformations that sums rely on.
_STRICT: Final = "#pragma OPENCL FP_CONTRACT OFF"
# Begins a function. Compilers might not inline functions that are long or called twice into a
# loop, and then could not vectorize the loop.
_INLINE: Final = "#define INLINE static inline __attribute__((always_inline))"
_HALF: Final = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable"


class Array(NamedTuple):
    """An array parameter: its name, the type of its elements, and whether it is written."""

    name: str
    ctype: str
    written: bool = False


class Operand(NamedTuple):
    """An input of an elementwise kernel.

    ``access``: "whole" reads element i for element i of the result, "single" always the first. The
    others find the start of each row (the result's last axis) in the layout: "row" has one element
    for each element of the row, "column" one for all of them. ``computed``: the type in which the
    expression sees it.
    """

    name: str
    stored: str
    computed: str
    access: Access


def write_program(
    title: str,
    arrays: Sequence[Array],
    constants: Sequence[str],
    body: str,
    *,
    index: Index,
    declarations: str = "",
    apart: bool = False,
    vectors: str = "",
) -> str:
    """Return a whole program.

    ``constants`` are C parameter declarations; ``body`` runs with every pointer already at its
    first element. ``index`` becomes the type ``index_t``. ``apart``: the kernel reads no written
    element through another pointer. ``vectors``: the type of those that the body computes with;
    without it some drivers compute several work-items at once, and take seconds to build programs
    that already have vectors.
    """
    parameters = []
    qualifier = "restrict " if apart else ""
    for array in arrays:
        access = "" if array.written else "const "
        parameters.append(f"global {access}{array.ctype} *{qualifier}{array.name}")
        parameters.append(f"const long {array.name}_at")
    parameters.extend(constants)
    starts = "\n".join(f"  {array.name} += {array.name}_at;" for array in arrays)
    half = [_HALF] if "half" in declarations or any(a.ctype == "half" for a in arrays) else []
    wide = "uint" if index.itemsize == 4 else "ulong"
    macros = [ctypes.BFLOAT16] if "_BFLOAT16(" in declarations + body else []
    head = "\n".join([f"// {title}", *half, _STRICT, _INLINE, *macros, f"typedef {wide} index_t;"])
    joined = ",\n  ".join(parameters)
    hint = f"__attribute__((vec_type_hint({vectors})))\n" if vectors else ""
    begin = f"{head}\n{declarations}\n{hint}kernel void run(\n  {joined})"
    return f"{begin}\n{{\n{starts}\n{body}\n}}\n"


def declare_indices(*names: str, layout: bool = False) -> list[str]:
    """Return the declarations of index constants, then of the layout if there is one."""
    declared = [f"const index_t {name}" for name in names]
    return [*declared, "const Layout layout"] if layout else declared


def declare_layout(fields: Sequence[tuple[str, int]]) -> str:
    """Return the struct of the index arrays ``fields`` (name, length); "" without any entry."""
    members = [f"index_t {name}[{length}];" for name, length in fields if length]
    return f"typedef struct {{ {' '.join(members)} }} Layout;" if members else ""


def define_place(name: str, rank: int, sizes: str, strides: str) -> str:
    """Return a C function ``name(flat index, layout)`` giving the element's place."""
    if rank == 0:
        return f"index_t {name}(index_t rest) {{ return 0; }}"
    lines = [f"index_t {name}(index_t rest, Layout layout) {{", "  index_t at = 0;"]
    for axis in range(rank - 1, 0, -1):
        lines.append(f"  at += rest % layout.{sizes}[{axis}] * layout.{strides}[{axis}];")
        lines.append(f"  rest /= layout.{sizes}[{axis}];")
    lines.append(f"  return at + rest * layout.{strides}[0];\n}}")
    return "\n".join(lines)


class Routine(NamedTuple):
    """A C function that computes one element of each result.

    ``parameters`` and ``results`` are (C type, name). ``statements`` assign to the results' names.
    """

    name: str
    parameters: Sequence[tuple[str, str]]
    results: Sequence[tuple[str, str]]
    statements: str

    def define(self) -> str:
        """Return the function."""
        parameters = [f"const {ctype} {parameter}" for ctype, parameter in self.parameters]
        parameters += [f"{ctype} *{result}_set" for ctype, result in self.results]
        local = "".join(f"  {ctype} {result};\n" for ctype, result in self.results)
        sets = "".join(f"  *{result}_set = {result};\n" for _, result in self.results)
        return (
            f"INLINE void {self.name}({', '.join(parameters)}) {{\n{local}"
            f"  {self.statements}\n{sets}}}"
        )

    def call(self, values: Sequence[str], sets: Sequence[str], indent: str = "  ") -> str:
        """Return the statements that compute one element.

        ``sets``: for each result, the statement that takes ``{}``, its value.
        """
        made = [f"{result}_new" for _, result in self.results]
        local = "".join(
            f"{ctype} {new}; " for (ctype, _), new in zip(self.results, made, strict=True)
        )
        arguments = ", ".join([*values, *(f"&{new}" for new in made)])
        ends = " ".join(end.format(new) for end, new in zip(sets, made, strict=True))
        return f"{indent}{local}{self.name}({arguments}); {ends}"


def write_elementwise(
    title: str,
    operands: Sequence[Operand],
    results: Sequence[tuple[str, str]],
    routine: Routine,
    rank: int,
    index: Index,
    functions: str = "",
    constants: Sequence[tuple[str, str]] = (),
    *,
    run: int = 1,
) -> str:
    """Return a program that computes ``routine`` for each of n elements.

    The routine is a separate function, so that the names of operands and constants cannot clash
    with others. Its parameters are the operands, then the constants; ``results`` are the C types
    and names of the output arrays, called NAME_out, in the order of the routine's.

    A work-item computes one element, so that neighbours read neighbours, as suits GPUs; or else
    ``run`` of them, one after the other: CPU drivers turn such a loop into vector instructions.

    Constants: ``n``; then, if any operand is read by rows, ``length``, that of a row, and the
    layout of the ``rank`` axes before the last: sizes, then the strides of each such operand; then
    ``constants``, as (name, C type).
    """
    placed = [operand.name for operand in operands if operand.access in ("row", "column")]
    fields = [("size", rank), *((f"{name}_step", rank) for name in placed)] if placed else []
    declarations = [declare_layout(fields)]
    declarations += [
        define_place(f"{name}_place", rank, "size", f"{name}_step") for name in placed
    ]
    declarations += [functions, routine.define()]
    arrays = [Array(f"{operand.name}_in", operand.stored) for operand in operands]
    arrays += [Array(f"{name}_out", ctype, written=True) for ctype, name in results]
    parameters = [f"const {ctype} {name}_argument" for name, ctype in constants]
    sizes = declare_indices("n", "length", layout=True) if placed else declare_indices("n")
    writer = _Elementwise(
        operands, [name for _, name in results], routine, [name for name, _ in constants]
    )
    return write_program(
        title,
        arrays,
        [*sizes, *parameters],
        writer.write_body(run, by_rows=bool(placed)),
        index=index,
        declarations="\n".join(declarations),
        apart=True,
    )


class _Elementwise:
    """The writer of an elementwise program's body."""

    def __init__(
        self,
        operands: Sequence[Operand],
        results: Sequence[str],
        routine: Routine,
        constants: Sequence[str],
    ) -> None:
        self._operands = operands
        self._results = results
        self._routine = routine
        self._constants = [f"{name}_argument" for name in constants]

    def write_body(self, run: int, *, by_rows: bool) -> str:
        if run == 1:
            return self._write_element()
        limits = [
            f"  const index_t start = get_global_id(0) * (index_t){run};",
            "  if (start >= n) return;",
            f"  const index_t end = start + min(n - start, (index_t){run});",
        ]
        if not by_rows:
            return "\n".join([*limits, self._write_loop("start", "end - start")])
        return "\n".join(
            [
                *limits,
                "  for (index_t at = start; at < end;) {",
                "  const index_t row = at / length, column = at - row * length;",
                "  const index_t count = min(length - column, end - at);",
                self._write_loop("at", "count"),
                "  at += count;",
                "  }",
            ]
        )

    def _write_element(self) -> str:
        """Return the body that computes the element with this work-item's number."""
        at = {"whole": "i", "single": "0"}
        lines = ["  const index_t i = get_global_id(0);", "  if (i >= n) return;"]
        if any(operand.access not in at for operand in self._operands):
            lines.append("  const index_t row = i / length, column = i - row * length;")
        values = [
            _write_read(operand, at.get(operand.access) or _place_in_row(operand))
            for operand in self._operands
        ]
        sets = [f"{name}_out[i] = {{}};" for name in self._results]
        return "\n".join([*lines, self._routine.call([*values, *self._constants], sets)])

    def _write_loop(self, start: str, count: str) -> str:
        """Return a loop over ``count`` neighbouring elements."""
        lines, values = [], []
        for operand in self._operands:
            name = operand.name
            if operand.access in ("whole", "row"):
                at = start if operand.access == "whole" else _place_in_row(operand)
                lines.append(f"  global const {operand.stored} *{name}_run = {name}_in + {at};")
                values.append(f"({operand.computed}){name}_run[k]")
            else:
                at = "0" if operand.access == "single" else _place_in_row(operand)
                read = _write_read(operand, at)
                lines.append(f"  const {operand.computed} {name}_value = {read};")
                values.append(f"{name}_value")
        sets = [f"{name}_out[{start} + k] = {{}};" for name in self._results]
        lines.append(f"  for (index_t k = 0; k < {count}; k++) {{")
        lines.append(self._routine.call([*values, *self._constants], sets, "    "))
        return "\n".join([*lines, "  }"])


def _write_read(operand: Operand, at: str) -> str:
    return f"({operand.computed}){operand.name}_in[{at}]"


def _place_in_row(operand: Operand) -> str:
    start = f"{operand.name}_place(row, layout)"
    return f"{start} + column" if operand.access == "row" else start
