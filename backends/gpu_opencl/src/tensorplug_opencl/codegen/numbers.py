"""Numbers and vectors as C text, and the variables that hold them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import ctypes

if TYPE_CHECKING:
    from tensorplug.plugin import DType


SIGNED: Final = {1: "char", 2: "short", 4: "int", 8: "long"}


class Value(NamedTuple):
    """A variable: its name, its dtype, and of vectors of booleans the bytes of an element."""

    name: str
    dtype: DType
    nbytes: int = 0


def wide(ctype: str, width: int) -> str:
    """Return the type of ``width`` numbers."""
    return ctype if width == 1 else f"{ctype}{width}"


def splat(ctype: str, literal: str, width: int) -> str:
    """Return ``width`` equal numbers."""
    return literal if width == 1 else f"({wide(ctype, width)})({literal})"


def write_literal(value: Any, dtype: DType) -> str:
    """Return a number, rounded to ``dtype``, as C text."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.array(value).astype(dtype.numpy)[()]
    if dtype is dt.bool_:
        return "1" if rounded else "0"
    if dtype.kind == "float":
        return _write_float(float(rounded), ctypes.computed(dtype))
    # The bits, not the number: C has no literal for the most negative one.
    bits = int(rounded) & ((1 << 8 * dtype.itemsize) - 1)
    return f"(({ctypes.computed(dtype)}){bits:#x}{'ul' if dtype.itemsize == 8 else 'u'})"  # long


def _write_float(value: float, ctype: str) -> str:
    if math.isnan(value):
        return f"(({ctype})NAN)"
    if math.isinf(value):
        return f"(({ctype}){'-' * (value < 0)}INFINITY)"
    # Hexadecimal digits name the number itself; compilers may round decimal ones differently.
    return f"({value.hex()}{'f' * (ctype == 'float')})"
