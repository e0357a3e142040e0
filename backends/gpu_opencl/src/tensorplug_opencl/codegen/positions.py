"""Positions of rows in an array, given by indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug_opencl.codegen import ctypes

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Shape
    from tensorplug_opencl.codegen.calls import Constant

# An index as a long, counted from the front; unsigned ones beyond a long's range stay too large.
# Mesa 22 takes a long that was an int for an unsigned one where it is compared with a constant: so
# the code tests the sign of the index itself, and finds indices out of range without it.
_POSITION: Final = {
    "signed": "long position = entry[axis]; if (entry[axis] < 0) position += lengths.of[axis];",
    "unsigned": "long position = min((ulong)entry[axis], (ulong)LONG_MAX);",
}
_REFUSED: Final = "if ((ulong)position >= (ulong)lengths.of[axis]) return -1;"


def define_position_of(dtype: DType, depth: int) -> str:
    """Return the C function ``position_of(pointer to an index, lengths)``.

    An index is ``depth`` numbers of ``dtype``, one for each of so many axes; positions are counted
    in row-major order. Negative ones count from the end. If one is out of range, it is -1.
    """
    return f"""typedef struct {{ long of[{max(depth, 1)}]; }} Lengths;
long position_of(global const {ctypes.stored(dtype)} *entry, Lengths lengths) {{
  long flat = 0;
  for (int axis = 0; axis < {depth}; axis++) {{
    {_POSITION[dtype.kind]}
    {_REFUSED}
    flat = flat * lengths.of[axis] + position;
  }}
  return flat;
}}"""


def pack_lengths(shape: Shape) -> Constant:
    """Return the constant that ``define_position_of`` takes."""
    return "Lengths", "lengths", np.array(shape or (1,), np.int64)
