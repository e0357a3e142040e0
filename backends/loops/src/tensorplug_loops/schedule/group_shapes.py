"""Products on devices whose work-items are neighbours: which tile a work-group computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.plugin import dtypes as dt
from tensorplug_loops.schedule.products import Roles, accumulated, length_along, swapped

if TYPE_CHECKING:
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.loops import Loops

VECTOR: Final = 4
"""Neighbours in shared memory that a work-item reads."""
TERMS: Final = 32, 1024
"""Of a sum, before it is added to another one: powers of two."""

_WAVES: Final = 2  # tiles for each core
_SHORTEST: Final = 256  # inner elements of a slice, at least
_LEAST: Final = 4  # inner elements; of fewer, a sum is soon done
_READ: Final = 24  # multiplications that reading an element takes


class Shape(NamedTuple):
    """A tile of ``rows`` and ``columns``, of which a work-item has ``high`` and ``wide``.

    ``depth``: inner elements in shared memory.
    """

    rows: int
    columns: int
    depth: int
    high: int
    wide: int

    @property
    def members(self) -> int:
        """Work-items of a work-group."""
        return self.rows // self.high * (self.columns // self.wide)

    @property
    def elements(self) -> int:
        """Elements in shared memory."""
        return self.depth * (distance(self.rows) + distance(self.columns))


_SHAPES: Final = (
    Shape(128, 128, 16, 8, 8),
    Shape(128, 64, 16, 8, 4),
    Shape(64, 64, 16, 4, 4),
    Shape(32, 32, 16, 2, 4),
    Shape(4, 128, 16, 1, 4),  # few rows; few columns are turned into few rows
)
_EXCHANGED: Final = (32, 4), (16, 4), (8, 4), (4, 4), (16, 1), (4, 1)  # rows; columns of an item
_STEP: Final = 4  # inner elements that are written one after the other
_SMALL: Final = Shape(8, 8, 8, 1, 1), Shape(4, 4, 8, 1, 1)  # for devices with small groups
_NARROW: Final = min(shape.rows for shape in _SHAPES[:4])


@dataclass(frozen=True, slots=True)
class GroupTile:
    """How a product is computed: with the loops' structure, all that its kernel depends on.

    ``slices``: whether there are several, each of ``span`` inner elements, whose sums the kernel
    writes instead of outputs. ``levels``: how many sums there are, each of so many of another.
    """

    roles: Roles
    shape: Shape
    slices: bool
    levels: int


def tile_of(loops: Loops, roles: Roles, machine: Machine) -> GroupTile | None:
    """Return how a product is computed, and set the numbers of its kernel.

    None if another schedule suits it better.
    """
    output = loops.operands[-1].offset.steps
    if output[roles.rows[-1]] == 1:
        roles = swapped(roles)
    m, n = (length_along(loops, axes) for axes in (roles.rows, roles.columns))
    if n < m and n < _NARROW:
        roles, m, n = swapped(roles), n, m
    k, batch = (length_along(loops, axes) for axes in (roles.inner, roles.batch))
    dtype = accumulated(loops.roots[0].dtype)
    most = machine.shared_bytes // dtype.itemsize
    lanes = machine.exchange
    large = tuple(Shape(high, lanes * wide, _STEP, high, wide) for high, wide in _EXCHANGED)
    large = large if lanes else _SHAPES
    fitting = [
        shape
        for shapes in (large, _SMALL)
        for shape in shapes
        if shape.members <= machine.group_size and shape.elements <= most
    ]
    if m == 1 or k < _LEAST or not fitting:
        return None

    def count(shape: Shape) -> int:
        return batch * -(-m // shape.rows) * -(-n // shape.columns)

    def cost(shape: Shape) -> float:
        waves = -(-count(shape) // machine.cores)  # the last one takes as long as a full one
        read = 1 + _READ * (1 / shape.rows + 1 / shape.columns)
        return waves * shape.rows * shape.columns * read

    shape = min([each for each in fitting if each in large] or fitting[:1], key=cost)
    idle = -(-_WAVES * machine.cores // count(shape))
    slices = max(1, min(idle, k // _SHORTEST))
    span = -(-k // slices)
    loops.values.update(
        rows=m,
        columns=n,
        inner=k,
        span=span,
        slices=-(-k // span),
        tiles_m=-(-m // shape.rows),
        tiles_n=-(-n // shape.columns),
    )
    levels = 1 if dtype not in dt.FLOATING else 3 if span > TERMS[-1] else 2
    return GroupTile(roles, shape, slices > 1, levels)


def distance(length: int) -> int:
    """Return the distance of rows in shared memory: with a gap, so that banks differ."""
    return length + VECTOR if length % VECTOR == 0 else length
