"""How windows over images find their places, and the gather from patches back to images.

The patches of a convolution are a matrix with one row for each output position and one column
for each (tap along every axis, in channel).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, ctypes, templates

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Windows
    from tensorplug_opencl.layouts import Strides
    from tensorplug_opencl.runtime import Launch, Runtime

__all__ = [
    "Images",
    "choose_run",
    "launch_fold",
    "list_geometry",
    "write_input_place",
    "write_output_loops",
    "write_split",
]

RUN: Final = 16  # channels of a work-item on CPUs, which share the computation of their place


class Images(NamedTuple):
    """Images: how many, the windows over them, channels, and their distances.

    ``strides`` are in elements, of (image, each spatial axis, channel), for every data format.
    """

    number: int
    windows: Windows
    channels: int
    strides: Strides

    @property
    def positions(self) -> int:
        """Output positions in one image."""
        return prod(window.out for window in self.windows)

    @property
    def places(self) -> int:
        """Places of a filter."""
        return prod(window.filter for window in self.windows)

    @property
    def taps(self) -> int:
        """Elements of one patch."""
        return self.places * self.channels

    @property
    def pixels(self) -> int:
        """Elements of one image without its channels."""
        return prod(window.size for window in self.windows)


def choose_run(runtime: Runtime) -> int:
    """Return how many channels a work-item takes: one if neighbours read neighbours."""
    return RUN if runtime.is_cpu else 1


def list_geometry(images: Images) -> dict[str, int]:
    """Return the constants by which programs find their places."""
    values: dict[str, int] = {"channels": images.channels}
    for axis, window in enumerate(images.windows):
        values |= {
            f"size{axis}": window.size,
            f"taps{axis}": window.filter,
            f"stride{axis}": window.stride,
            f"dilation{axis}": window.dilation,
            f"before{axis}": window.before,
            f"out{axis}": window.out,
            f"axis{axis}_by": images.strides[axis + 1],
        }
    values |= {"image_by": images.strides[0], "channel_by": images.strides[-1]}
    return values


def write_split(images: Images, prefix: str, sizes: str) -> list[str]:
    """Return statements that split ``rest`` into ``prefix`` of each axis, the last one first."""
    lines = []
    for axis in reversed(range(len(images.windows))):
        lines.append(f"  const index_t {prefix}{axis} = rest % {sizes}{axis};")
        lines.append(f"  rest /= {sizes}{axis};")
    return lines


def write_input_place(images: Images) -> tuple[str, str]:
    """Return (condition, place): whether tap{n} at position{n} lies inside, and where.

    Both count from the padding on: a place before the image wraps around, and so is too large.
    """
    inside, place = [], []
    for axis in range(len(images.windows)):
        at = f"(position{axis} * stride{axis} + tap{axis} * dilation{axis} - before{axis})"
        inside.append(f"{at} < size{axis}")
        place.append(f"{at} * axis{axis}_by")
    return " && ".join(inside), " + ".join(place)


def write_output_loops(images: Images, innermost: str, position: str) -> list[str]:
    """Return loops over the taps and positions whose windows contain pixel{n}.

    ``innermost`` is done with ``tap`` (the number of the place) and ``position`` (of the
    number ``position`` names).
    """
    lines: list[str] = []
    rank = len(images.windows)
    for axis in range(rank):
        lines += [
            f"  for (index_t tap{axis} = 0; tap{axis} < taps{axis}; tap{axis}++) {{",
            f"  if (pixel{axis} + before{axis} < tap{axis} * dilation{axis}) break;",
            f"  const index_t start{axis} = tap{axis} * dilation{axis};",
            f"  const index_t off{axis} = pixel{axis} + before{axis} - start{axis};",
            f"  if (off{axis} % stride{axis} || off{axis} / stride{axis} >= out{axis}) continue;",
        ]
    tap, place = "tap0", f"({position}) * out0 + off0 / stride0"
    for axis in range(1, rank):
        tap = f"({tap}) * taps{axis} + tap{axis}"
        place = f"({place}) * out{axis} + off{axis} / stride{axis}"
    lines += [f"  const index_t tap = {tap};", f"  const index_t position = {place};"]
    return [*lines, innermost, "  }" * rank]


def launch_fold(runtime: Runtime, dtype: DType, images: Images) -> Launch:
    """Return the launch (patches, images) that sums, for each pixel, its values in all patches.

    It is a gather: each pixel finds its position for every tap. The result is deterministic.
    """
    run = choose_run(runtime)
    items = images.number * images.pixels * -(-images.channels // run)
    ctype, computed = ctypes.stored(dtype), ctypes.computed(dtype)
    places = " * ".join(f"taps{axis}" for axis in range(len(images.windows)))
    body = "\n".join(
        [
            f"  const index_t first = i % runs * {run};",
            f"  const index_t count = min((index_t){run}, channels - first);",
            "  index_t rest = i / runs;",
            *write_split(images, "pixel", "size"),
            f"  {computed} sum[{run}];",
            f"  for (int c = 0; c < {run}; c++) sum[c] = 0;",
            *write_output_loops(
                images,
                f"  global const {ctype} *from = x + (position * ({places}) + tap) * channels"
                " + first;\n"
                f"  for (index_t c = 0; c < count; c++) sum[c] += ({computed})from[c];",
                "rest",
            ),
            "  y += rest * image_by + first * channel_by;",
            *(f"  y += pixel{axis} * axis{axis}_by;" for axis in range(len(images.windows))),
            f"  for (index_t c = 0; c < count; c++) y[c * channel_by] = ({ctype})sum[c];",
        ]
    )
    index = layouts.index_dtype(items, images.number * images.positions * images.taps)
    return calls.launch_sized(
        runtime,
        f"fold patches {len(images.windows)} {dtype}",
        [templates.Array("x", ctype), templates.Array("y", ctype, written=True)],
        {"items": items, "runs": -(-images.channels // run), **list_geometry(images)},
        body,
        index=index,
    )
