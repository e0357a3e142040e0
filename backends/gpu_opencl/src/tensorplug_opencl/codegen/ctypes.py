"""The C types of dtypes: how elements are stored, computed with and moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import DType, KernelRefusedError
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.dialects.opencl_text import TYPES

if TYPE_CHECKING:
    import numpy as np


STORED: Final = TYPES
_HOST: Final = {ctype: dtype.numpy for dtype, ctype in STORED.items() if dtype is not dt.bool_}
# A bfloat16 is the upper half of a float. A float is rounded to the nearest, ties to even; a NaN
# gets a bit that does not depend on the lower half.
BFLOAT16: Final = """
#define TO_BFLOAT16(x) convert_ushort(((x) != (x)) ? (as_uint(x) >> 16u | 0x40u) \\
  : ((as_uint(x) + 0x7fffu + (as_uint(x) >> 16u & 1u)) >> 16u))
"""
MOVED: Final = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong", 16: "ulong2"}


def stored(dtype: DType) -> str:
    """Return the type of an element in memory; a boolean is a byte that is 0 or 1.

    Raises:
        KernelRefusedError: C has no operators for the dtype, or they have another meaning: for
            complex numbers, which separate kernels serve, and bfloat16, which ``kept`` allows.

    """
    if dtype in dt.COMPLEX:
        raise KernelRefusedError(f"it computes with real numbers, not with {dtype}")
    if dtype not in STORED:
        raise KernelRefusedError(f"it computes with C's types, not with {dtype}")
    return STORED[dtype]


def kept(dtype: DType) -> str:
    """Return the type of an element in memory for kernels that ``narrow`` numbers to it."""
    return "ushort" if dtype is dt.bfloat16 else stored(dtype)


def narrow(dtype: DType, number: str) -> str:
    """Return a number of any type, rounded to an element in memory."""
    if dtype.compute is dtype:
        return number
    if dtype is dt.bfloat16:
        return f"TO_BFLOAT16(convert_{computed(dtype)}({number}))"
    return f"convert_{stored(dtype)}({number})"


def computed(dtype: DType) -> str:
    """Return the type in which an element is computed with: half is widened to float."""
    return stored(dtype.compute)


def ring(dtype: DType) -> str:
    """Return the type for sums and products.

    Integers wrap, but overflow of signed integers, to which C also widens the short unsigned
    ones, is undefined in C: so they are computed in unsigned types of at least 32 bits.
    """
    if dtype.kind in ("float", "complex"):
        return computed(dtype)
    return "ulong" if dtype.itemsize == 8 else "uint"


def moved(dtype: DType) -> str:
    """Return the type that carries an element's bits: one program moves all dtypes of a size."""
    return MOVED[dtype.itemsize]


def host(ctype: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a C type, for arguments of that type."""
    return _HOST[ctype]
