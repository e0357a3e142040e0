"""The kernels of a group in order, with the arrays that they read and fill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorplug_cpu.jit.groups.accumulators import fold_partials

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

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
    ``finish``: what the first of them become.
    """

    launch: Any
    reads: Sequence[int]
    writes: Sequence[int]
    allocate: Sequence[Any]
    finish: Sequence[Folding] = ()


def make_arrays(
    allocate: Sequence[Callable[[], Array] | int], arrays: Sequence[Array]
) -> list[Array]:
    """Return the arrays that a kernel fills."""
    return [arrays[new] if isinstance(new, int) else new() for new in allocate]


def run_one(step: Step) -> Callable[..., list[Array]]:
    """Return the function for one kernel that reads all inputs and writes all outputs."""
    launch, allocate = step.launch, step.allocate

    def run(*buffers: Array) -> list[Array]:
        made = [new() for new in fresh]
        launch(*map(np.ascontiguousarray, buffers), *made)
        return made

    def overwrite(*buffers: Array) -> list[Array]:
        arrays = list(map(np.ascontiguousarray, buffers))
        made = make_arrays(allocate, arrays)
        launch(*arrays, *made)
        return made

    fresh = [new for new in allocate if not isinstance(new, int)]
    return run if len(fresh) == len(allocate) else overwrite
