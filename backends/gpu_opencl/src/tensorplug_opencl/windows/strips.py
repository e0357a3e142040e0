"""Programs that walk windows over images: pixels in each window, or windows over each pixel.

On a CPU a work-item makes a strip of one row, for as many channels as a vector holds: it finds its
pixel once, and then needs no division. Elsewhere, and for few channels, a work-item makes one
element, so that neighbours read neighbours. The text is the same, with a strip and vector of one.
"""

from __future__ import annotations

from math import gcd, prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from tensorplug_opencl.codegen import layouts, templates, vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.plugin import Windows
    from tensorplug_opencl.codegen.templates import Array
    from tensorplug_opencl.runtime import Launch, Runtime


RESULT: Final = "(image * results + at) * channels + c"
"""The offset of a result, among arrays like it."""
SOURCE: Final = "(image * sources + from) * channels + c"
"""The offset of a source that has the result's channels."""

FEWEST: Final = 2  # channels that are worth a vector
STRIP: Final = 64  # elements of a row in a strip, at most, so that long rows are shared
MANY_TAPS: Final = 32  # beyond which a work-item of one element counts as heavy


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

    def gather(self, address: str) -> str:
        """Return the elements at ``address``, an expression over the channel ``{c}``, together."""
        each = ", ".join(
            f"({self.element}){address.format(c=f'(c + {k})')}" for k in range(self.width)
        )
        return f"(A)({each})"


class Visit(Protocol):
    """Writes the loops over all sources of a result."""

    def __call__(self, take: str, begin: str = "", end: str = "") -> str:
        """Return the loops around ``take``; ``begin`` and ``end`` enclose those of each row."""


