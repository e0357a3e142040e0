"""Convolutions on CPUs that read images and filter in place: nothing is packed.

A work-item makes a strip of a row of y for one or two vectors of output channels, a tile of
neighbouring positions at a time, whose sums stay in registers: each element of x is multiplied by
the filter's vectors at its tap and channel. Where a tap of a tile lies beside the image, zeros
replace the elements.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.plugin import TensorType
from tensorplug_opencl.codegen import ctypes, functions, layouts, templates, vectors
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.movement import moving
from tensorplug_opencl.products import panels, product_texts
from tensorplug_opencl.windows.strips import Lanes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tensorplug.plugin import Windows
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.products.product_texts import Epilogue
    from tensorplug_opencl.runtime import Launch
    from tensorplug_opencl.windows.sliding import Convolution


SUMS: Final = {64: 16}  # registers for sums, by the bytes of one
FEWER: Final = 12  # of any other size
LONGEST: Final = 8  # positions, more of which have no registers for their addresses
SHORTEST: Final = 4  # positions of a tile, fewer of which leave registers idle
STRIP: Final = 64  # positions in a strip, about
BLOCK: Final = 512  # products that are added one after the other


class Tile(NamedTuple):
    """So many neighbouring positions, and ``vectors`` of ``width`` output channels."""

    positions: int
    vectors: int
    width: int

    @property
    def wide(self) -> int:
        """Output channels of the tile."""
        return self.vectors * self.width

    def name_sums(self) -> list[str]:
        """Return the endings of the names of all sums."""
        return [f"{r}_{v}" for r in range(self.positions) for v in range(self.vectors)]

    def write_each(self, statements: str) -> str:
        """Return ``statements`` for each sum, whose ending replaces ``{}``."""
        return " ".join(statements.replace("{}", name) for name in self.name_sums())

    def write_products(self, lanes: Lanes, elements: Sequence[str]) -> list[str]:
        """Return statements that add each of ``elements``, times the vectors ``by``, to the sums.

        There is one element for each position.
        """
        lines = []
        for r, element in enumerate(elements):
            joins = (f"sum{r}_{v} = JOIN(of, by{v}, sum{r}_{v});" for v in range(self.vectors))
            value = f"(V)(({lanes.element})({element}))"
            lines.append(f"    {{ const V of = {value}; {' '.join(joins)} }}")
        return lines


def choose_tile(convolution: Convolution) -> Tile | None:
    """Return the tile for a convolution; None if registers would be idle."""
    tile = choose_tile_of(convolution, convolution.windows[-1].out)
    return tile if tile is not None and tile.positions >= SHORTEST else None


def choose_tile_of(convolution: Convolution, length: int) -> Tile | None:
    """Return the tile of output channels and of a part of ``length``.

    It is None on GPUs, and if the output channels do not fill vectors.
    """
    runtime, outputs = convolution.runtime, convolution.outputs
    if not runtime.is_cpu or convolution.dtype.kind != "float":
        return None
    native = panels.count_lanes(runtime, convolution.dtype)
    width = next((width for width in (native, native // 2) if outputs % width == 0), None)
    if width is None:
        return None
    number = next(number for number in (2, 3, 1) if outputs % (number * width) == 0)
    size = native * ctypes.host(ctypes.computed(convolution.dtype)).itemsize
    most = min(LONGEST, SUMS.get(size, FEWER) // number)
    return Tile(-(-length // -(-length // most)), number, width)


def list_axes(windows: Windows) -> dict[str, int]:
    """Return the constants of each axis."""
    values: dict[str, int] = {}
    for axis, at in enumerate(windows):
        fields = {"size": at.size, "out": at.out, "taps": at.filter, "stride": at.stride}
        fields |= {"dilation": at.dilation, "before": at.before}
        values |= {f"{name}{axis}": value for name, value in fields.items()}
    return values


def wrap(index: templates.Index, values: Iterable[int]) -> list[Any]:
    """Return ``values`` as indices; negative ones wrap around, and so do sums with them."""
    return [index.type(value % (1 << 8 * index.itemsize)) for value in values]


def launch_forward(convolution: Convolution, tile: Tile, epilogue: Epilogue) -> Launch:
    """Return the launch (x, filter, the epilogue's inputs, y) on images with channels last."""
    runtime, windows, dtype = convolution.runtime, convolution.windows, convolution.dtype
    stored, computed = ctypes.stored(dtype), ctypes.computed(dtype)
    last = len(windows) - 1
    tiles = -(-windows[last].out // tile.positions)
    strip = tile.positions * min(tiles, max(1, STRIP // tile.positions))
    depth = min(convolution.channels, max(1, BLOCK // windows[last].filter))
    values = {
        "images": convolution.x[0],
        "channels": convolution.channels,
        "outputs": convolution.outputs,
        "strip": strip,
        "strips": -(-windows[last].out // strip),
        "depth": depth,
        **list_axes(windows),
    }
    more = {f"{name}_by": matrix.column for name, matrix in epilogue.inputs}
    rows = prod(at.out for at in windows[:last])
    items = values["images"] * rows * values["strips"] * (convolution.outputs // tile.wide)
    index = layouts.index_dtype(items, convolution.reach)
    constants = {"items": items, **values, **more}
    names = [name for name, _ in epilogue.inputs]
    whole = convolution.taps <= BLOCK
    text = templates.write_program(
        f"convolution of {last + 1} axes in tiles of {tile.positions}x{tile.wide} {dtype}",
        [
            *(Array(name, stored) for name in ("x", "w", *names)),
            Array("y", stored, written=True),
        ],
        [
            *templates.declare_indices(*constants),
            *(f"const {computed} {name}_argument" for name, _ in epilogue.numbers),
        ],
        _Writer(tile, last, Lanes(tile.width, computed), stored, epilogue, whole).write(),
        index=index,
        declarations="\n".join(
            [
                functions.define(epilogue.expression, dtype),
                f"typedef {stored} S;\ntypedef {computed}{tile.width} V;",
                vectors.declare(tile.width, stored),
                product_texts.define_epilogue(epilogue, computed),
                product_texts.define_join(computed),
            ]
        ),
    )
    kind = ctypes.host(computed).type
    arguments = wrap(index, constants.values())
    numbers = [kind(number) for _, number in epilogue.numbers]
    return runtime.launch(text, 3 + len(names), [*arguments, *numbers], items, group=1)


def prepare_input_gradient(convolution: Convolution, tile: Tile) -> Callable[..., None]:
    """Return a function (dy, filter, result): the convolution of dy with the turned filter.

    ``tile``: of that convolution.
    """
    runtime, dtype, turned = convolution.runtime, convolution.dtype, convolution.turned
    spatial, channels, outputs = (
        convolution.spatial_taps,
        convolution.channels,
        convolution.outputs,
    )
    size = channels * outputs
    shape = (spatial, outputs, channels)
    copy = moving.make_mover(
        runtime,
        dtype,
        shape,
        (-size, 1, outputs),
        layouts.row_major(shape),
        spatial * size,
        starts=((spatial - 1) * size, 0),
    )
    make = runtime.prepare_empty(TensorType(dtype, shape))
    launch = launch_forward(turned, tile, product_texts.NO_EPILOGUE)

    def write(dy: DeviceBuffer, filter: DeviceBuffer, result: DeviceBuffer) -> None:
        taps = make()
        copy(filter, taps)
        launch(dy, taps, result)

    return write


class _Writer(NamedTuple):
    """The writer of a program's body, over ``last`` + 1 axes."""

    tile: Tile
    last: int
    lanes: Lanes
    stored: str
    epilogue: Epilogue
    whole: bool

    def write(self) -> str:
        """Return the body; if not ``whole``, blocks of products are added up separately."""
        last, positions = self.last, self.tile.positions
        lines = [
            "  index_t rest = get_global_id(0);",
            "  if (rest >= items) return;",
            "  const index_t begin = rest % strips * strip;",
            f"  const index_t end = min(begin + strip, out{last});",
            "  rest /= strips;",
        ]
        for axis in reversed(range(last)):
            lines += [f"  const index_t at{axis} = rest % out{axis};", f"  rest /= out{axis};"]
        row = "image"
        for axis in range(last):
            row = f"({row} * out{axis} + at{axis})"
        lines += [
            f"  const index_t image = rest % images, c = rest / images * {self.tile.wide};",
            f"  y += {row} * out{last} * outputs + c;",
            "  w += c;",
            f"  for (index_t first = begin; first < end; first += {positions}) {{",
            # The last tile makes some results again, and does not store them.
            f"  const index_t at = min(first, out{last} - {positions});",
            self.tile.write_each("V sum{} = 0;"),
            "" if self.whole else self.tile.write_each("V total{} = 0;"),
        ]
        lines += self._write_taps()
        if not self.whole:
            lines.append(self.tile.write_each("sum{} = total{};"))
        for r in range(positions):
            lines.append(f"  if (at + {r} >= first) {{")
            lines += [self._write_store(r, v) for v in range(self.tile.vectors)]
            lines.append("  }")
        return "\n".join([*lines, "  }"])

    def _write_taps(self) -> list[str]:
        """Return the loops over taps and channels that add products to the sums."""
        last, positions = self.last, self.tile.positions
        lines: list[str] = []
        line, tap = "image", "0"
        for axis in range(last):
            start = f"at{axis} * stride{axis} + tap{axis} * dilation{axis} - before{axis}"
            lines += [
                f"  for (index_t tap{axis} = 0; tap{axis} < taps{axis}; tap{axis}++) {{",
                f"  const index_t from{axis} = {start};",
                f"  if (from{axis} >= size{axis}) continue;",
            ]
            line = f"({line} * size{axis} + from{axis})"
            tap = f"({tap} * taps{axis} + tap{axis})"
        start = f"at * stride{last} + tap * dilation{last} - before{last}"
        inside = f"from + {positions - 1} * stride{last} < size{last}"
        steps = [f"p{r} = row + (from + {r} * stride{last}) * channels" for r in range(positions)]
        kept = [
            f"row + (in{r} ? from + {r} * stride{last} : 0) * channels" for r in range(positions)
        ]
        lines += [
            "  for (index_t skipped = 0; skipped < channels; skipped += depth) {",
            "  const index_t count = min(depth, channels - skipped);",
            f"  global const S *row = x + {line} * size{last} * channels + skipped;",
            f"  for (index_t tap = 0; tap < taps{last}; tap++) {{",
            f"  const index_t from = {start};",
            f"  const index_t offset = ({tap} * taps{last} + tap) * channels + skipped;",
            "  global const S *by = w + offset * outputs;",
            f"  if (from < size{last} && {inside}) {{",
            *(f"  global const S *{step};" for step in steps),
            self._write_loop([f"p{r}[k]" for r in range(positions)]),
            "  } else {",
            *(
                f"  const bool in{r} = from + {r} * stride{last} < size{last};"
                for r in range(positions)
            ),
            *(f"  global const S *p{r} = {address};" for r, address in enumerate(kept)),
            self._write_loop([f"in{r} ? p{r}[k] : 0" for r in range(positions)]),
            "  } }",
        ]
        if not self.whole:
            lines.append(self.tile.write_each("total{} += sum{}; sum{} = 0;"))
        return [*lines, "  }" * (last + 1)]

    def _write_loop(self, elements: list[str]) -> str:
        """Return the loop over channels, with an element of x for each position."""
        lines = ["  for (index_t k = 0; k < count; k++, by += outputs) {"]
        for v in range(self.tile.vectors):
            address = f"by + {v * self.tile.width}"
            lines.append(f"    const V by{v} = {self.lanes.load(self.stored, address)};")
        lines += self.tile.write_products(self.lanes, elements)
        return "\n".join([*lines, "  }"])

    def _write_store(self, r: int, v: int) -> str:
        """Return the statements that apply the epilogue to a sum and store it."""
        address = f"y + (at + {r}) * outputs + {v * self.tile.width}"
        if self.epilogue is product_texts.NO_EPILOGUE:
            return f"  {self.lanes.store(self.stored, address, f'sum{r}_{v}')}"
        channel = f"(c + {v * self.tile.width} + k)"
        offsets = {name: f"{channel} * {name}_by" for name, _ in self.epilogue.inputs}
        return f"""  {{ union {{ {self.lanes.element} each[{self.tile.width}]; V all; }} made;
    made.all = sum{r}_{v};
    for (int k = 0; k < {self.tile.width}; k++)
      made.each[k] = {product_texts.call_epilogue(self.epilogue, "made.each[k]", offsets)};
    {self.lanes.store(self.stored, address, "made.all")} }}"""
