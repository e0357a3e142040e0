"""Kernels with what they take: what a schedule makes of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tensorplug.plugin import DType, TensorType
    from tensorplug_loops.statements import Kernel


class Launch(NamedTuple):
    """A kernel to run: ``arrays`` by number, for each of the kernel's, ``numbers`` likewise.

    ``items``: how many work-items, or work-groups, there are. ``cost``: about how many
    instructions a work-item takes. ``steps``: of its innermost loops, at most.
    """

    kernel: Kernel
    arrays: tuple[int, ...]
    numbers: tuple[int, ...]
    items: int
    cost: int
    steps: int = 0


class Program(NamedTuple):
    """Launches in order. Arrays are numbered: the inputs, the outputs, then ``temporaries``.

    ``temporaries``: their dtypes and sizes in elements. ``outputs``: likewise, as they are held
    (``Converter.held``).
    """

    launches: tuple[Launch, ...]
    outputs: tuple[TensorType, ...]
    temporaries: tuple[tuple[DType, int], ...]

    def reads_after(self, number: int, written: int) -> bool:
        """Return whether an array is read by a kernel after one that writes another."""
        kernels = [each.arrays for each in self.launches]
        first = next((at for at, arrays in enumerate(kernels) if written in arrays), len(kernels))
        return any(number in arrays for arrays in kernels[first + 1 :])
