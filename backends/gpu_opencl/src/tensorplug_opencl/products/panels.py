"""The product for CPU devices: packed panels, and a tile of C in registers.

One work-item, alone in its group, computes a block of C. It packs the rows of A and the columns of
B that belong to it, ``DEPTH`` of the inner axis at a time, into local memory, which on these
devices is the cache: panels of B are two vectors wide, panels of A ``TALL`` elements. (A matrix A
whose rows lie in one piece is not packed: its elements are read one at a time anyway.) Then every
pair of panels is one loop of multiplications and additions that needs only registers and reads
memory in order. (Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008.)
Blocks are as large as the number of cores allows, since A is packed again for each column of
blocks, and B for each row: for small blocks, that takes as long as multiplying.

Vectors are read as elements of arrays of vectors: ``vload`` is a call that some drivers do not
inline, and then all registers are spilled to memory around it.

The library's tiles (``tensorplug_loops.schedule.product_tiles``) take 0.9 to 1.2 times as long on
Intel's driver: products of 128 to 512 rows, of float32. Convolutions read these panels too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug_opencl.codegen import ctypes, vectors
from tensorplug_opencl.products import packing, product_texts
from tensorplug_opencl.products.matrices import Matrix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import DType
    from tensorplug_opencl.codegen import templates
    from tensorplug_opencl.products.product_texts import Product
    from tensorplug_opencl.runtime import Launch, Runtime


TALL: Final = 6  # rows: with two vectors of columns they fill 12 of 16 registers
DEPTH: Final = 128
BUSY: Final = 4  # blocks per core: if there are fewer, the inner axis is cut
# Times in multiplications of vectors, as measured: of packing an element, or one of a row of B, of
# which neighbours are packed together; of storing an element of C, alone or in a vector; of
# starting a block. ``SLACK``: the part of a block for which the cores wait for the last one.
PACKED: Final = 1.5
PACKED_IN_ROWS: Final = 0.4
STORED: Final = 1.0
STORED_IN_VECTORS: Final = 0.1
STARTED: Final = 2000.0
SLACK: Final = 0.25


class Panels(NamedTuple):
    """The largest block of a work-item, in panels of A and of B."""

    down: int
    across: int


Block = tuple[float, int, int]  # its estimated time, and its panels of A and of B

# Tall blocks pack B rarely; wide ones pack A rarely, if it has to be packed. Each has a program of
# its own; of those that are equally fast, the first is used.
_SHAPES: Final = ((64, 2), (16, 8), (8, 8), (32, 2), (16, 4), (8, 4), (4, 2), (1, 1))
SIZES: Final = tuple(Panels(*shape) for shape in _SHAPES)
MEDIUM: Final = Panels(8, 4)


_WIDTHS: Final = {
    "float": "native_vector_width_float",
    "double": "native_vector_width_double",
    "uint": "native_vector_width_int",
    "ulong": "native_vector_width_long",
}


def count_lanes(runtime: Runtime, dtype: DType) -> int:
    """Return how many elements a register of the device holds."""
    element = ctypes.ring(dtype)
    known = runtime.lanes.get(element)
    if known is None:
        wide = getattr(runtime.device, _WIDTHS[element])
        known = runtime.lanes[element] = max(2, min(vectors.choose_lanes(runtime, element), wide))
    return known


def list_suited(runtime: Runtime, product: Product) -> Sequence[Panels]:
    """Return blocks whose panels should fit into local memory: the fastest, then smaller ones.

    A driver may take more than is declared: rusticl takes twice as much.
    """
    width = 2 * count_lanes(runtime, product.dtype)
    most = runtime.device.local_mem_size // ctypes.host(ctypes.ring(product.dtype)).itemsize
    largest, suited = _list_fitting(width, most, in_place=_is_read_in_place(product))
    blocks = _rate_blocks(runtime, product)
    return suited[min(largest, key=lambda size: _choose_block(blocks, size)[0])]


@lru_cache(64)
def _list_fitting(
    width: int, most: int, *, in_place: bool
) -> tuple[list[Panels], dict[Panels, list[Panels]]]:
    """Return the sizes that fit into ``most`` elements and lie in no other, and the suited ones.

    These begin with the size that is the fastest.
    """

    def count_elements(size: Panels) -> int:
        rows, columns = size.down * TALL, size.across * width
        packed = columns if in_place else columns + rows
        return DEPTH * packed + 2 * rows * columns

    fitting = [size for size in SIZES if count_elements(size) <= most] or [SIZES[-1]]
    largest = [
        size
        for at, size in enumerate(fitting)
        if not any(size.down <= n.down and size.across <= n.across for n in fitting[:at])
    ]
    smaller = sorted(fitting, key=count_elements, reverse=True)
    return largest, {
        first: [first, *(n for n in smaller if count_elements(n) < count_elements(first))]
        for first in largest
    }


def count(runtime: Runtime, product: Product) -> int:
    """Return how many blocks of medium size C has, in all batches."""
    width = 2 * count_lanes(runtime, product.dtype)
    down = -(-product.rows // (MEDIUM.down * TALL))
    return product.batches * down * -(-product.columns // (MEDIUM.across * width))


def launch(runtime: Runtime, product: Product, largest: Panels) -> Launch:
    """Return the launch on the buffers of A, B, the epilogue's inputs and C."""
    width = 2 * count_lanes(runtime, product.dtype)
    _, down, across = _choose_block(_rate_blocks(runtime, product), largest)
    blocks = -(-product.rows // (down * TALL)), -(-product.columns // (across * width))
    items = product.batches * product.slices * blocks[0] * blocks[1]
    more = {
        "blocks_down": blocks[0],
        "blocks_across": blocks[1],
        "down": down,
        "across": across,
    }
    index = product_texts.choose_index(product, items)
    text = _write_source(product.outline, index, tuple(more), largest, width // 2)
    arguments = product_texts.list_constants(product, index, more)
    return runtime.launch(text, 3 + len(product.epilogue.inputs), arguments, items, group=1)


def _choose_block(blocks: Sequence[Block], largest: Panels) -> Block:
    """Return the fastest of ``blocks`` within ``largest``."""
    return min(each for each in blocks if each[1] <= largest.down and each[2] <= largest.across)


def _rate_blocks(runtime: Runtime, product: Product) -> Sequence[Block]:
    """Return the blocks that divide C evenly, with their times."""
    width = 2 * count_lanes(runtime, product.dtype)
    in_rows = isinstance(product.b, Matrix) and product.b.column == 1
    return _rate(
        (-(-product.rows // TALL), -(-product.columns // width)),
        product.batches * product.slices,
        product.span,
        width,
        (
            0.0 if _is_read_in_place(product) else PACKED,
            PACKED_IN_ROWS if in_rows else PACKED,
            STORED_IN_VECTORS if _is_stored_in_vectors(product) else STORED,
        ),
        runtime.device.max_compute_units,
    )


@lru_cache(16)  # it is asked twice, and products of a model are alike
def _rate(
    panels: tuple[int, int],
    batches: int,
    span: int,
    width: int,
    costs: tuple[float, float, float],
    cores: int,
) -> list[Block]:
    """Return those blocks; ``costs``: of an element of A, B and C."""
    tall, wide = panels
    of_a, of_b, of_c = costs
    most = SIZES[0].down, max(size.across for size in SIZES)
    all_down = {-(-tall // -(-tall // each)) for each in range(1, most[0] + 1)}
    all_across = {-(-wide // -(-wide // each)) for each in range(1, most[1] + 1)}
    rated = []
    for down in all_down:
        number, rows = batches * -(-tall // down), down * TALL
        for across in all_across:
            step = rows * across * 2 + rows * of_a + across * width * of_b
            block = span * step + rows * across * width * of_c + STARTED
            waves = -(-number * -(-wide // across) // cores) + SLACK
            rated.append((waves * block, down, across))
    return rated


@lru_cache(product_texts.KEPT)
def _write_source(
    product: Product, index: templates.Index, more: tuple[str, ...], at: Panels, lanes: int
) -> str:
    width = 2 * lanes
    exact = product.dtype.kind == "float"
    sums = 2 * TALL
    low = f", low[{at.down * at.across * sums}]" if exact else ""
    value = "sum[v * WIDE + x]"
    if exact:
        closing = (
            "const A rest = ((local const A *)lows)[v * WIDE + x]; "
            "if (in_blocks && isfinite(rest)) value += rest;"
        )
    else:
        closing = ""
    join = product_texts.write_sum(product, "made[v]", "to[v]", "left[v]")
    clear = "if (in_blocks) left[v] = 0; " if exact else ""
    lows = "local V *lows = low + offset;" if exact else ""
    left = "local V *left = low + offset;" if exact else ""
    part, column_part = product.c.part_type("c"), product.c.part("c", "column", "column + x")
    find_columns = ""
    if not isinstance(product.c, Matrix):  # finding its offset takes longer than storing it
        find_columns = (
            f"{part} across[WIDE]; for (int x = 0; x < filled; x++) across[x] = {column_part};"
        )
        column_part = "across[x]"
    put = product_texts.write_put(
        product, "value", ("(row + v)", "(column + x)"), ("down", "beside")
    )
    direct, done, in_vectors = _write_vectors(product, lanes)
    in_place = _is_read_in_place(product)
    factor = "packed_a + i * TALL * DEPTH"
    if in_place:
        first = "row0 + i * TALL"
        factor = f"a + ({first}) * a_row + k0, a_row, min(rows - ({first}), (index_t)TALL)"
    body = f"""  {"" if in_place else f"local A packed_a[{at.down * TALL * DEPTH}];"}
  local V packed_b[{at.across * 2 * DEPTH}], total[{at.down * at.across * sums}]{low};
  const index_t group = get_group_id(0);
  const index_t column0 = group % blocks_across * across * WIDE;
  const index_t row0 = group / blocks_across % blocks_down * down * TALL;
  const index_t batch = group / blocks_across / blocks_down % batches;
  const index_t slice = group / blocks_across / blocks_down / batches;
  const index_t begin = slice * span, end = min(inner, begin + span);
  const index_t height = min(rows - row0, down * TALL);
  const index_t breadth = min(columns - column0, across * WIDE);
  const index_t tall = (height + TALL - 1) / TALL, wide = (breadth + WIDE - 1) / WIDE;
  const bool in_blocks = end - begin > DEPTH;
  AT(batch);
  c += slice * slice_by;
  for (index_t k0 = begin; k0 < end; k0 += DEPTH) {{
    const index_t count = min((index_t)DEPTH, end - k0);
    {packing.write_call("b", product.b, "(local A *)packed_b", "column0", "wide")}
    {"" if in_place else packing.write_call("a", product.a, "packed_a", "row0", "tall")}
    for (index_t j = 0; j < wide; j++)
      for (index_t i = 0; i < tall; i++) {{
        const index_t offset = (j * {at.down} + i) * VECTORS;
        local V *to = total + offset;
        {left}
        V made[VECTORS];
        multiply({factor}, packed_b + j * 2 * DEPTH, count, made);
        {direct}
        if (k0 == begin)
          for (int v = 0; v < VECTORS; v++) {{ {clear}to[v] = made[v]; }}
        else
          for (int v = 0; v < VECTORS; v++) {join}
      }}
  }}
  for (index_t j = 0; j < wide; j++) {{
    const index_t column = column0 + j * WIDE;
    const index_t filled = min(columns - column, (index_t)WIDE);
    {done}
    {find_columns}
    for (index_t i = 0; i < tall; i++) {{
      const index_t offset = (j * {at.down} + i) * VECTORS;
      local const A *sum = (local const A *)(total + offset);
      {lows}
      const index_t row = row0 + i * TALL;
      const index_t high = min(rows - row, (index_t)TALL);
      for (index_t v = 0; v < high; v++) {{
        const {part} down = {product.c.part("c", "row", "row + v")};
        {in_vectors}
        for (index_t x = 0; x < filled; x++) {{
          A value = {value};
          {closing}
          const {part} beside = {column_part};
          {put}
        }}
      }}
    }}
  }}"""
    packs = packing.write_function("b", product.b, width, at.across)
    form = "in place"
    if not in_place:
        same = ctypes.stored(product.dtype) == ctypes.ring(product.dtype)
        packs += packing.write_function("a", product.a, TALL, at.down, same=same)
        form = packing.describe_form("a", product.a)
    forms = f"{form} {packing.describe_form('b', product.b)}"
    return product_texts.write_program(
        f"matrix product in panels {at.down}x{at.across} {forms}".rstrip(),
        product,
        index,
        more,
        body,
        f"typedef {ctypes.ring(product.dtype)}{lanes} V;\ntypedef V T;\n"
        f"#define WIDE {width}\n#define TALL {TALL}\n#define DEPTH {DEPTH}\n"
        f"#define VECTORS {sums}\n{vectors.declare(lanes, ctypes.ring(product.dtype))}\n"
        f"{packs}\n{_write_multiply(product)}",
    )


def _is_read_in_place(product: Product) -> bool:
    """Return whether the loops read A's rows where they lie: they need one element at a time."""
    same = ctypes.stored(product.dtype) == ctypes.ring(product.dtype)
    return same and isinstance(product.a, Matrix) and product.a.column == 1


def _is_stored_in_vectors(product: Product) -> bool:
    """Return whether sums are stored as they are, those of a row side by side."""
    same = product.raw or ctypes.stored(product.dtype) == ctypes.ring(product.dtype)
    plain = isinstance(product.c, Matrix) and product.c.column == 1
    return same and plain and product.epilogue == product_texts.NO_EPILOGUE


def _write_vectors(product: Product, lanes: int) -> tuple[str, str, str]:
    """Return three statements that store rows of whole panels in vectors.

    The first stores the sums of two panels if they are complete, the second then skips a column of
    panels, and the third stores a row of other sums. All are "" if C needs more than a store.
    """
    if not _is_stored_in_vectors(product):
        return "", "", ""
    element = ctypes.ring(product.dtype)

    def store(value: str, half: int, column: str) -> str:
        return vectors.store(element, lanes, f"c + down + {column} + {half * lanes}", value)

    down = product.c.part("c", "row", "row0 + i * TALL + r")
    sums = " ".join(
        store(f"made[2 * r + {half}]", half, "column0 + j * WIDE") for half in range(2)
    )
    direct = f"""if (!in_blocks && columns - column0 >= (j + 1) * WIDE) {{
          const index_t high = min(rows - (row0 + i * TALL), (index_t)TALL);
          for (index_t r = 0; r < high; r++) {{ const index_t down = {down}; {sums} }}
          continue;
        }}"""
    halves = []
    for half in range(2):
        name, at = f"half{half}", f"offset + 2 * v + {half}"
        halves.append(f"V {name} = total[{at}];")
        if product.dtype.kind == "float":
            rest = f"const V rest = low[{at}]; {name} += rest - rest == 0 ? rest : (V)0;"
            halves.append(f"{{ {rest} }}")
        halves.append(store(name, half, "column"))
    return (
        direct,
        "if (!in_blocks && filled == WIDE) continue;",
        f"if (filled == WIDE) {{ {' '.join(halves)} continue; }}",
    )


def _write_multiply(product: Product) -> str:
    """Return the function that multiplies two panels: sums in registers, block by block."""
    sums = [f"sum{v}" for v in range(2 * TALL)]
    in_place = _is_read_in_place(product)
    element = "x{r}[at]" if in_place else "x[{r}]"
    steps = [
        f"{{ const V v = {element.format(r=r)}; sum{2 * r} = JOIN(v, left, sum{2 * r}); "
        f"sum{2 * r + 1} = JOIN(v, right, sum{2 * r + 1}); }}"
        for r in range(TALL)
    ]
    if in_place:
        factor, step = "global const S *x, index_t by, index_t high", "at++"
        rows = ["x", *(f"x + min((index_t){r}, high - 1) * by" for r in range(1, TALL))]
    else:
        factor, step, rows = "local const A *x", "x += TALL", []
    block = product_texts.BLOCK if product.dtype.kind == "float" else DEPTH
    return product_texts.allow_contraction(
        "\n".join(
            [
                f"void multiply({factor}, local const V *y, index_t count, V *made) {{",
                *(f"  global const S *x{r} = {row};" for r, row in enumerate(rows)),
                "  index_t at = 0;" if in_place else "",
                f"  for (index_t from = 0; from < count; from += {block}) {{",
                f"    const index_t steps = min(count - from, (index_t){block});",
                f"    V {', '.join(f'{sum_} = 0' for sum_ in sums)};",
                f"    for (index_t k = 0; k < steps; k++, {step}, y += 2) {{",
                "      const V left = y[0], right = y[1];",
                *(f"      {step}" for step in steps),
                "    }",
                "    if (from == 0) {",
                *(f"      made[{v}] = {sum_};" for v, sum_ in enumerate(sums)),
                "    } else {",
                *(f"      made[{v}] += {sum_};" for v, sum_ in enumerate(sums)),
                "    }",
                "  }",
                "}",
            ]
        )
    )
