"""The programs of a driver's trial, and the numbers that they must compute.

The checks cover what drivers were seen to get wrong, long vectors (``vector_checks``) and long
loops, and what the backend can do without: half precision and atomics on 64-bit integers.
Expected numbers come from NumPy, by other formulas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, Any]


LENGTH: Final = 101  # elements that kernels walk over: whole vectors, and some more
ITEMS: Final = 6  # work-items at once
GROUP: Final = 24  # work-items that share memory, at most; no multiple of a GPU's sub-groups
STRICT: Final = "#pragma OPENCL FP_CONTRACT OFF\n"


class Check(NamedTuple):
    """One kernel: its inputs, its number of work-items, their group size, the expected output.

    Results are compared exactly, or within ``ulp`` units in the last place.
    """

    kernel: str
    inputs: Sequence[Array]
    items: int
    group: int
    expected: Array
    ulp: float = 0

    def explain_mismatch(self, actual: Array) -> str:
        """Return what is wrong with ``actual``; "" if nothing is."""
        right = self.expected
        with np.errstate(all="ignore"):
            if not self.ulp:
                same = actual == right
            else:
                step = self.ulp * np.spacing(np.abs(right))
                off = np.abs(actual.astype(np.float64) - right.astype(np.float64))
                same = (off <= step) | (actual == right) | (np.isnan(actual) & np.isnan(right))
        if same.all():
            return ""
        at = int(np.argmin(same.reshape(-1)))
        received, expected = actual.reshape(-1)[at], right.reshape(-1)[at]
        return f"{self.kernel}: number {at} is {received}, must be {expected}"


Part = tuple[str, list[Check]]  # the text of a program, and the checks of its kernels


def make_numbers(dtype: str, seed: int, count: int = LENGTH * ITEMS + 1) -> Array:
    """Return the same numbers each time: integers of all bits, floats around 1."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return rng.uniform(-2.0, 2.0, count).astype(kind)
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, count, dtype=kind, endpoint=True)


def loops() -> Part:
    """Return a check of nested loops with so many steps that some drivers give up."""
    turns, steps = 40, 5_000
    seeds = np.arange(ITEMS, dtype="u4")
    program = f"""kernel void loops(global const uint *x, global uint *y) {{
  const int i = get_global_id(0);
  uint state = x[i];
  for (uint turn = 0; turn < x[{ITEMS}]; turn++)
    for (uint step = 0; step < x[{ITEMS + 1}]; step++) state = state * 1664525u + 1013904223u;
  y[i] = state;
}}
"""
    factor, term = 1664525, 1013904223  # of one step; then of all of them
    for bit in bin(turns * steps)[3:]:
        factor, term = factor * factor, factor * term + term
        if bit == "1":
            factor, term = 1664525 * factor, 1664525 * term + 1013904223
        factor, term = factor % 2**32, term % 2**32
    right = np.array([(factor * seed + term) % 2**32 for seed in range(ITEMS)], "u4")
    inputs = np.concatenate([seeds, np.array([turns, steps], "u4")])
    return program, [Check("loops", [inputs], ITEMS, 1, right)]


def wide_atomics(size: int = GROUP) -> Part:
    """Return a check of atomic additions and exchanges on 64-bit integers."""
    count = 4 * size
    x = make_numbers("i8", 7, count)
    program = """#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
kernel void wide_atomics(global const long *x, volatile global long *y) {
  const int i = get_global_id(0);
  atom_add(y + i % 3, x[i]);
  long known, old = y[3];
  do { known = old; old = atom_cmpxchg(y + 3, known, known ^ x[i]); } while (old != known);
}
"""
    atomics = [*(x[at::3].sum() for at in range(3)), np.bitwise_xor.reduce(x)]
    return program, [Check("wide_atomics", [x], count, size, np.array(atomics, "i8"))]


def halves() -> Part:
    """Return a check of half precision: read, widened, added up and rounded back."""
    x = make_numbers("f2", 8)
    program = f"""#pragma OPENCL EXTENSION cl_khr_fp16 : enable
{STRICT}
kernel void halves(global const half *x, global half *y) {{
  const int i = get_global_id(0);
  const float a = (float)x[i];
  y[i] = (half)(a * a + 1.0f); y[{x.size} + i] = (half)(a * 70000.0f);
}}
"""
    a = x.astype("f4")
    with np.errstate(over="ignore"):
        made = np.concatenate([a * a + np.float32(1), a * np.float32(70000)]).astype("f2")
    return program, [Check("halves", [x], x.size, 1, made)]
