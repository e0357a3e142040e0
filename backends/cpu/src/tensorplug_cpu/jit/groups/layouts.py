"""How the axes of a group become the loops of a kernel."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from tensorplug.plugin import Shape


Span = tuple[bool, ...]


class Strided(NamedTuple):
    """An operand of a kernel: the bytes from one element to the next along the outer axes.

    ``segment``: likewise, from one segment of a row to the next.
    """

    strides: tuple[int, ...]
    segment: int = 0


class Layout(NamedTuple):
    """The axes of a kernel: groups of adjacent axes of the shape, which all operands treat alike.

    ``lengths``: of the kernel's axes.
    """

    shape: Shape
    axes: tuple[tuple[int, ...], ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        """The number of elements along each axis; one axis of length 1 if there is none."""
        return tuple(prod(self.shape[axis] for axis in axes) for axes in self.axes) or (1,)

    def marks(self, spans: Span) -> Span:
        """Return ``spans`` of the shape for the axes of the kernel."""
        return tuple(spans[axes[-1]] for axes in self.axes) or (False,)

    def strides(self, itemsize: int, spans: Span) -> tuple[int, ...]:
        """Return the bytes between neighbours of a dense operand, 0 where it does not vary."""
        size, steps = itemsize, []
        for length, spanned in zip(reversed(self.shape), reversed(spans), strict=True):
            steps.append(size if spanned else 0)
            size *= length if spanned else 1
        steps.reverse()
        return tuple(steps[axes[-1]] for axes in self.axes) or (0,)


def collapse(shape: Shape, spans: Iterable[Span], over: Span | None = None) -> Layout:
    """Return the fewest axes such that each operand varies along all or none of an axis.

    Axes of length 1 are left out, and those that ``over`` does not mark.
    """
    groups: list[tuple[int, ...]] = []
    columns = list(zip(*spans, strict=True)) or [()] * len(shape)
    for axis, length in enumerate(shape):
        if length == 1 or not (over is None or over[axis]):
            continue
        if groups and columns[groups[-1][-1]] == columns[axis]:
            groups[-1] = (*groups[-1], axis)
        else:
            groups.append((axis,))
    return Layout(shape, tuple(groups))


def dense_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the bytes between neighbours of an array in row-major order."""
    return tuple(itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))


def arguments(
    outer: Sequence[int], length: int, segment: int, operands: Sequence[Strided]
) -> dict[Hashable, int]:
    """Return the arguments of a kernel by slot (``frame.Frame``).

    ``outer``: the lengths of the outer axes; ``length``: of a row; ``segment``: of an item.
    """
    segments = -(-length // segment)
    values: dict[Hashable, int] = {
        "total": prod(outer) * segments,
        "length": length,
        "size": segment,
        "segments": segments,
    }
    values.update((("axis", axis), size) for axis, size in enumerate(outer))
    for k, operand in enumerate(operands):
        values.update((("stride", k, axis), step) for axis, step in enumerate(operand.strides))
        values["stride", k, -1] = operand.segment
    return values
