"""Products with a vector as one factor: every element of the matrix is read once.

So tiles are of no use, and speed depends on reading the matrix in order, with as many readers as
the memory serves. All are turned into a row times a matrix B, whose elements lie side by side
either along the inner axis ("dots": each column of C is the product of two pieces of memory) or
along the columns ("sums": rows of B are multiplied by a number each and added up).

- "dots": on a CPU a work-item takes ``ROWS`` such pieces at a time, in vectors. On a GPU a group
  shares one, neighbours reading neighbouring elements, and adds up in local memory.
- "sums": on a CPU a work-item takes many neighbouring columns, in vectors, along ``DEEP`` rows
  of B at a time, so that it reads long pieces of memory. On a GPU each work-item has a column.

The library's nests, whose sums of float32 are float64, take 0.9 to 1.4 times as long for products
of 512 x 512, and of 4096 x 4096 as "dots"; 3 to 5 times as "sums" (Intel's driver).

If this gives the device too little to do, the inner axis is cut into slices, whose sums a second
kernel adds up. Sums of a few terms are compensated (``products.write_sum``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tensorplug_opencl.codegen import calls, ctypes, vectors
from tensorplug_opencl.products import product_texts, slices
from tensorplug_opencl.products.matrices import Matrix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_opencl.codegen import templates
    from tensorplug_opencl.products.product_texts import Product
    from tensorplug_opencl.runtime import Launch, Runtime


ROWS: Final = 4  # pieces of memory that a work-item of a CPU reads at a time
STEPS: Final = 16  # vectors from which sums of products are compensated
DEEP: Final = 8  # rows of B at a time, and elements of a work-item of a GPU
STRIP: Final = 64  # vectors side by side, at most: with their sums they stay in the cache
GROUP: Final = 256  # work-items that share a dot product on a GPU, if the device takes as many
FEWEST: Final = 32  # of which GPUs run as many at once
READERS: Final = 16  # work-items for each core of a CPU, so that none waits for the last
SLICE: Final = 1 << 17  # elements of B in a work-item's slice on a CPU, at least
SHARE: Final = 16384  # elements of B that are worth another group on a CPU
LIGHT: Final = 128  # elements of B up to which a work-item of a CPU counts as light
SHORTEST: Final = 64  # inner elements of a slice for each work-item of a GPU


class Way(NamedTuple):
    """The way to compute: in vectors of ``width``, or by groups of ``width``.

    ``many``: the columns of C that a work-item takes together, in "sums" as vectors.
    """

    kind: Literal["dots", "group", "sums"]
    width: int
    many: int = 1


def make_multiplier(
    runtime: Runtime, product: Product, way: Way | None = None, cut: int | None = None
) -> Callable[..., None] | None:
    """Return a callable that enqueues the product (no axis of which is empty).

    None if neither factor is a vector with its elements side by side. The callable takes the
    buffers of A, B, the epilogue's inputs, and C. ``way`` and ``cut``, the number of slices, have
    defaults that suit the device.
    """
    if product.rows != 1 and product.columns == 1:
        swapped = make_multiplier(runtime, product.turned, way, cut)
        return None if swapped is None else lambda a, b, *rest: swapped(b, a, *rest)
    if product.rows != 1 or not _is_plain(product):
        return None
    chosen = way or _choose_way(runtime, product)

    def sized(width: int) -> Callable[..., None]:
        return _multiply_slices(runtime, product, chosen._replace(width=width), cut)

    return (
        calls.shrink_until_allowed(sized, chosen.width)
        if chosen.kind == "group"
        else sized(chosen.width)
    )


def _is_plain(product: Product) -> bool:
    """Return whether the factors are matrices in memory, and elements of A side by side."""
    return (
        isinstance(product.a, Matrix)
        and isinstance(product.b, Matrix)
        and (product.a.column == 1 or product.inner == 1)
        and (
            product.b.row == 1
            or product.inner == 1
            or (product.b.column == 1 and product.columns > 1)
        )
    )


def _choose_way(runtime: Runtime, product: Product) -> Way:
    wide = _choose_width(runtime, product) if runtime.is_cpu else 1
    if product.columns > 1 and _lies_by_rows(product):
        width = min(wide, 1 << (product.columns.bit_length() - 1))
        side_by_side = -(-product.columns // width)
        strips = -(-side_by_side // STRIP)
        return Way("sums", width, -(-side_by_side // strips) if runtime.is_cpu else 1)
    if runtime.is_cpu:
        return Way("dots", wide, ROWS if product.columns >= ROWS else 1)
    most = min(GROUP, runtime.device.max_work_group_size)
    depth = max(FEWEST, 1 << (max(product.inner // DEEP, 1) - 1).bit_length())
    return Way("group", 1 << (min(most, depth).bit_length() - 1))


def _lies_by_rows(product: Product) -> bool:
    """Return whether the elements of B's rows lie side by side."""
    return isinstance(product.b, Matrix) and product.b.column == 1 <= product.b.row


