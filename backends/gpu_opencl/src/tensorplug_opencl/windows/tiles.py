"""Tiles of sums of the gradient of a filter: neighbours of its row, and vectors of outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug_opencl.codegen import ctypes, templates, vectors
from tensorplug_opencl.products import panels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorplug.plugin import Windows
    from tensorplug_opencl.windows.sliding import Convolution


SUMS: Final = {64: 16}  # registers for sums, by the bytes of one
FEWER: Final = 12  # of any other size
LONGEST: Final = 8  # neighbours, more of which have no registers for their addresses


class Lanes(NamedTuple):
    """Neighbouring channels that a text computes at once: a vector, or a single number.

    ``element``: the C type of each. In texts, ``A`` is the type of all of them.
    """

    width: int
    element: str

    def widen(self, ctype: str) -> str:
        """Return the type of all lanes if each has ``ctype``."""
        return ctype if self.width == 1 else f"{ctype}{self.width}"

    def load(self, ctype: str, address: str, to: str = "") -> str:
        """Return the elements of ``ctype`` from ``address`` on, converted to ``to``."""
        to = to or self.element
        if self.width == 1:
            return f"({to})*({address})"
        loaded = vectors.load(ctype, self.width, address)
        return loaded if ctype == to else f"convert_{self.widen(to)}({loaded})"

    def store(self, ctype: str, address: str, value: str, made: str = "") -> str:
        """Return the statement that stores ``value``, whose elements have the type ``made``."""
        if self.width == 1:
            return f"*({address}) = ({ctype})({value});"
        same = ctype == (made or self.element)
        kept = value if same else f"convert_{self.widen(ctype)}({value})"
        return vectors.store(ctype, self.width, address, kept)


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


def choose_tile(convolution: Convolution, length: int) -> Tile | None:
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
