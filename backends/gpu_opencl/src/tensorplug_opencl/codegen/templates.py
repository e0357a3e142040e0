"""Program texts, one function per access pattern; types and expressions are parameters.

Every program holds one kernel, ``run``. Its parameters are pairs of (pointer, offset in
elements), one per array, then constants. Programs depend on types, ranks and expressions, never
on sizes, so that few are built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorplug_opencl.codegen import ctypes

if TYPE_CHECKING:
    from collections.abc import Sequence


Index = np.dtype[np.generic]  # of index_t: uint32, or uint64 for large arrays

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
    half = [_HALF] if "half" in declarations or any(a.ctype == "half" for a in arrays) else []
    wide = "uint" if index.itemsize == 4 else "ulong"
    macros = [ctypes.BFLOAT16] if "_BFLOAT16(" in declarations + body else []
    head = "\n".join([f"// {title}", *half, _STRICT, _INLINE, *macros, f"typedef {wide} index_t;"])
    joined = ",\n  ".join(parameters)
    begin = f"{head}\n{declarations}\nkernel void run(\n  {joined})"
    return f"{begin}\n{{\n{starts}\n{body}\n}}\n"


def declare_indices(*names: str, layout: bool = False) -> list[str]:
    """Return the declarations of index constants, then of the layout if there is one."""
    declared = [f"const index_t {name}" for name in names]
    return [*declared, "const Layout layout"] if layout else declared


def declare_layout(fields: Sequence[tuple[str, int]]) -> str:
    """Return the struct of the index arrays ``fields`` (name, length); "" without any entry."""
    members = [f"index_t {name}[{length}];" for name, length in fields if length]
    return f"typedef struct {{ {' '.join(members)} }} Layout;" if members else ""


def define_offset(name: str, rank: int, sizes: str, strides: str) -> str:
    """Return a C function ``name(flat index, layout)`` giving the element's offset."""
    if rank == 0:
        return f"index_t {name}(index_t rest) {{ return 0; }}"
    lines = [f"index_t {name}(index_t rest, Layout layout) {{", "  index_t at = 0;"]
    for axis in range(rank - 1, 0, -1):
        lines.append(f"  at += rest % layout.{sizes}[{axis}] * layout.{strides}[{axis}];")
        lines.append(f"  rest /= layout.{sizes}[{axis}];")
    lines.append(f"  return at + rest * layout.{strides}[0];\n}}")
    return "\n".join(lines)
