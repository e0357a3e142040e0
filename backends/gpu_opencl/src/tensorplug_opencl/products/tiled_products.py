"""The product for GPUs: a group of work-items computes a tile of C through local memory.

Step by step along the inner axis, the group's work-items bring a tile of A and one of B into local
memory, each reading neighbours of what its neighbours read; then each multiplies its own rows and
columns in registers. The next tiles are already on their way from global memory to registers while
these are multiplied.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug_opencl.codegen import ctypes
from tensorplug_opencl.products import product_texts

if TYPE_CHECKING:
    from tensorplug.plugin import DType
    from tensorplug_opencl.codegen import templates
    from tensorplug_opencl.products.gathers import Operand
    from tensorplug_opencl.products.product_texts import Product
    from tensorplug_opencl.runtime import Launch, Runtime


LONG: Final = 1024  # terms from which sums of blocks are compensated
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
    # For devices with small groups or little memory.
    Tiles(8, 8, 8, 1, 1),
    Tiles(4, 4, 8, 1, 1),
    Tiles(1, 1, 8, 1, 1),
)
FALLBACKS: Final = TILES[-3:]


def fits(runtime: Runtime, dtype: DType, tiles: Tiles) -> bool:
    """Return whether the device has the work-items and the local memory for ``tiles``."""
    itemsize = ctypes.host(ctypes.ring(dtype)).itemsize
    local = (tiles.rows + tiles.columns + 2 * VECTOR) * tiles.depth * itemsize
    device = runtime.device
    return tiles.items <= device.max_work_group_size and local <= device.local_mem_size


def count(product: Product, tiles: Tiles) -> int:
    """Return how many tiles C has, in all batches."""
    return product.batches * -(-product.rows // tiles.rows) * -(-product.columns // tiles.columns)


def list_suited(runtime: Runtime, product: Product) -> list[Tiles]:
    """Return the tiles to try, the best first.

    Large tiles read least; but the part of a tile beyond C is wasted work, and the device needs
    tiles for all of its compute units.
    """
    fitting = [
        tile for tile in TILES if tile not in FALLBACKS and fits(runtime, product.dtype, tile)
    ]
    units = runtime.device.max_compute_units

    def cost(tiles: Tiles) -> float:
        number = count(product, tiles)
        waves = -(-number // units) * units  # the last wave takes as long as a full one
        reads = 1 / tiles.rows + 1 / tiles.columns
        return waves * tiles.rows * tiles.columns * (1 + 24 * reads)

    return [*sorted(fitting, key=cost), *FALLBACKS]


def launch(runtime: Runtime, product: Product, tiles: Tiles) -> Launch:
    """Return the launch on the buffers of A, B, the epilogue's inputs and C."""
    more = {
        "tiles_down": -(-product.rows // tiles.rows),
        "tiles_across": -(-product.columns // tiles.columns),
    }
    groups = count(product, tiles) * product.slices
    runtime.check_steps(product.span)
    index = product_texts.choose_index(product, groups * tiles.items)
    long = product.dtype.kind == "float" and product.span > LONG
    text = _write_source(product.outline, index, tuple(more), tiles, long=long)
    arguments = product_texts.list_constants(product, index, more)
    arrays = 3 + len(product.epilogue.inputs)
    return runtime.launch(text, arrays, arguments, groups * tiles.items, group=tiles.items)


class Side(NamedTuple):
    """The transfer of one operand's tile into local memory.

    ``name`` is the operand's; ``across`` its axis that is not the inner one, of ``length``
    elements in the tile and ``limit`` in the matrix. ``inner_first``: neighbours along the inner
    axis are read by neighbours; else those across.
    """

    name: str
    operand: Operand
    tile: Tiles
    length: int
    limit: str
    inner_first: bool

    @property
    def share(self) -> int:
        """Elements that a work-item brings."""
        return -(-self.length * self.tile.depth // self.tile.items)

    def element(self, number: int) -> tuple[str, str]:
        """Return which element, (across, inner), is a work-item's ``number``-th.

        One of the two is the same for all of them if the other's length divides the group.
        """
        fast = self.tile.depth if self.inner_first else self.length
        if self.tile.items % fast:
            at = f"(item + {number * self.tile.items})"
            along, other = f"({at} % {fast})", f"({at} / {fast})"
        else:
            along = f"(item % {fast})"
            other = f"(item / {fast} + {number * self.tile.items // fast})"
        return (other, along) if self.inner_first else (along, other)

    @property
    def whole(self) -> bool:
        """Whether every work-item brings as many elements."""
        return self.length * self.tile.depth % self.tile.items == 0

    @property
    def _axes(self) -> tuple[str, str]:
        """The operand's axes (across, inner)."""
        return ("row", "column") if self.name == "a" else ("column", "row")

    def _parts(self, axis: int) -> dict[str, str]:
        """Return, for each index along the axis that the work-item reads at, a name."""
        word = self._axes[axis]
        indices = [self.element(number)[axis] for number in range(self.share)]
        return {index: f"{self.name}_{word}{n}" for n, index in enumerate(dict.fromkeys(indices))}

    def across(self) -> list[str]:
        """Return declarations of the constant parts of the indices: those that lie across."""
        ctype = self.operand.part_type(self.name)
        lines = []
        for index, name in self._parts(0).items():
            number = f"min({self.name}_first + {index}, {self.limit} - 1)"
            part = self.operand.part(self.name, self._axes[0], number)
            lines.append(f"  const {ctype} {name} = {part};")
        return lines

    def fetch(self, *, guarded: bool) -> list[str]:
        """Return statements that read the elements of step k0; beyond the end they are 0."""
        ctype = self.operand.part_type(self.name)
        across, inner = self._parts(0), self._parts(1)
        lines = [
            f"      const {ctype} {name} = "
            f"{self.operand.part(self.name, self._axes[1], f'k0 + {index}')};"
            for index, name in inner.items()
        ]
        for number in range(self.share):
            index = self.element(number)
            parts = (across[index[0]], inner[index[1]])
            row, column = parts if self.name == "a" else parts[::-1]
            inside = self.operand.inside(self.name, row, column)
            conditions = [f"k0 + {index[1]} < end"] if guarded else []
            if not self.whole:
                conditions.append(self._exists(number))
            if inside is not None:
                conditions.append(inside)
            value = f"(A){self.name}[{self.operand.offset(row, column)}]"
            if conditions:
                value = f"{' && '.join(conditions)} ? {value} : 0"
            lines.append(f"      {self.name}_next{number} = {value};")
        return lines

    def _exists(self, number: int) -> str:
        return f"item + {number * self.tile.items} < {self.length * self.tile.depth}"

    def stash(self) -> list[str]:
        """Return statements that store the read elements in local memory."""
        stride = _choose_stride(self.length)
        lines = []
        for number in range(self.share):
            across, inner = self.element(number)
            put = f"((local A *){self.name}_tile)[{inner} * {stride} + {across}]"
            condition = "" if self.whole else f"if ({self._exists(number)}) "
            lines.append(f"    {condition}{put} = {self.name}_next{number};")
        return lines


def _choose_stride(length: int) -> int:
    """Return the distance of rows in local memory: with a gap, so that banks differ."""
    return length + VECTOR if length % VECTOR == 0 else length


def _choose_vector(length: int) -> int:
    """Return the length of the vectors in which a work-item's ``length`` elements are read."""
    return VECTOR if length % VECTOR == 0 else 1


class Grid(NamedTuple):
    """The elements of the tile that a work-item computes: ``own`` of ``length``, along one axis.

    They lie in vectors, so that those of neighbours lie side by side in local memory.
    """

    name: str
    length: int
    own: int
    at: str  # the number of the work-item along this axis

    @property
    def vector(self) -> int:
        """Elements in a vector."""
        return _choose_vector(self.own)

    def position(self, number: int) -> str:
        """Return where the ``number``-th own element lies in the tile."""
        across = self.length // self.own
        start = number // self.vector * self.vector * across + number % self.vector
        return f"({start} + {self.at} * {self.vector})"

    def load(self, inner: str) -> list[str]:
        """Return declarations of the own vectors of row ``inner`` of the tile."""
        ctype = f"V{self.vector}"
        stride = _choose_stride(self.length) // self.vector
        vectors = self.length // self.own
        return [
            f"const {ctype} {self.name}{v} = ((local const {ctype} *){self.name}_tile)"
            f"[{inner} * {stride} + {v * vectors} + {self.at}];"
            for v in range(self.own // self.vector)
        ]

    def element(self, number: int) -> str:
        """Return the expression of the ``number``-th own element, once loaded."""
        vector, lane = divmod(number, self.vector)
        return f"{self.name}{vector}" if self.vector == 1 else f"{self.name}{vector}.s{lane}"


@lru_cache(product_texts.KEPT)
def _write_source(
    product: Product, index: templates.Index, more: tuple[str, ...], tiles: Tiles, *, long: bool
) -> str:
    exact = product.dtype.kind == "float"
    sides = (
        Side("a", product.a, tiles, tiles.rows, "rows", inner_first=product.a.by_rows),
        Side(
            "b", product.b, tiles, tiles.columns, "columns", inner_first=product.b.turned.by_rows
        ),
    )
    grid_a = Grid("a", tiles.rows, tiles.high, "item_row")
    grid_b = Grid("b", tiles.columns, tiles.wide, "item_column")
    vectors = range(tiles.wide // grid_b.vector)
    cells = [f"{row}_{v}" for row in range(tiles.high) for v in vectors]
    kinds = ["sum", *(["total"] if exact else []), *(["far", "low"] if long else [])]
    tile_vector = max(grid_a.vector, grid_b.vector)
    memory = [
        f"  local V{tile_vector} {side.name}_tile"
        f"[{tiles.depth * _choose_stride(side.length) // tile_vector}];"
        for side in sides
    ]
    fetch = {
        guarded: [line for side in sides for line in side.fetch(guarded=guarded)]
        for guarded in (False, True)
    }
    fetching = [
        f"    if (k0 + {tiles.depth} <= end) {{",
        *fetch[False],
        "    } else {",
        *fetch[True],
        "    }",
    ]
    joins = [
        f"      sum{row}_{v} = JOIN((T){grid_a.element(row)}, b{v}, sum{row}_{v});"
        for row in range(tiles.high)
        for v in vectors
    ]
    across = tiles.columns // tiles.wide
    body = [
        *memory,
        "  const index_t group = get_group_id(0);",
        "  const uint item = get_local_id(0);",
        f"  const uint item_row = item / {across}, item_column = item % {across};",
        f"  const index_t b_first = group % tiles_across * {tiles.columns};",
        f"  const index_t a_first = group / tiles_across % tiles_down * {tiles.rows};",
        "  const index_t batch = group / tiles_across / tiles_down % batches;",
        "  const index_t slice = group / tiles_across / tiles_down / batches;",
        "  const index_t begin = slice * span, end = min(inner, begin + span);",
        "  AT(batch);",
        "  c += slice * slice_by;",
        *(line for side in sides for line in side.across()),
        *(f"  A {side.name}_next{n};" for side in sides for n in range(side.share)),
        *(f"  T {', '.join(f'{kind}{cell} = 0' for cell in cells)};" for kind in kinds),
        "  index_t k0 = begin;",
        *fetching,
        "  while (k0 < end) {",
        "    barrier(CLK_LOCAL_MEM_FENCE);",
        *(line for side in sides for line in side.stash()),
        "    barrier(CLK_LOCAL_MEM_FENCE);",
        f"    k0 += {tiles.depth};",
        "    if (k0 < end) {",
        *fetching,
        "    }",
        "    {",
        "#pragma OPENCL FP_CONTRACT ON",
        f"    for (uint k = 0; k < {tiles.depth}; k++) {{",
        *(f"      {line}" for line in [*grid_a.load("k"), *grid_b.load("k")]),
        *joins,
        "    }",
        "    }",
        *(_write_totals(product, cells, long=long) if exact else []),
        "  }",
        *_write_stores(product, grid_a, grid_b, exact=exact, long=long),
    ]
    element = ctypes.ring(product.dtype)
    wide = f"typedef {element} V1;\ntypedef {element}{VECTOR} V{VECTOR};"
    ways = " ".join(f"{'i' if side.inner_first else 'x'}{side.operand.form}" for side in sides)
    return product_texts.write_program(
        f"matrix product in tiles {'x'.join(map(str, tiles))} {ways}",
        product,
        index,
        more,
        "\n".join(body),
        f"{wide}\ntypedef V{grid_b.vector} T;",
    )


def _write_totals(product: Product, cells: list[str], *, long: bool) -> list[str]:
    """Return statements that add sums up: of a block to the total, of many blocks exactly."""
    lines = [f"    if ((k0 - begin) % {product_texts.BLOCK} == 0 || k0 >= end) {{"]
    lines += [f"      total{cell} += sum{cell}; sum{cell} = 0;" for cell in cells]
    lines.append("    }")
    if long:
        lines.append(f"    if ((k0 - begin) % {LONG} == 0 || k0 >= end) {{")
        for cell in cells:
            added = product_texts.write_sum(product, f"total{cell}", f"far{cell}", f"low{cell}")
            lines.append(f"      {added} total{cell} = 0;")
        lines.append("    }")
    return lines


def _write_stores(
    product: Product, down: Grid, across: Grid, *, exact: bool, long: bool
) -> list[str]:
    """Return statements that store a work-item's elements, as far as they lie in C."""
    name = "far" if long else "total" if exact else "sum"
    lines = []
    for row in range(down.own):
        lines.append(f"  {{ const index_t row = a_first + {down.position(row)};")
        lines.append("  if (row < rows) {")
        for column in range(across.own):
            vector, lane = divmod(column, across.vector)
            cell = f"{row}_{vector}" + (f".s{lane}" if across.vector > 1 else "")
            value = f"{name}{cell}"
            if long:
                value = f"({value} + (isfinite(low{cell}) ? low{cell} : 0))"
            lines.append(f"    {{ const index_t column = b_first + {across.position(column)};")
            store = product_texts.write_store(product, value, "row", "column")
            lines.append(f"    if (column < columns) {store} }}")
        lines.append("  } }")
    return lines
