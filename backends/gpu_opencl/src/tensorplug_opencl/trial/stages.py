"""The stages of a trial, and the limits that follow if a driver fails one."""

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


def name_vectors(nbytes: int) -> str:
    """Return the name of the stage that tries vectors of ``nbytes`` bytes."""
    return f"vectors of {nbytes} bytes"


def find_limits(failed: set[str]) -> Limits | None:
    """Return the limits after these stages failed; None if the device is then unsound."""
    fitting = [nbytes for nbytes in VECTORS if name_vectors(nbytes) not in failed]
    others = failed - {name_vectors(nbytes) for nbytes in VECTORS}
    if not fitting or others - _OPTIONAL.keys():
        return None
    lacking = {_OPTIONAL[stage]: False for stage in others}
    return NO_LIMITS._replace(vector_bytes=fitting[0], **lacking)
