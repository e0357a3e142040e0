"""The kernels of a group in order, with the arrays that they read and fill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy as np

    from tensorplug.plugin import Shape


class Kernel(NamedTuple):
    """A kernel that runs elsewhere: what ``make_launch`` takes."""

    text: str
    slots: Sequence[Hashable]
    values: Mapping[Hashable, int]
    work: int


class Memory(NamedTuple):
    """An array that a kernel fills."""

    shape: Shape
    dtype: np.dtype[Any]


class Step(NamedTuple):
    """A kernel: it reads the arrays ``reads``, and computes the arrays ``writes``, by number.

    ``allocate``: the memory of the arrays that it fills.
    """

    launch: Kernel
    reads: Sequence[int]
    writes: Sequence[int]
    allocate: Sequence[Memory]
