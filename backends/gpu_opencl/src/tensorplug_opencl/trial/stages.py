"""The stages of a trial, and the limits that follow if a driver fails one.

The first ones are tried before the device is opened, and the others before the first program that
needs them. The first ones are two kernels of one program, since drivers take long to start their
compilers. What fails there is tried by itself.
"""

from __future__ import annotations

from typing import Final

from tensorplug_opencl.machine.limits import NONE as NO_LIMITS
from tensorplug_opencl.machine.limits import Limits

VECTORS: Final = (64, 32, 16)  # bytes in a vector, the longest first
_OPTIONAL: Final = {
    "binaries": "binaries",
    "float64": "float64",
    "float16": "float16",
    "64-bit atomics": "atomics64",
    "long loops": "long_loops",
    "shared memory": "shared_memory",
}  # optional stages, and the limits that they set


TOGETHER: Final = "together"  # the attempt of the first stages in one program: no finding


def name_vectors(nbytes: int) -> str:
    """Return the name of the stage that tries vectors of ``nbytes`` bytes."""
    return f"vectors of {nbytes} bytes"


def name_floats(nbytes: int) -> str:
    """Return the name of the first stage that tries those of float."""
    return f"floats in {name_vectors(nbytes)}"


def find_limits(failed: set[str]) -> Limits | None:
    """Return the limits after these stages failed; None if the device is then unsound."""
    names = {nbytes: {name_vectors(nbytes), name_floats(nbytes)} for nbytes in VECTORS}
    fitting = [nbytes for nbytes in VECTORS if not names[nbytes] & failed]
    others = failed.difference(*names.values())
    if not fitting or others - _OPTIONAL.keys():
        return None
    lacking = {_OPTIONAL[stage]: False for stage in others}
    return NO_LIMITS._replace(vector_bytes=fitting[0], **lacking)
