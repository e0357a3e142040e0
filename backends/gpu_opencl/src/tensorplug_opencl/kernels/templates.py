"""Program texts, one function per access pattern; types and expressions are parameters.

Every program holds one kernel, ``run``. Its parameters are pairs of (pointer, offset in
elements), one per array, then constants. Programs depend on types, ranks and expressions, never
on sizes, so that few are built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Array",
    "Index",
    "Operand",
    "declare_layout",
    "define_place",
    "write_elementwise",
    "write_program",
]

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
) -> str:
    """Return a whole program.

    ``constants`` are C parameter declarations; ``body`` runs with every pointer already at its
    first element. ``index`` becomes the type ``index_t``. ``apart``: the kernel reads no written
    element through another pointer.
    """
    parameters = []
    qualifier = "restrict " if apart else ""
    for array in arrays:
        access = "" if array.written else "const "
        parameters.append(f"global {access}{array.ctype} *{qualifier}{array.name}")
        parameters.append(f"const long {array.name}_at")
    parameters.extend(constants)
    starts = "\n".join(f"  {array.name} += {array.name}_at;" for array in arrays)
    half = [_HALF] if any(array.ctype == "half" for array in arrays) else []
    wide = "uint" if index.itemsize == 4 else "ulong"
    head = "\n".join([f"// {title}", *half, _STRICT, _INLINE, f"typedef {wide} index_t;"])
    joined = ",\n  ".join(parameters)
    return f"{head}\n{declarations}\nkernel void run(\n  {joined})\n{{\n{starts}\n{body}\n}}\n"


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


def write_elementwise(
    title: str,
    operands: Sequence[Operand],
    result: str,
    expression: str,
    rank: int,
    index: Index,
    functions: str = "",
    constants: Sequence[tuple[str, str]] = (),
    *,
    run: int = 1,
    slow_path: tuple[str, str] | None = None,
) -> str:
    """Return ``y[i] = expression`` over the operands' elements, for i < n.

    The expression is the body of a separate function, so that the names of operands and constants
    cannot clash with others.

    A work-item computes one element, so that neighbours read neighbours, as suits GPUs; or else
    ``run`` of them, one after the other: CPU drivers turn such a loop into vector instructions.
    ``slow_path``: the condition under which a slower expression replaces it.

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
    declarations.append(functions)
    named = [f"const {operand.computed} {operand.name}" for operand in operands]
    named += [f"const {ctype} {name}" for name, ctype in constants]
    texts = [(result, "value_of", expression)]
    if slow_path:
        texts += [
            ("int", "needs_slow_path", slow_path[0]),
            (result, "slow_value_of", slow_path[1]),
        ]
    for ctype, name, text in texts:
        line = f"INLINE {ctype} {name}({', '.join(named)}) {{ return ({ctype})({text}); }}"
        declarations.append(line)
    arrays = [Array(f"{operand.name}_in", operand.stored) for operand in operands]
    parameters = [f"const {ctype} {name}_argument" for name, ctype in constants]
    sizes = declare_indices("n", "length", layout=True) if placed else declare_indices("n")
    values = [f"{name}_argument" for name, _ in constants]
    one_by_one = (
        _write_element if run == 1 else _write_run_of_rows if placed else _write_run_of_elements
    )
    return write_program(
        title,
        [*arrays, Array("y", result, written=True)],
        [*sizes, *parameters],
        one_by_one(operands, values, run, slow_path=slow_path is not None),
        index=index,
        declarations="\n".join(declarations),
        apart=True,
    )


def _write_read(operand: Operand, at: str) -> str:
    return f"({operand.computed}){operand.name}_in[{at}]"


def _write_element(
    operands: Sequence[Operand], constants: Sequence[str], _run: int, *, slow_path: bool
) -> str:
    """Return the body that computes the element with this work-item's number."""
    at = {"whole": "i", "single": "0"}
    lines = ["  const index_t i = get_global_id(0);", "  if (i >= n) return;"]
    if any(operand.access not in at for operand in operands):
        lines.append("  const index_t row = i / length, column = i - row * length;")
    values = [
        _write_read(operand, at.get(operand.access) or _place_in_row(operand, "row", "column"))
        for operand in operands
    ]
    arguments = ", ".join([*values, *constants])
    chosen = f"needs_slow_path({arguments}) ? slow_value_of({arguments}) : " if slow_path else ""
    return "\n".join([*lines, f"  y[i] = {chosen}value_of({arguments});"])


def _place_in_row(operand: Operand, row: str, column: str) -> str:
    start = f"{operand.name}_place({row}, layout)"
    return f"{start} + {column}" if operand.access == "row" else start


def _write_run_of_elements(
    operands: Sequence[Operand], constants: Sequence[str], run: int, *, slow_path: bool
) -> str:
    """Return the body that computes a run of elements, for arrays that are walked as one row."""
    loop = _write_loop(operands, constants, "start", "end - start", slow_path=slow_path)
    return "\n".join([*_write_run_limits(run), loop])


def _write_run_of_rows(
    operands: Sequence[Operand], constants: Sequence[str], run: int, *, slow_path: bool
) -> str:
    """Return the body that computes a run of elements, row by row."""
    return "\n".join(
        [
            *_write_run_limits(run),
            "  for (index_t at = start; at < end;) {",
            "  const index_t row = at / length, column = at - row * length;",
            "  const index_t count = min(length - column, end - at);",
            _write_loop(operands, constants, "at", "count", slow_path=slow_path),
            "  at += count;",
            "  }",
        ]
    )


def _write_run_limits(run: int) -> list[str]:
    return [
        f"  const index_t start = get_global_id(0) * (index_t){run};",
        "  if (start >= n) return;",
        f"  const index_t end = start + min(n - start, (index_t){run});",
    ]


def _write_loop(
    operands: Sequence[Operand],
    constants: Sequence[str],
    start: str,
    count: str,
    *,
    slow_path: bool,
) -> str:
    """Return a loop over ``count`` neighbouring elements.

    If there is a slow path, the loop checks whether any value needs it; a second loop then
    replaces those values.
    """
    lines, values = [], []
    for operand in operands:
        name = operand.name
        if operand.access in ("whole", "row"):
            at = start if operand.access == "whole" else _place_in_row(operand, "row", "column")
            lines.append(f"  global const {operand.stored} *{name}_run = {name}_in + {at};")
            values.append(f"({operand.computed}){name}_run[k]")
        else:
            at = "0" if operand.access == "single" else _place_in_row(operand, "row", "column")
            lines.append(f"  const {operand.computed} {name}_value = {_write_read(operand, at)};")
            values.append(f"{name}_value")
    named = ", ".join([*values, *constants])
    for_each = f"  for (index_t k = 0; k < {count}; k++)"
    if not slow_path:
        return "\n".join([*lines, for_each, f"    y[{start} + k] = value_of({named});"])
    return "\n".join(
        [
            *lines,
            "  int any_slow = 0;",
            f"{for_each} {{",
            f"    y[{start} + k] = value_of({named});",
            f"    any_slow |= needs_slow_path({named});",
            "  }",
            "  if (any_slow)",
            for_each,
            f"      if (needs_slow_path({named})) y[{start} + k] = slow_value_of({named});",
        ]
    )
