"""Large groups whose inputs are not in row-major order, in which kernels read memory.

Repeated numbers, such as the gradient of a sum, stay one number: a group of its own reads it once.
Other arrays are copied by several threads, into recycled memory.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import GroupInput, TensorType
from tensorplug_cpu import groups
from tensorplug_cpu.jit.loops.calls import dense

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Group
    from tensorplug_cpu.arrays import Array

    Run = Callable[..., list[Array]]

_LARGE: Final = 1 << 15  # elements whose copy takes longer than a look at each input


def compile_group(group: Group) -> Run | None:
    """Return a function that computes a group of arrays in any order; None to decline it."""
    run = groups.compile_group(group)
    if run is None or prod(group.shape) < _LARGE:
        return run
    return _Large(group, run)


class _Large:
    """A group that looks at its inputs; ``run`` computes it if they are in row-major order."""

    def __init__(self, group: Group, run: Run) -> None:
        self._group, self._run = group, run
        self._variants: dict[tuple[int, ...], Run | None] = {}

    def __call__(self, *buffers: Array) -> list[Array]:
        for buffer in buffers:
            if not buffer.flags.c_contiguous:
                return self._with_gaps(buffers)
        return self._run(*buffers)

    def _with_gaps(self, buffers: Sequence[Array]) -> list[Array]:
        repeated = tuple(
            at for at, each in enumerate(buffers) if each.size > 1 and not any(each.strides)
        )
        if repeated:
            run = self._variant(repeated)
            if run is not None:
                return run(
                    *[
                        each[(0,) * each.ndim + (...,)] if at in repeated else dense(each)
                        for at, each in enumerate(buffers)
                    ]
                )
        return self._run(*[dense(each) for each in buffers])

    def _variant(self, repeated: tuple[int, ...]) -> Run | None:
        """Return the function of the group some inputs of which are one number each."""
        if repeated not in self._variants:
            group = self._group
            inputs = list(group.inputs)
            for at in repeated:
                number = TensorType(inputs[at].type.dtype, ())
                inputs[at] = GroupInput(number, (False,) * len(group.shape))
            self._variants[repeated] = groups.compile_group(replace(group, inputs=tuple(inputs)))
        return self._variants[repeated]
