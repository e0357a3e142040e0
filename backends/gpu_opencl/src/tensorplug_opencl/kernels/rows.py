"""Preparing reductions: every output element is a walk over some elements of the input.

Long walks are cut into parts, each reduced by one work-item, and the parts' results are
reduced again by the same kernel, until one is left for each output. There is neither local
memory nor a barrier in it, so it runs well on CPUs too, and the order of the operations depends
on the shape and the device alone: results are reproducible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug import dtypes as dt
from tensorplug import shapes
from tensorplug.spec import TensorType
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, ctypes, templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dtypes import DType
    from tensorplug.shapes import Shape
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.layouts import Layout
    from tensorplug_opencl.runtime import Launch, Runtime

__all__ = ["Fold", "Walk", "parts_of", "reducer", "walk"]

SHORTEST_PART: Final = 256  # elements for which another work-item pays
LONG_WALK: Final = 32  # elements from which on a work-item counts as heavy


class Fold(NamedTuple):
    """How one work-item combines elements.

    ``state`` declares what is kept; ``step`` takes element ``v`` (of type A) into it;
    ``result`` is the expression for what the walk gives. ``block``, if there is one, takes the
    sum ``v`` of eight elements: see ``reduction.SUM_FLOAT``. ``element`` is the type A.
    """

    element: str
    state: str
    step: str
    result: str
    block: str = ""


class Walk(NamedTuple):
    """Which elements belong to which output: a layout over outputs, and one inside a walk."""

    kept: Layout
    reduced: Layout

    @property
    def outputs(self) -> int:
        """Number of output elements."""
        return shapes.size(self.kept.sizes)

    @property
    def length(self) -> int:
        """Number of elements for each output."""
        return shapes.size(self.reduced.sizes)


def walk(shape: Shape, axes: tuple[int, ...]) -> Walk:
    """Return the walk that reduces ``axes`` of a dense array of ``shape``."""
    strides = layouts.row_major(shape)
    kept = [axis for axis in range(len(shape)) if axis not in axes]

    def over(chosen: list[int]) -> Layout:
        sizes = tuple(shape[axis] for axis in chosen)
        return layouts.collapse(sizes, [tuple(strides[axis] for axis in chosen)])

    return Walk(over(kept), over(list(axes)))


def parts_of(runtime: Runtime, outputs: int, length: int) -> int:
    """Return into how many parts a walk is cut so that the device has enough to do."""
    wanted = max(1, runtime.parallel_items // max(outputs, 1))
    return max(1, min(wanted, length // SHORTEST_PART))


def source(
    title: str,
    fold: Fold,
    stored: str,
    result: str,
    ranks: tuple[int, int],
    index: templates.Index,
) -> str:
    """Return the program: ``y[output, part] = fold of x over a part of the output's walk``.

    Constants: items, parts, length, total, first, span, step (part p takes the elements
    ``p * first + k * step`` below ``p * first + span`` and below length), then the layout.
    """
    kept, reduced = ranks
    fields = [("size", kept), ("by", kept), ("inner", reduced), ("inner_by", reduced)]
    struct = templates.layout_struct(fields)
    kept_place = "kept_place(i / parts, layout)" if kept else "0"
    place = "inner_place(r, layout)" if reduced else "0"
    declarations = [f"typedef {fold.element} A;", struct]
    if kept:
        declarations.append(templates.place("kept_place", kept, "size", "by"))
    if reduced:
        declarations.append(templates.place("inner_place", reduced, "inner", "inner_by"))
    block = ""
    if fold.block:
        loads = [f"((A)x[{place.replace('r,', f'r + {k} * step,')}])" for k in range(8)]
        pairs = [f"({loads[k]} + {loads[k + 1]})" for k in range(0, 8, 2)]
        total = f"({pairs[0]} + {pairs[1]}) + ({pairs[2]} + {pairs[3]})"
        block = (
            "  for (; r + 7 * step < end; r += 8 * step) {\n"
            f"    const A v = {total};\n    {fold.block}\n  }}"
        )
    body = f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  x += {kept_place};
  index_t r = i % parts * first;
  const index_t end = min(length, r + span);
  {fold.state}
{block}
  for (; r < end; r += step) {{
    const A v = (A)x[{place}];
    {fold.step}
  }}
  y[i] = ({result})({fold.result});"""
    names = ("items", "parts", "length", "total", "first", "span", "step")
    return templates.program(
        title,
        [templates.Array("x", stored), templates.Array("y", result, written=True)],
        [
            *(f"const index_t {name}" for name in names),
            *(["const Layout layout"] if struct else []),
        ],
        body,
        index=index,
        declarations="\n".join(declarations),
    )


class Pass(NamedTuple):
    """One launch of a reduction: the dtypes it reads and writes, and into how many parts."""

    title: str
    fold: Fold
    source: DType
    target: DType
    over: Walk
    parts: int
    total: int  # the length of the walks of the whole reduction, for folds that divide by it


def one_pass(runtime: Runtime, of: Pass) -> Launch:
    """Return the launch that reduces each walk to ``of.parts`` results."""
    over, parts = of.over, of.parts
    outputs, length = over.outputs, over.length
    items = outputs * parts
    index = layouts.index_dtype(outputs * length, items, of.total)
    text = source(
        f"{of.title} {of.source} to {of.target}",
        of.fold,
        ctypes.stored(of.source),
        ctypes.stored(of.target),
        (over.kept.rank, over.reduced.rank),
        index,
    )
    each = -(-length // parts)
    # One after the other on a CPU, which has caches; interleaved on a GPU, whose neighbouring
    # work-items then read neighbouring elements.
    first, span, step = (each, each, 1) if runtime.is_cpu else (1, length, parts)
    numbers = (items, parts, length, of.total, first, span, step)
    struct = layouts.packed([over.kept, over.reduced], index)
    constants = [*map(index.type, numbers), *([] if struct is None else [struct])]
    return runtime.launch(text, 2, constants, items, heavy=length // parts > LONG_WALK)


def reducer(
    runtime: Runtime,
    title: str,
    over: Walk,
    source_dtype: DType,
    out: TensorType,
    fold: Fold,
    *,
    last: Fold | None = None,
    total: int | None = None,
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    """Return a callable that reduces a buffer along ``over`` into ``out`` (not empty).

    ``last`` is the fold of the last pass, where it differs; ``total`` is for the recursion.
    """
    whole = over.length if total is None else total
    parts = parts_of(runtime, over.outputs, over.length)
    if parts == 1:
        step = Pass(title, last or fold, source_dtype, out.dtype, over, 1, whole)
        return calls.producer(runtime, out, one_pass(runtime, step))
    between = dt.float32 if out.dtype is dt.float16 else out.dtype
    make_parts = runtime.maker(TensorType(between, (over.outputs, parts)))
    begin = one_pass(runtime, Pass(title, fold, source_dtype, between, over, parts, whole))
    rest_over = walk((over.outputs, parts), (1,))
    rest = reducer(runtime, title, rest_over, between, out, fold, last=last, total=whole)

    def run_parts(x: DeviceBuffer) -> DeviceBuffer:
        y = make_parts()
        begin(x, y)
        return rest(y)

    return run_parts
