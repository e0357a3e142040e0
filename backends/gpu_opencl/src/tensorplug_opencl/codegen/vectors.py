"""Vectors at the address of any element, read and written without a call.

OpenCL's ``vload`` and ``vstore`` are functions, which some drivers (PoCL 3.0) do not inline: they
spill all registers to memory around each call, which takes longer than the loop's own work. A
vector that is the only member of a packed struct may also lie anywhere (OpenCL 1.2, 6.11.1), and
one instruction reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug_opencl.codegen import ctypes

if TYPE_CHECKING:
    from tensorplug_opencl.runtime import Runtime


WIDEST: Final = 16  # elements in the longest vector type of OpenCL C


def choose_lanes(runtime: Runtime, *used: str) -> int:
    """Return how many elements of these C types a vector should hold."""
    if set(used) != {"float"}:  # which are tried before the device is opened
        runtime.finish_trial()
    widest = max(ctypes.host(ctype).itemsize for ctype in used)
    return min(WIDEST, runtime.limits.vector_bytes // widest)


def _name_loose(ctype: str, width: int) -> str:
    return f"loose_{ctype}{width}"


def declare(width: int, *types: str) -> str:
    """Return the declarations that loads and stores of ``width`` elements of ``types`` need."""
    names = {ctype: _name_loose(ctype, width) for ctype in sorted(set(types))}
    return "\n".join(
        f"typedef struct __attribute__((packed)) {{ {ctype}{width} v; }} {name};"
        for ctype, name in names.items()
    )


def load(ctype: str, width: int, pointer: str) -> str:
    """Return the expression of the ``width`` elements from ``pointer`` on, in global memory."""
    return f"((global const {_name_loose(ctype, width)} *)({pointer}))->v"


def store(ctype: str, width: int, pointer: str, value: str) -> str:
    """Return the statement that writes ``value`` to the ``width`` elements from ``pointer`` on."""
    return f"((global {_name_loose(ctype, width)} *)({pointer}))->v = {value};"


def define_parts(width: int, *types: str) -> str:
    """Return the functions that read and write vectors of which only ``rest`` elements exist.

    They are ``read_TYPE(from, rest)``, which repeats the last element, and
    ``write_TYPE(to, value, rest)``; for a ``rest`` above ``width`` all elements exist.
    """
    texts = []
    halves = [width >> by for by in range(1, width.bit_length() - 1)]
    for ctype in sorted(set(types)):
        wide = f"{ctype}{width}"
        texts += [declare(length, ctype) for length in (width, *halves)]
        texts.append(f"""
INLINE {wide} read_{ctype}(global const {ctype} *from, index_t rest) {{
  if (rest >= {width}) return {load(ctype, width, "from")};
  union {{ {ctype} each[{width}]; {wide} all; }} last;
  for (index_t j = 0; j < {width}; j++) last.each[j] = from[min(j, rest - 1)];
  return last.all;
}}
INLINE void write_{ctype}(global {ctype} *to, {wide} value, index_t rest) {{
  if (rest >= {width}) {{ {store(ctype, width, "to", "value")} return; }}
  union {{ {ctype} each[{width}]; {wide} all; }} last;
  uint at = 0;
  last.all = value;""")
        for length in halves:
            own = f"(({_name_loose(ctype, length)} *)(last.each + at))->v"
            put = store(ctype, length, "to + at", own)
            texts.append(f"  if (rest & {length}) {{ {put} at += {length}; }}")
        texts.append("  if (rest & 1) to[at] = last.each[at];\n}")
    return "\n".join(texts)
