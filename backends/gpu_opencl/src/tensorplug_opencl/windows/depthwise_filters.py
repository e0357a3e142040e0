"""The gradient of a depthwise convolution's filter: products of x and dy, added over positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import TensorType
from tensorplug_opencl.codegen import ctypes, folds, layouts, templates, vectors
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.products import slices
from tensorplug_opencl.windows import direct, strips
from tensorplug_opencl.windows.strips import Lanes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch
    from tensorplug_opencl.windows.depthwise_walks import Depthwise


BLOCK: Final = 64  # products that are added one after the other
PART: Final = {True: 512, False: 64}  # positions that a work-item takes, by whether on a CPU


def prepare(depthwise: Depthwise) -> Callable[..., DeviceBuffer]:
    """Return a function of x and dy that returns the gradient."""
    runtime, dtype = depthwise.runtime, depthwise.dtype
    down, across = depthwise.windows
    rows = max(1, PART[runtime.is_cpu] // across.out)
    parts = -(-depthwise.x[0] * down.out // rows)
    made = TensorType(slices.choose_dtype(dtype), (parts, *depthwise.filter))
    launch = _launch_sums(depthwise, parts, rows)
    return slices.add_parts(runtime, made, TensorType(dtype, depthwise.filter), launch)


# For each tap of a run and each lane: the sum of products over some rows of y. Blocks are added in
# four chains each, and to one another with compensation.
_SUM: Final = """typedef {A} A;
  for (index_t tap = first_tap; tap < last_tap; tap++) {
    const index_t tap0 = tap / taps1, shift = tap % taps1 * dilation1;
    const index_t low = shift < before1 ? (before1 - shift + stride1 - 1) / stride1 : 0;
    const index_t room = size1 + before1 > shift ? size1 + before1 - shift : 0;
    const index_t high = min(out1, (room + stride1 - 1) / stride1);
    {state}
    for (index_t row = first_row; row < last_row; row++) {
      const index_t image = row / out0, at0 = row % out0;
      const index_t from0 = at0 * stride0 + tap0 * dilation0 - before0;
      if (from0 >= size0) continue;
      global const S *of = x + image * x0_by + from0 * x1_by;
      global const S *dy = w + image * y0_by + at0 * y1_by + c * y3_by;
      for (index_t begin = low; begin < high; begin += {block}) {
        const index_t end = min(begin + {block}, high);
        A some0 = 0, some1 = 0, some2 = 0, some3 = 0;
        index_t at = begin;
        for (; at + 4 <= end; at += 4) {
          {takes}
        }
        for (; at < end; at++) {
          {take}
        }
        const A v = (some0 + some1) + (some2 + some3);
        {step}
      }
    }
    {store}
  }"""


def _write_sum(depthwise: Depthwise, lanes: Lanes) -> str:
    """Return the statements that add up the gradient of the filter for some lanes."""
    stored, computed = ctypes.stored(depthwise.dtype), ctypes.computed(depthwise.dtype)
    fold = folds.sum_fold(depthwise.dtype)

    def take(n: int) -> str:
        column = f"((at + {n}) * stride1 + shift - before1) * x2_by"
        if depthwise.multiplier == 1:
            x = lanes.load(stored, f"of + {column} + c * x3_by")
        else:
            x = lanes.gather(f"of[{column} + {{c}} / multiplier * x3_by]")
        return f"some{n} += {x} * {lanes.load(stored, f'dy + (at + {n}) * y2_by')};"

    values = {
        "A": lanes.widen(lanes.element),
        "block": str(BLOCK),
        "state": fold.state,
        "takes": " ".join(map(take, range(4))),
        "take": take(0),
        "step": fold.step,
        "store": lanes.store(
            computed, "y + (part * taps0 * taps1 + tap) * outputs + c", fold.result
        ),
    }
    text = _SUM
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", value)
    return text


def _launch_sums(depthwise: Depthwise, parts: int, rows: int) -> Launch:
    """Return the launch (x, dy, sums) that adds up products over ``rows`` rows of y in each part.

    A work-item takes a run of taps: on a CPU a row of the filter, which reads the same rows.
    """
    walk = depthwise.walk(back=False)
    runtime, stored = depthwise.runtime, ctypes.stored(depthwise.dtype)
    computed = ctypes.computed(depthwise.dtype)
    width = walk.choose_width(stored, computed)
    down, across = depthwise.windows
    run = across.filter if runtime.is_cpu else 1
    values = {"blocks": -(-depthwise.outputs // width), "run": run}
    values |= {"runs": down.filter * across.filter // run, "rows": rows}
    items = parts * values["blocks"] * values["runs"]
    values |= {"all_rows": depthwise.x[0] * down.out, "outputs": depthwise.outputs}
    values |= {"multiplier": depthwise.multiplier}
    values |= direct.list_axes(depthwise.windows)
    for name, shape in (("x", depthwise.x), ("y", depthwise.y)):
        along = layouts.permuted_strides(shape, depthwise.order)
        values |= {f"{name}{axis}_by": step for axis, step in enumerate(along)}
    body = [
        "  index_t rest = get_global_id(0);",
        "  if (rest >= items) return;",
        f"  index_t c = rest % blocks * {width};",
        "  rest /= blocks;",
        "  const index_t first_tap = rest % runs * run, last_tap = first_tap + run;",
        "  const index_t part = rest / runs, first_row = part * rows;",
        "  const index_t last_row = min(first_row + rows, all_rows);",
        strips.write_lanes(
            "outputs",
            depthwise.outputs,
            Lanes(width, computed),
            lambda lanes: _write_sum(depthwise, lanes),
        ),
    ]
    loose = vectors.declare(width, stored, computed) if width > 1 else ""
    index = layouts.index_dtype(items, depthwise.reach)
    text = templates.write_program(
        f"depthwise convolution gradient of filter {depthwise.dtype} in {width}",
        [Array("x", stored), Array("w", stored), Array("y", computed, written=True)],
        templates.declare_indices("items", *values),
        "\n".join(body),
        index=index,
        declarations=f"typedef {stored} S;\n{loose}",
    )
    return runtime.launch(
        text,
        3,
        [*map(index.type, (items, *values.values()))],
        items,
        group=1 if width > 1 else None,
    )
