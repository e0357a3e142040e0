"""Matrix products of strided operands: what BatchMatMul and the convolutions run on.

One work-item computes a block of ROWS x COLUMNS of the result in registers, from rows of A
element by element and rows of B as vectors. There is neither local memory nor a barrier in it:
caches do on CPUs, and well enough on GPUs, what tiles in local memory would do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug import shapes
from tensorplug.spec import TensorType
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import ctypes, moving, templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dtypes import DType
    from tensorplug.shapes import Shape
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.layouts import Layout, Strides
    from tensorplug_opencl.runtime import Launch, Runtime

__all__ = ["Matrix", "Product", "multiplier"]

ROWS: Final = 4
COLUMNS: Final = 8
# Terms added up before they join the total: the rounding error grows with this plus the number
# of such blocks, not with the inner size.
BLOCK: Final = 64
WORTH_TURNING: Final = 16  # rows of A from which on a transposed copy of B pays


class Matrix(NamedTuple):
    """Distances in elements between rows, columns, and along the batch axes of the product."""

    row: int
    column: int
    batch: Strides


class Product(NamedTuple):
    """C = A B for every batch: A is rows x inner, B is inner x columns.

    ``reach``: the number of elements in the largest of the arrays.
    """

    dtype: DType
    batch: Shape
    rows: int
    inner: int
    columns: int
    a: Matrix
    b: Matrix
    c: Matrix
    reach: int


def multiplier(
    runtime: Runtime, of: Product
) -> Callable[[DeviceBuffer, DeviceBuffer, DeviceBuffer], None]:
    """Return a callable of the buffers of A, B and C (not empty) that enqueues the product."""
    if of.b.column != 1 and of.columns >= COLUMNS and of.rows >= WORTH_TURNING:
        return _turned(runtime, of)
    return _launch(runtime, of)


def _turned(
    runtime: Runtime, of: Product
) -> Callable[[DeviceBuffer, DeviceBuffer, DeviceBuffer], None]:
    """Return the product by way of a copy of B whose columns lie side by side."""
    lengths = [length if step else 1 for length, step in zip(of.batch, of.b.batch, strict=True)]
    shape = (*lengths, of.inner, of.columns)
    dense = layouts.row_major(shape)
    steps = tuple(
        stride if length != 1 else 0 for stride, length in zip(dense[:-2], lengths, strict=True)
    )
    source = (*of.b.batch, of.b.row, of.b.column)
    copy = moving.mover(runtime, of.dtype, shape, source, dense, of.reach)
    make = runtime.maker(TensorType(of.dtype, shape))
    launch = _launch(runtime, of._replace(b=Matrix(dense[-2], 1, steps)))

    def run(a: DeviceBuffer, b: DeviceBuffer, c: DeviceBuffer) -> None:
        turned = make()
        copy(b, turned)
        launch(a, turned, c)

    return run


def _launch(runtime: Runtime, of: Product) -> Launch:
    vector = of.b.column == 1 and of.columns >= COLUMNS
    tile_columns = COLUMNS if vector else 1
    across = -(-of.columns // tile_columns)
    down = -(-of.rows // ROWS)
    batches = layouts.collapse(of.batch, [of.a.batch, of.b.batch, of.c.batch])
    items = across * down * shapes.size(of.batch)
    index = layouts.index_dtype(items, of.reach)
    text = _source(of.dtype, batches, index, vector=vector)
    numbers = (
        items,
        down,
        across,
        of.rows,
        of.inner,
        of.columns,
        *(of.a.row, of.a.column, of.b.row, of.b.column, of.c.row, of.c.column),
    )
    struct = layouts.packed([batches], index)
    constants = [*map(index.type, numbers), *([] if struct is None else [struct])]
    return runtime.launch(text, 3, constants, items, heavy=True)


def _source(dtype: DType, batches: Layout, index: templates.Index, *, vector: bool) -> str:
    """Return the program for ``dtype``; ``vector`` needs B's columns side by side.

    The last block across starts early enough to be whole: some columns are then computed
    twice, with the same result. Rows below the last are computed from it and not stored.
    """
    element, stored = ctypes.ring(dtype), ctypes.stored(dtype)
    wide = str(COLUMNS) if vector else ""
    load = f"convert_{element}{COLUMNS}(vload{COLUMNS}(0, {{0}}))" if vector else "(A)*({0})"
    rank = batches.rank
    offsets = [f"  {name} += {name}_place(batch, layout);" for name in ("a", "b", "c") if rank]
    rows = range(ROWS)
    body = "\n".join(
        [
            "  const index_t i = get_global_id(0);",
            "  if (i >= items) return;",
            "  const index_t batch = i / across / down;",
            f"  const index_t row = i / across % down * {ROWS};",
            f"  const index_t column = min(i % across * {wide or 1}, columns - {wide or 1});",
            *offsets,
            "  b += column * b_column;",
            *(f"  const index_t a{r} = min(row + {r}, rows - 1) * a_row;" for r in rows),
            f"  V {', '.join(f'total{r} = 0' for r in rows)};",
            f"  for (index_t from = 0; from < inner; from += {BLOCK}) {{",
            f"    const index_t to = min(inner, from + {BLOCK});",
            f"    V {', '.join(f'sum{r} = 0' for r in rows)};",
            "    for (index_t k = from; k < to; k++) {",
            f"      const V v = {load.format('b + k * b_row')};",
            *(f"      sum{r} = JOIN((V)(A)a[a{r} + k * a_column], v, sum{r});" for r in rows),
            "    }",
            *(f"    total{r} += sum{r};" for r in rows),
            "  }",
            *_stores(stored, vector=vector),
        ]
    )
    names = ("items", "down", "across", "rows", "inner", "columns")
    strides = [f"{name}_{axis}" for name in ("a", "b", "c") for axis in ("row", "column")]
    fields = [("size", rank), *((f"{name}_by", rank) for name in ("a", "b", "c"))]
    places = [
        templates.place(f"{name}_place", rank, "size", f"{name}_by") for name in ("a", "b", "c")
    ]
    return templates.program(
        f"matrix product {dtype}",
        [
            templates.Array("a", stored),
            templates.Array("b", stored),
            templates.Array("c", stored, written=True),
        ],
        templates.indices(*names, *strides, layout=rank > 0),
        body,
        index=index,
        declarations="\n".join(
            [
                f"typedef {element} A;\ntypedef {element}{wide} V;",
                _JOIN[element],
                *([templates.layout_struct(fields), *places] if rank else []),
            ]
        ),
    )


def _stores(stored: str, *, vector: bool) -> list[str]:
    """Return the lines that write the totals of the rows that exist."""
    lines = []
    for row in range(ROWS):
        lines.append(f"  if (row + {row} < rows) {{")
        lines.append(f"    global {stored} *to = c + (row + {row}) * c_row + column * c_column;")
        for column in range(COLUMNS if vector else 1):
            value = f"total{row}.s{column}" if vector else f"total{row}"
            lines.append(f"    to[{column} * c_column] = ({stored}){value};")
        lines.append("  }")
    return lines


# Where the hardware fuses multiplication and addition, that is both faster and more exact.
_SEPARATE: Final = "#define JOIN(x, y, sum) ((sum) + (x) * (y))"
_FUSED: Final = "#ifdef {0}\n#define JOIN(x, y, sum) fma(x, y, sum)\n#else\n{1}\n#endif"
_JOIN: Final = {
    "float": _FUSED.format("FP_FAST_FMAF", _SEPARATE),
    "double": _FUSED.format("FP_FAST_FMA", _SEPARATE),
    "uint": _SEPARATE,
    "ulong": _SEPARATE,
}
