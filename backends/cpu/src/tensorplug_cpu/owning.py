"""Who has an array's memory."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_cpu.recycling import Lease

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array

__all__ = ["alone"]


def alone(array: Array) -> bool:
    """Return whether nobody sees the memory of ``array`` but who holds that very object.

    What is made of an array (a view, a DLPack capsule, a memoryview) holds it, or the array that
    it is a view of. So an array with memory of its own is alone. One over an array that nobody
    else holds, or over leased memory, is too; but only if each element has a place of its own.
    """
    flags = array.flags
    if array.__class__ is not np.ndarray or not flags.writeable:
        return False
    if flags.owndata:
        return True
    if not flags.forc or getrefcount(array.base) != 2:  # the array's reference, the call's own
        return False
    base: Any = array.base  # typed as an array, but it is whatever owns the memory
    return base.__class__ is Lease or (base.__class__ is np.ndarray and base.flags.owndata)
