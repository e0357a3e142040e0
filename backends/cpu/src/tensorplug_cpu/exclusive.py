"""Memory that one tensor owns, so that an assignment may write into it in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array

__all__ = ["ExclusiveArray"]


class Loan:
    """Stands between an array on loan and the memory under it.

    NumPy keeps it alive as the base of that array, and through it of every view, DLPack capsule
    and memoryview. So the loan lives exactly as long as anybody can see the memory.
    """

    __slots__ = ("__array_interface__", "__weakref__", "base")

    def __init__(self, memory: Array) -> None:
        self.base = memory
        self.__array_interface__ = memory.__array_interface__


class ExclusiveArray:
    """See ``tensorplug.plugin.ExclusiveBuffer``."""

    __slots__ = ("_loans", "_memory")

    def __init__(self, array: Array) -> None:
        self._memory = np.array(array)
        self._loans: list[ref[Loan]] = []

    def lend(self) -> Array:
        """Return a new array over the memory."""
        loan = Loan(self._memory)
        self._loans.append(ref(loan))
        return np.asarray(loan)

    def overwrite(self, key: tuple[int | slice | None, ...], value: Any) -> bool:
        """Write ``value`` at ``key`` unless anybody sees the memory beside the newest loan."""
        *others, newest = self._loans
        self._loans = [loan for loan in others if loan() is not None]
        seen = bool(self._loans)
        self._loans.append(newest)
        if not seen:
            self._memory[(*key, ...)] = value
        return not seen
