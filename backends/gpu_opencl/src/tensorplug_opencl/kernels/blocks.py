"""The product for GPUs: a group of work-items computes a tile of C, by way of local memory.

Step by step along the inner axis, the group's work-items bring a tile of A and one of B into
local memory, each reading neighbours of what its neighbours read; then each multiplies the rows
and columns that are its own, in registers. The next tiles are already on their way from global
memory to registers while these are multiplied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug_opencl.kernels import ctypes, products

if TYPE_CHECKING:
    from tensorplug.dtypes import DType
    from tensorplug_opencl.kernels.products import Matrix, Product
    from tensorplug_opencl.runtime import Launch, Runtime

__all__ = ["TILES", "Tiles", "count", "fits", "launch", "suited"]

LONG: Final = 1024  # terms from which on sums of blocks are added free of error
VECTOR: Final = 4  # elements that are read from local memory at once


class Tiles(NamedTuple):
    """A tile of ``rows`` x ``columns`` of C, ``depth`` of the inner axis at a time.

    Each work-item computes ``high`` x ``wide`` elements.
    """

    rows: int
    columns: int
    depth: int
    high: int
    wide: int

    @property
    def items(self) -> int:
        """Work-items in a group."""
        return self.rows // self.high * (self.columns // self.wide)


TILES: Final = (
    Tiles(128, 128, 16, 8, 8),
    Tiles(128, 64, 16, 8, 4),
    Tiles(64, 64, 16, 4, 4),
    Tiles(32, 32, 16, 2, 4),
    Tiles(4, 128, 16, 1, 4),  # few rows; few columns are turned into few rows
    Tiles(8, 8, 8, 1, 1),  # for what devices with small groups or little memory can do
)
LAST: Final = TILES[-1]


def fits(runtime: Runtime, dtype: DType, tiles: Tiles) -> bool:
    """Return whether the device has the work-items and the local memory for ``tiles``."""
    itemsize = ctypes.host(ctypes.ring(dtype)).itemsize
    local = (tiles.rows + tiles.columns + 2 * VECTOR) * tiles.depth * itemsize
    device = runtime.device
    return tiles.items <= device.max_work_group_size and local <= device.local_mem_size


def count(of: Product, tiles: Tiles) -> int:
    """Return how many tiles C has, in all batches."""
    return of.batches * -(-of.rows // tiles.rows) * -(-of.columns // tiles.columns)


def suited(runtime: Runtime, of: Product) -> list[Tiles]:
    """Return the tiles to try, the best first.

    Large tiles read least; but what of a tile lies beyond C is computed in vain, and the device
    needs tiles for all of its compute units.
    """
    able = [each for each in TILES[:-1] if fits(runtime, of.dtype, each)]
    units = runtime.device.max_compute_units

    def cost(tiles: Tiles) -> float:
        number = count(of, tiles)
        waves = -(-number // units) * units  # the last wave takes as long as a full one
        reads = 1 / tiles.rows + 1 / tiles.columns
        return waves * tiles.rows * tiles.columns * (1 + 24 * reads)

    return [*sorted(able, key=cost), LAST]


def launch(runtime: Runtime, of: Product, tiles: Tiles) -> Launch:
    """Return the launch on the buffers of A, B, the ending's inputs and C."""
    more = {
        "tiles_down": -(-of.rows // tiles.rows),
        "tiles_across": -(-of.columns // tiles.columns),
    }
    groups = count(of, tiles) * of.slices
    index = products.index_of(of, groups * tiles.items)
    text = _source(of, index, more, tiles)
    arguments = products.constants(of, index, more)
    arrays = 3 + len(of.ending.inputs)
    return runtime.launch(text, arrays, arguments, groups * tiles.items, group=tiles.items)


class Side(NamedTuple):
    """How the tile of one operand comes into local memory.

    ``name`` is the operand's; ``across`` its axis that is not the inner one, of ``length``
    elements in the tile and ``limit`` in the matrix. ``inner_first``: neighbours along the inner
    axis are read by neighbours; else those across.
    """

    name: str
    tile: Tiles
    length: int
    limit: str
    inner_first: bool

    @property
    def each(self) -> int:
        """Elements that a work-item brings."""
        return -(-self.length * self.tile.depth // self.tile.items)

    @property
    def strides(self) -> tuple[str, str]:
        """Names of the distances across and along the inner axis."""
        if self.name == "a":
            return "a_row", "a_column"
        return "b_column", "b_row"

    def place(self, number: int) -> tuple[str, str]:
        """Return which element, (across, inner), is a work-item's ``number``-th."""
        at = f"(item + {number * self.tile.items})"
        if self.inner_first:
            return f"({at} / {self.tile.depth})", f"({at} % {self.tile.depth})"
        return f"({at} % {self.length})", f"({at} / {self.length})"

    @property
    def whole(self) -> bool:
        """Whether every work-item brings as many elements."""
        return self.length * self.tile.depth % self.tile.items == 0

    def pointers(self) -> list[str]:
        """Return declarations of where each element is read from in the first step."""
        across_by, inner_by = self.strides
        lines = []
        for number in range(self.each):
            across, inner = self.place(number)
            start = f"min({self.name}_first + {across}, {self.limit} - 1) * {across_by}"
            lines.append(
                f"  const index_t {self.name}_at{number} = {start} + {inner} * {inner_by};"
            )
        return lines

    def fetch(self, *, guarded: bool) -> list[str]:
        """Return statements that read the elements of step k0; beyond the end they are 0."""
        inner_by = self.strides[1]
        lines = []
        for number in range(self.each):
            _, inner = self.place(number)
            value = f"(A){self.name}[{self.name}_at{number} + k0 * {inner_by}]"
            if guarded:
                value = f"k0 + {inner} < end ? {value} : 0"
            if not self.whole:
                value = f"item + {number * self.tile.items} < {self.length * self.tile.depth} ? "
                value += f"({self._guard(guarded, number)}) : 0"
            lines.append(f"      {self.name}_next{number} = {value};")
        return lines

    def _guard(self, guarded: bool, number: int) -> str:  # noqa: FBT001  # a helper's flag
        _, inner = self.place(number)
        value = f"(A){self.name}[{self.name}_at{number} + k0 * {self.strides[1]}]"
        return f"k0 + {inner} < end ? {value} : 0" if guarded else value

    def stash(self) -> list[str]:
        """Return statements that put what was read into local memory."""
        stride = _stride(self.length)
        lines = []
        for number in range(self.each):
            across, inner = self.place(number)
            put = f"((local A *){self.name}_tile)[{inner} * {stride} + {across}]"
            condition = ""
            if not self.whole:
                limit = self.length * self.tile.depth
                condition = f"if (item + {number * self.tile.items} < {limit}) "
            lines.append(f"    {condition}{put} = {self.name}_next{number};")
        return lines


def _stride(length: int) -> int:
    """Return the distance of rows in local memory: with a gap, so that banks differ."""
    return length + VECTOR if length % VECTOR == 0 else length


def _vectors(length: int) -> int:
    """Return in vectors of how many elements a work-item's ``length`` are read."""
    return VECTOR if length % VECTOR == 0 else 1