class Walk(NamedTuple):
    """A result for each window over some images, or, if ``back``, for each pixel of them.

    The sources of a window are the pixels in it; those of a pixel are the windows over it.
    ``channels``: those of the results, which are neighbours in memory.
    """

    runtime: Runtime
    windows: Windows
    images: int
    channels: int
    back: bool = False

    @property
    def results(self) -> tuple[int, ...]:
        """Results along each axis of an image."""
        return tuple(at.size if self.back else at.out for at in self.windows)

    @property
    def sources(self) -> tuple[int, ...]:
        """Sources along each axis of an image."""
        return tuple(at.out if self.back else at.size for at in self.windows)

    def choose_width(self, *used: str) -> int:
        """Return how many channels a work-item takes; a vector must hold these types."""
        if not self.runtime.is_cpu or self.channels < FEWEST:
            return 1
        most = min(vectors.choose_lanes(self.runtime, *used), self.channels)
        widths = [1 << power for power in reversed(range(most.bit_length()))]
        # Channels that fill no vector are made one by one.
        return min(widths, key=lambda width: self.channels // width + self.channels % width)


def launch(
    walk: Walk,
    title: str,
    arrays: Sequence[Array],
    write: Callable[[Lanes, Visit], str],
    element: str,
    *,
    values: Mapping[str, int] | None = None,
    numbers: Sequence[tuple[str, Any]] = (),
    reach: int = 0,
    declarations: str = "",
) -> Launch:
    """Return the launch on ``arrays`` that makes all results of ``walk``.

    ``write`` returns the statements that make the result of the lanes' channels. They may name
    ``image``, ``at`` (the result's number in its image), ``c`` (the first channel), and
    ``channels``, ``results`` and ``sources`` (numbers of an image). In what they let ``Visit``
    repeat, ``from`` is the source's number in its image, ``from0`` that along the first axis, and
    so on, and ``tap`` the tap's number.

    ``element`` is the C type of the computation. ``values`` (indices) and ``numbers`` (of the type
    ``element``) are more constants. ``reach``: the largest index that they lead to.
    """
    width = walk.choose_width(element, *(array.ctype for array in arrays))
    strip = min(walk.results[-1], STRIP) if width > 1 else 1
    sizes = {
        "channels": walk.channels,
        "blocks": -(-walk.channels // width),
        "strip": strip,
        "strips": -(-walk.results[-1] // strip),
        "results": prod(walk.results),
        "sources": prod(walk.sources),
    }
    items = walk.images * prod(walk.results[:-1]) * sizes["strips"] * sizes["blocks"]
    most = walk.images * walk.channels * max(sizes["results"], sizes["sources"])
    index = layouts.index_dtype(items, most, reach)
    constants = {"items": items, **sizes, **_list_axes(walk), **(values or {})}
    scope = write_lanes(
        "channels",
        walk.channels,
        Lanes(width, element),
        lambda lanes: _write_strip(walk, lanes, write),
    )
    text = templates.write_program(
        f"{title} of {len(walk.windows)} axes in {width}",
        arrays,
        [
            *templates.declare_indices(*constants),
            *(f"const {element} {name}" for name, _ in numbers),
        ],
        f"{_write_position(walk, width)}\n{scope}",
        index=index,
        declarations="\n".join(
            [
                vectors.declare(width, *(array.ctype for array in arrays)) if width > 1 else "",
                _FIND if walk.back else "",
                declarations,
            ]
        ),
    )
    wrapped = (index.type(value % (1 << 8 * index.itemsize)) for value in constants.values())
    return walk.runtime.launch(
        text,
        len(arrays),
        [*wrapped, *(number for _, number in numbers)],
        items,
        heavy=prod(at.filter for at in walk.windows) > MANY_TAPS,
        group=1 if width > 1 else None,  # whose items a driver does not try to make vectors of
    )


def write_lanes(limit: str, channels: int, lanes: Lanes, write: Callable[[Lanes], str]) -> str:
    """Return the text that ``write`` returns, for the lanes from channel ``c`` on.

    If they lie beyond the last of the ``channels``, whose number in C is ``limit``, these channels
    are taken one by one.
    """
    if channels % lanes.width == 0:
        return f"  {{ {write(lanes)} }}"
    return (
        f"  if (c + {lanes.width} <= {limit}) {{ {write(lanes)} }}\n"
        f"  else for (; c < {limit}; c++) {{ {write(Lanes(1, lanes.element))} }}"
    )


def _list_axes(walk: Walk) -> dict[str, int]:
    """Return the constants of each axis.

    Source ``start + n * step`` of a result has tap ``first + n * tap_by``. Results ``hop`` apart
    have the same taps, and starts that are ``move`` apart.
    """
    values: dict[str, int] = {}
    for axis, at in enumerate(walk.windows):
        common = gcd(at.stride, at.dilation)
        back = walk.back
        values |= {
            f"extent{axis}": walk.results[axis],
            f"limit{axis}": walk.sources[axis],
            f"taps{axis}": at.filter,
            f"before{axis}": at.before,
            f"stride{axis}": at.stride,
            f"dilation{axis}": at.dilation,
            f"tap_by{axis}": at.stride // common if back else 1,
            f"step{axis}": -(at.dilation // common) if back else at.dilation,
            f"hop{axis}": at.stride if back else 1,
            f"move{axis}": 1 if back else at.stride,
        }
    return values


# The first tap that reads a pixel, of those that lie a multiple of `tap_by` apart, and the
# position at which it does, which may be negative and then wraps around.
_FIND: Final = """
INLINE index_t find_tap(index_t pixel, index_t stride, index_t dilation, index_t tap_by) {
  index_t tap = 0;
  while (tap < tap_by && tap * dilation % stride != pixel % stride) tap++;
  return tap < tap_by ? tap : (index_t)-1;
}
INLINE index_t find_position(index_t pixel, index_t stride, index_t away) {
  return pixel < away ? -((away - pixel) / stride) : (pixel - away) / stride;
}"""


def _write_position(walk: Walk, width: int) -> str:
    """Return the statements that find the strip and the channels of a work-item."""
    last = len(walk.windows) - 1
    lines = [
        "  index_t rest = get_global_id(0);",
        "  if (rest >= items) return;",
        f"  index_t c = rest % blocks * {width};",
        "  rest /= blocks;",
        "  const index_t begin = rest % strips * strip;",
        f"  const index_t end = min(begin + strip, extent{last});",
        "  rest /= strips;",
    ]
    for axis in reversed(range(last)):
        lines.append(f"  const index_t at{axis} = rest % extent{axis};")
        lines.append(f"  rest /= extent{axis};")
        lines.append(_write_start(walk, axis, f"at{axis}"))
    return "\n".join([*lines, "  const index_t image = rest;"])


def _write_start(walk: Walk, axis: int, at: str) -> str:
    """Return the statements that find the first tap and source of result ``at`` along an axis."""
    if not walk.back:
        start = f"{at} * stride{axis} - before{axis}"
        return f"  const index_t first{axis} = 0;\n  index_t start{axis} = {start};"
    of = f"{at} + before{axis}, stride{axis}"
    first = f"find_tap({of}, dilation{axis}, tap_by{axis})"
    return (
        f"  const index_t first{axis} = {first};\n"
        f"  index_t start{axis} = find_position({of}, first{axis} * dilation{axis});"
    )


def _write_strip(walk: Walk, lanes: Lanes, write: Callable[[Lanes, Visit], str]) -> str:
    """Return the statements that make the strip for some lanes."""
    last = len(walk.windows) - 1
    before = "0"
    for axis in range(last):
        before = f"({before} + at{axis}) * extent{axis + 1}"
    body = write(lanes, lambda *texts: _write_loops(last + 1, *texts))
    return f"""typedef {lanes.widen(lanes.element)} A;
  for (index_t lead = begin; lead < end && lead - begin < hop{last}; lead++) {{
{_write_start(walk, last, "lead")}
  for (index_t at{last} = lead; at{last} < end;
       at{last} += hop{last}, start{last} += move{last}) {{
  const index_t at = {before} + at{last};
  {body}
  }} }}"""


def _write_loops(axes: int, take: str, begin: str = "", end: str = "") -> str:
    """Return the loops over the sources of a result, in the order of their taps."""
    lines = []
    tap, source = "0", "0"
    for axis in range(axes):
        if axis == axes - 1:
            lines.append(f"  {begin}")
        here, there = f"tap{axis}", f"from{axis}"
        begins = f"{here} = first{axis}, {there} = start{axis}"
        moves = f"{here} += tap_by{axis}, {there} += step{axis}"
        lines.append(f"  for (index_t {begins}; {here} < taps{axis}; {moves}) {{")
        lines.append(f"  if ({there} >= limit{axis}) continue;")
        tap = f"({tap}) * taps{axis} + tap{axis}" if axis else "tap0"
        source = f"({source}) * limit{axis} + from{axis}" if axis else "from0"
    lines += [f"  const index_t tap = {tap}, from = {source};", f"  {take}", "  }", f"  {end}"]
    return "\n".join([*lines, "  }" * (axes - 1)])
