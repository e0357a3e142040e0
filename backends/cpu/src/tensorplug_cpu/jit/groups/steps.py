"""The kernels of a group in order, with the arrays that they read and fill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug_cpu.jit.groups.accumulators import fold_partials

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy as np

    from tensorplug.plugin import DType, Shape
    from tensorplug_cpu.arrays import Array
    from tensorplug_cpu.jit.groups.threads import Module


class Folding(NamedTuple):
    """What partial results of a reduction become: one array, as ``fold_partials`` says."""

    op: str
    axes: Sequence[int]
    dtype: DType
    shape: Shape

    def __call__(self, partials: Array) -> Array:
        """Return the results of the reduction."""
        return fold_partials(partials, *self)


class Kernel(NamedTuple):
    """A kernel that runs elsewhere: what ``make_launch`` takes."""

    text: str
    slots: Sequence[Hashable]
    values: Mapping[Hashable, int]
    work: int

    @classmethod
    def of(cls, module: Module, values: Mapping[Hashable, int], work: int) -> Kernel:
        """Return the kernel for what ``make_launch`` takes."""
        return cls(module.text, module.slots, values, work)


class Memory(NamedTuple):
    """An array that a kernel fills."""

    shape: Shape
    dtype: np.dtype[Any]


class Step(NamedTuple):
    """A kernel: it reads the arrays ``reads``, and computes the arrays ``writes``, by number.

    ``allocate``: makes the arrays that it fills, or is the number of an input to be overwritten.
    ``finish``: each returns what one becomes.
    """

    launch: Any
    reads: Sequence[int]
    writes: Sequence[int]
    allocate: Sequence[Any]
    finish: Sequence[Folding] = ()
