"""Addresses of arrays, and the prologue of kernels that reads them, for short runs.

Asking NumPy for the address of an array takes longer than a loop over a few elements. In CPython
the address is at a fixed offset in the array's object, which is tried out before it is used.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tensorplug_cpu.arrays import Array


PROLOGUE: Final = "prologue"
_COPY: Final = "llvm.memcpy.p0.p0.i64"
_PLACE: Final = object.__basicsize__  # the first field after the head of all objects


@cache
def reads_arrays() -> bool:
    """Return whether this interpreter and this NumPy keep the address where it is looked for."""
    if sys.implementation.name != "cpython":
        return False
    tried: list[Array] = [np.empty(3, np.int8), np.empty((2, 2))[1:], np.empty(())]
    return all(
        ctypes.c_void_p.from_address(id(array) + _PLACE).value
        == array.__array_interface__["data"][0]
        for array in tried
    )


_word: Final = ctypes.c_size_t.from_address


def address(array: Array) -> int:
    """Return where the memory of ``array`` begins; NumPy takes eight times as long to tell."""
    if reads_arrays():
        return _word(id(array) + _PLACE).value
    return int(array.__array_interface__["data"][0])


def write_prologue(slots: Sequence[Hashable]) -> str:
    """Return the text of a function that calls ``run`` with a copy of the arguments ``slots``.

    It takes the address of a team, whose first word is the function that is to make the call, or
    none; the team's patience; the address of the arguments; and the arrays whose addresses are to
    be filled in.
    """
    positions = [at for at, slot in enumerate(slots) if is_pointer(slot)]
    size = len(slots)
    arrays = "".join(f", ptr %array{k}" for k in range(len(positions)))
    lines = [
        f"declare void @{_COPY}(ptr, ptr, i64, i1)",
        f"define void @{PROLOGUE}(ptr %team, i64 %patience, ptr %values{arrays}) {{",
        f"  %block = alloca [{size} x i64]",
        f"  call void @{_COPY}(ptr %block, ptr %values, i64 {8 * size}, i1 false)",
    ]
    for k, at in enumerate(positions):
        lines += [
            f"  %field{k} = getelementptr i8, ptr %array{k}, i64 {_PLACE}",
            f"  %data{k} = load ptr, ptr %field{k}",
            f"  %slot{k} = getelementptr i64, ptr %block, i64 {at}",
            f"  store ptr %data{k}, ptr %slot{k}",
        ]
    lines += [
        "  %has_team = icmp ne ptr %team, null",
        "  br i1 %has_team, label %share, label %alone",
        "share:",
        "  %begin = load ptr, ptr %team",
        "  call void %begin(ptr %team, ptr @run, ptr %block, i64 %patience)",
        "  ret void",
        "alone:",
        "  call void @run(ptr %block) noinline",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)


def is_pointer(slot: Hashable) -> bool:
    """Return whether a slot is the address of an operand."""
    return isinstance(slot, tuple) and slot[0] == "pointer"
