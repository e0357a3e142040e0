"""How loops over a shape are cut into blocks, and what of an operand belongs to a block.

All axes after one, the *cut*, lie in a block with their whole length; of the cut axis, a block
has some positions, and of those before it one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Shape


Spans = tuple[bool, ...]
Index = tuple[Any, ...]

_LONG: Final = 1024  # elements that NumPy repeats a number for without loss


def spanned(shape: Shape, spans: Spans) -> Shape:
    """Return a shape with 1 for the axes that an operand does not span."""
    return tuple(length if own else 1 for length, own in zip(shape, spans, strict=True))


@dataclass(frozen=True)
class Loops:
    """Loops over ``shape``, cut at the axis ``cut`` into parts of length ``chunk``."""

    shape: Shape
    cut: int
    chunk: int

    @classmethod
    def of(cls, shape: Shape, most: int) -> Loops:
        """Return loops with at most ``most`` elements in a block."""
        cut = next(at for at in range(len(shape)) if prod(shape[at + 1 :]) <= most)
        length = shape[cut]
        count = -(-length // (most // prod(shape[cut + 1 :])))
        return cls(shape, cut, -(-length // count))

    @property
    def chunks(self) -> int:
        """How many parts the cut axis has."""
        return -(-self.shape[self.cut] // self.chunk)

    @property
    def count(self) -> int:
        """The number of blocks."""
        return prod(self.shape[: self.cut]) * self.chunks

    @property
    def block(self) -> Shape:
        """The shape of a block; the last one of the cut axis may be shorter."""
        return (self.chunk, *self.shape[self.cut + 1 :])

    def inside(self, spans: Spans) -> Shape:
        """Return the shape that an operand with these spans has in a block."""
        return spanned(self.block, spans[self.cut :])

    def varies(self, spans: Spans) -> bool:
        """Return whether an operand differs between blocks."""
        return any(spans[: self.cut + 1])

    def is_narrow(self, spans: Spans, least: int | None = None) -> bool:
        """Return whether NumPy's inner loop would have fewer than ``least`` elements.

        That is the case if the operand spans some of the last axes of a block and not others.
        """
        inner = spans[self.cut :]
        same = next((at for at, own in enumerate(inner[::-1]) if own != inner[-1]), None)
        return same is not None and prod(self.block[len(inner) - same :]) < (least or _LONG)

    def locate(self, number: int) -> tuple[Index, int, int]:
        """Return the indices before the cut of a block, and where its part begins and ends."""
        rest, chunk = divmod(number, self.chunks)
        before = []
        for length in reversed(self.shape[: self.cut]):
            rest, at = divmod(rest, length)
            before.append(at)
        start = chunk * self.chunk
        return tuple(reversed(before)), start, min(start + self.chunk, self.shape[self.cut])

    def index(self, spans: Spans, before: Index, part: slice) -> Index:
        """Return the index of a block in an array that has length 1 where it does not span."""
        outer = [at if own else 0 for at, own in zip(before, spans[: self.cut], strict=True)]
        return (*outer, part if spans[self.cut] else slice(None))

    def partial_shape(self, axes: Sequence[bool]) -> Shape:
        """Return the shape of the results of all blocks of a reduction along ``axes``.

        It has the group's axes, with one position for each part of the cut axis if it is reduced.
        """
        lengths = list(self.shape)
        for at in range(self.cut, len(lengths)):
            if axes[at]:
                lengths[at] = self.chunks if at == self.cut else 1
        return tuple(lengths)

    def partial_index(
        self, axes: Sequence[bool], before: Index, number: int, start: int, stop: int
    ) -> Index:
        """Return the index of a block in an array of ``partial_shape``."""
        if axes[self.cut]:
            start = number % self.chunks
            stop = start + 1
        return (*before, slice(start, stop))