def _choose_width(runtime: Runtime, product: Product) -> int:
    """Return how many elements there are in a vector."""
    return vectors.choose_lanes(runtime, ctypes.ring(product.dtype), ctypes.stored(product.dtype))


def _count_blocks(product: Product, way: Way) -> int:
    """Return how many work-items, or groups, the columns of one batch take."""
    return -(-product.columns // (way.many * (way.width if way.kind == "sums" else 1)))


def _count_slices(runtime: Runtime, product: Product, way: Way) -> int:
    """Return into how many slices the inner axis is cut, so that the device has enough to do."""
    units = product.batches * _count_blocks(product, way)
    if runtime.is_cpu:
        slices = READERS * runtime.device.max_compute_units // units
        together = product.inner * -(-product.columns // _count_blocks(product, way))
        return max(1, min(slices, together // SLICE))
    share = way.width if way.kind == "group" else 1
    slices = runtime.parallel_items // (units * share)
    return max(1, min(slices, product.inner // (SHORTEST * share)))


def _multiply_slices(
    runtime: Runtime, product: Product, way: Way, cut: int | None
) -> Callable[..., None]:
    number = cut if cut is not None else _count_slices(runtime, product, way)
    if number == 1:
        return _launch(runtime, product, way)
    return slices.multiply_in_slices(
        runtime, product, number, lambda part: _launch(runtime, part, way)
    )


def _launch(runtime: Runtime, product: Product, way: Way) -> Launch:
    """Return the launch on the buffers of A, B, the epilogue's inputs and C."""
    blocks = _count_blocks(product, way)
    units = product.batches * blocks * product.slices
    items = units * way.width if way.kind == "group" else units
    more = {"items": units, "blocks": blocks, "many": way.many}
    index = product_texts.choose_index(product, items)
    many = min(way.many, 2) if way.kind == "sums" else way.many  # a constant of the program
    text = _write_source(product.outline, index, tuple(more), way._replace(many=many))
    arguments: list[Any] = product_texts.list_constants(product, index, more)
    runtime.check_steps(product.span // (way.width if way.kind == "group" else 1))
    arrays = 3 + len(product.epilogue.inputs)
    if way.kind == "group":
        return runtime.launch(text, arrays, arguments, items, group=way.width)
    elements = product.span * -(-product.columns // blocks)
    if runtime.is_cpu and elements > SHARE // 2:
        return runtime.launch(text, arrays, arguments, items, group=1)
    # A small product is one group: it takes one thread, and does not wait for another to wake.
    light = elements <= LIGHT or units * elements <= 2 * SHARE
    heavy = not (runtime.is_cpu and light)
    return runtime.launch(text, arrays, arguments, items, heavy=heavy)


# Program texts ----------------------------------------------------------------------------------


@lru_cache(product_texts.KEPT)
def _write_source(
    product: Product, index: templates.Index, more: tuple[str, ...], way: Way
) -> str:
    write = {"dots": _write_dots, "group": _write_group, "sums": _write_sums}[way.kind]
    element = ctypes.ring(product.dtype)
    wide = f"{element}{way.width}" if _uses_vectors(way) else element
    loads = vectors.declare(way.width, _choose_read_type(product)) if _uses_vectors(way) else ""
    title = f"vector times matrix, {way.kind} of {way.width}"
    return product_texts.write_program(
        title,
        product,
        index,
        more,
        "\n".join([*_write_number(way), *write(product, way)]),
        f"typedef {wide} T;\n{loads}",
    )


def _uses_vectors(way: Way) -> bool:
    return way.kind != "group" and way.width > 1


def _choose_read_type(product: Product) -> str:
    """Return the type in which elements are read: integers as unsigned ones of their size."""
    element, stored = ctypes.ring(product.dtype), ctypes.stored(product.dtype)
    same = (
        product.dtype.kind != "float" and product.dtype.itemsize == ctypes.host(element).itemsize
    )
    return element if same else stored


def _write_load(product: Product, way: Way, pointer: str) -> str:
    if not _uses_vectors(way):
        return f"(A)(*({pointer}))"
    element, read = ctypes.ring(product.dtype), _choose_read_type(product)
    value = vectors.load(read, way.width, pointer)
    return value if read == element else f"convert_{element}{way.width}({value})"


def _write_number(way: Way) -> Iterator[str]:
    """Yield the number of a work-item, or group."""
    number = "get_group_id(0)" if way.kind == "group" else "get_global_id(0)"
    yield f"""  const index_t i = {number};
  if (i >= items) return;
  const index_t block = i % blocks, batch = i / blocks % batches, slice = i / blocks / batches;
  const index_t begin = slice * span, end = inner - begin < span ? inner : begin + span;
  AT(batch);
  c += slice * slice_by;"""


def _is_exact(product: Product) -> bool:
    return product.dtype.kind == "float"


def _declare_state(product: Product, *names: str, ctype: str = "T") -> str:
    both = [
        f"{name} = 0, {name}_low = 0" if _is_exact(product) else f"{name} = 0" for name in names
    ]
    return f"  {ctype} {', '.join(both)};"


def _write_closed(product: Product, name: str, low: str) -> str:
    """Return the expression of a sum plus its rounding error, unless that is NaN."""
    return f"({low} - {low} == 0 ? {name} + {low} : {name})" if _is_exact(product) else name


def _write_dots(product: Product, way: Way) -> Iterator[str]:
    """Yield the body for pieces of memory that a work-item walks along in vectors."""
    width, rows = way.width, range(way.many)
    yield f"  const index_t first = block * {way.many};"
    for r in rows:
        yield (
            f"  global const S *row{r} = b + "
            f"(first + {r} < columns ? first + {r} : columns - 1) * b_column;"
        )
    yield _declare_state(product, *(f"total{r}" for r in rows))
    sums = ", ".join(f"sum{r} = 0" for r in rows)
    yield f"""  index_t k = begin;
  while (k + {width} <= end) {{
    const index_t stop = end - k < {STEPS * width} ? end : k + {STEPS * width};
    T {sums};
    {{
#pragma OPENCL FP_CONTRACT ON
    for (; k + {width} <= stop; k += {width}) {{
      const T x = {_write_load(product, way, "a + k")};"""
    for r in rows:
        yield f"      sum{r} = JOIN({_write_load(product, way, f'row{r} + k')}, x, sum{r});"
    yield "    }\n    }"
    for r in rows:
        yield f"    {product_texts.write_sum(product, f'sum{r}', f'total{r}', f'total{r}_low')}"
    yield f"  }}\n  A {', '.join(f'rest{r} = 0' for r in rows)};"
    yield "  {\n#pragma OPENCL FP_CONTRACT ON\n  for (; k < end; k++) {\n    const A x = (A)a[k];"
    for r in rows:
        yield f"    rest{r} = JOIN((A)row{r}[k], x, rest{r});"
    yield "  }\n  }"
    for r in rows:
        yield f"  if (first + {r} < columns) {{"
        yield from _write_across(product, width, f"total{r}")
        yield f"  const A value = across + rest{r};"
        yield f"  {product_texts.write_store(product, 'value', '0', f'(first + {r})')} }}"


def _write_across(product: Product, width: int, name: str) -> Iterator[str]:
    """Yield the declaration of ``across``, the sum of a vector's elements, half by half."""
    last = "across" if width == 1 else f"by{width}"
    yield f"  const T {last} = {_write_closed(product, name, f'{name}_low')};"
    while width > 1:
        width //= 2
        ctype = f"{ctypes.ring(product.dtype)}{width}" if width > 1 else "A"
        new = f"by{width}" if width > 1 else "across"
        yield f"  const {ctype} {new} = {last}.lo + {last}.hi;"
        last = new


def _write_group(product: Product, way: Way) -> Iterator[str]:
    """Yield the body for pieces of memory that a group shares."""
    size = way.width
    terms = [
        f"      sum = JOIN((A)b[k + {n * size}], (A)a[k + {n * size}], sum);" for n in range(DEEP)
    ]
    yield f"""  local A shared[{size}];
  const index_t lane = get_local_id(0);
  b += block * b_column;
{_declare_state(product, "total")}
  index_t k = begin + lane;
  for (; k + {(DEEP - 1) * size} < end; k += {DEEP * size}) {{
    A sum = 0;
    {{
#pragma OPENCL FP_CONTRACT ON"""
    yield from terms
    yield f"""    }}
    {product_texts.write_sum(product, "sum", "total", "total_low")}
  }}
  for (; k < end; k += {size}) {{
    const A product = (A)b[k] * (A)a[k];
    {product_texts.write_sum(product, "product", "total", "total_low")}
  }}
  shared[lane] = {_write_closed(product, "total", "total_low")};
  barrier(CLK_LOCAL_MEM_FENCE);
  for (index_t half_way = {size // 2}; half_way; half_way >>= 1) {{
    if (lane < half_way) shared[lane] += shared[lane + half_way];
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
  if (lane == 0) {product_texts.write_store(product, "shared[0]", "0", "block")}"""


def _write_sums(product: Product, way: Way) -> Iterator[str]:
    """Yield the body for rows of B that are added up."""
    width = way.width
    size = STRIP if way.many > 1 else 1  # arrays of one element can be registers
    low = f", low[{size}]" if _is_exact(product) else ""
    clear = "low[t] = 0; " if _is_exact(product) else ""
    for_each = (
        "for (index_t t = 0; t < count; t++)" if way.many > 1 else "for (int t = 0; t < 1; t++)"
    )
    # The last vector overlaps the one before it: both have the same sums.
    column = f"first + (t + 1) * {width} <= columns ? first + t * {width} : columns - {width}"
    at = f"const index_t at = {column};"
    yield f"""  const index_t first = block * many * {width};
  const index_t left = (columns - first + {width - 1}) / {width};
  const index_t count = left < many ? left : many;
  T total[{size}]{low};
  {for_each} {{ {clear}total[t] = 0; }}
  index_t k = begin;"""
    for deep in (DEEP, 1):
        yield f"  for (; k + {deep} <= end; k += {deep}) {{"
        for n in range(deep):
            yield f"    const A x{n} = (A)a[k + {n}];"
            yield f"    global const S *row{n} = b + (k + {n}) * b_row;"
        yield f"    {for_each} {{ {at} T sum = 0; {{"
        yield "#pragma OPENCL FP_CONTRACT ON"
        for n in range(deep):
            yield f"      sum = JOIN({_write_load(product, way, f'row{n} + at')}, (T)x{n}, sum);"
        added = product_texts.write_sum(product, "sum", "total[t]", "low[t]")
        yield f"      }}\n      {added}\n    }}\n  }}"
    element = "closed.lane[lane]"
    yield f"""  {for_each} {{ {at}
    union {{ A lane[{width}]; T all; }} closed;
    closed.all = {_write_closed(product, "total[t]", "low[t]")};
    for (index_t lane = 0; lane < {width}; lane++)
      {product_texts.write_store(product, element, "0", "(at + lane)")}
  }}"""
