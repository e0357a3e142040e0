"""Memory that one tensor owns, so that an assignment may write into it in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array


class _Memory(np.ndarray):
    """The type of the array under a loan; it keeps NumPy from leaving the loan out."""


class _Loan(np.ndarray):
    """Stands between an array on loan and the memory under it.

    NumPy makes a view refer to the array under another view, but not across types. So a loan
    stays the base of the array that is made from it, and through that array of every view, DLPack
    capsule and memoryview: it lives exactly as long as anything can see the memory.
    """


class ExclusiveArray:
    """See ``tensorplug.plugin.ExclusiveBuffer``."""

    __slots__ = ("_array", "_loans", "_memory")

    def __init__(self, array: Array) -> None:
        self._array = np.array(array)
        self._memory = self._array.view(_Memory)
        self._loans: list[ref[_Loan]] = []

    def lend(self) -> Array:
        """Return a new array over the memory."""
        loan = self._memory.view(_Loan)
        self._loans.append(ref(loan))
        return loan.view(np.ndarray)

    def overwrite(self, key: tuple[int | slice | None, ...], value: Any) -> bool:
        """Write ``value`` at ``key`` unless an older loan than the newest one lives."""
        loans = self._loans
        while len(loans) > 1:
            if loans[0]() is not None:
                return False
            del loans[0]
        self._array[(*key, ...)] = value
        return True
