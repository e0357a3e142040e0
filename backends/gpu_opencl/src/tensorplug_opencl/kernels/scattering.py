"""Adding at indices, where duplicates add up; the form adds in one work-item.

Floats are added in double precision: by the form on CPUs, where an atomic exchange takes as long
as thirty additions, on others by atomic operations, in the order that the hardware chooses: the
result may differ in its last bit from run to run. If the user rules that out, if the device
cannot do it, and for float64, the updates are sorted by their targets, and each run of equal
targets is added in the order of the input.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.algorithms import scatter_depth
from tensorplug.plugin import (
    DType,
    KernelRefusedError,
    SettingsError,
    Shape,
    TensorType,
    expressions,
    shapes,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.indexing import writing
from tensorplug_loops.forms.table import Operand
from tensorplug_loops.templates import sized
from tensorplug_opencl.codegen import calls, ctypes, folds, layouts, positions
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.groups import loops
from tensorplug_opencl.machine.limits import STEPS
from tensorplug_opencl.ordering import merging

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_opencl.codegen.calls import Constant, Write
    from tensorplug_opencl.codegen.templates import Index
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch, Runtime

kernels = calls.Kernels()

SETTING: Final = "TENSORPLUG_OPENCL_DETERMINISTIC"
MOST_UPDATES: Final = 2**31 - 1  # they are numbered by ints


class Targets(NamedTuple):
    """The rows that updates go to: ``number`` indices name rows of the ``named`` axes.

    ``inner``: the elements of a row.
    """

    indices: TensorType
    named: Shape
    number: int
    inner: int

    @classmethod
    def of(cls, indices: TensorType, updates: TensorType, shape: Shape) -> Targets:
        """Return the targets of a scatter of ``updates`` (not empty) into ``shape``."""
        depth = scatter_depth(indices.shape, updates.shape, shape)
        inner = shapes.size(shape[depth:])
        return cls(indices, shape[:depth], check_number(updates.size // inner), inner)

    @property
    def rows(self) -> int:
        """The number of rows to write to."""
        return shapes.size(self.named)

    @property
    def function(self) -> str:
        """The C function that finds an update's row."""
        return positions.define_position_of(self.indices.dtype, len(self.named))

    @property
    def lengths(self) -> Constant:
        """The constant that the function takes."""
        return positions.pack_lengths(self.named)

    @property
    def array(self) -> Array:
        """The parameter that holds the indices."""
        return Array("indices", ctypes.stored(self.indices.dtype))

    def row(self, which: str) -> str:
        """Return the C expression for the row of an update, -1 for out of range."""
        return f"position_of(indices + {which} * {len(self.named)}, lengths)"

    def launch_by_element(
        self,
        runtime: Runtime,
        title: str,
        updates: TensorType,
        arrays: Sequence[Array],
        statements: str,
        *,
        index: Index,
        declarations: str,
    ) -> Launch:
        """Return the launch (indices, updates, arrays) of a work-item for each element i.

        ``statements`` have the ``row`` that it goes to, in range, and the number of that
        ``element``.
        """
        return calls.launch_sized(
            runtime,
            title,
            [self.array, Array("updates", ctypes.stored(updates.dtype)), *arrays],
            {"items": updates.size, "inner": self.inner},
            f"""  const index_t update = {"i" if self.inner == 1 else "i / inner"};
  const long row = {self.row("update")};
  if (row >= 0) {{
    const index_t element = (index_t)row * inner + i - update * inner;
{statements}
  }}""",
            index=index,
            declarations=f"{declarations}\n{self.function}",
            constants=[self.lengths],
        )


def check_number(count: int) -> int:
    """Return ``count`` if it can number updates.

    Raises:
        KernelRefusedError: so many updates cannot be numbered.

    """
    if count > MOST_UPDATES:
        raise KernelRefusedError(f"{count} updates are too many to be numbered by 32 bits")
    return count


class _Way(NamedTuple):
    """How runs are added up: C expressions.

    ``inside``: whether an update may go on a run; ``end`` of the run of ``first``, at most;
    ``following``: the one added after that ``at``, whose ``number`` it is; ``target`` of the sum.
    """

    what: str = "runs"
    inside: str = "first > 0"
    end: str = "count"
    following: str = "at + 1"
    number: str = "(index_t)order[at]"
    target: str = "(index_t)row * inner + element"


_END: Final = f"({{}} / {STEPS} + 1) * {STEPS}"  # of a piece
_PIECES: Final = _Way(
    "pieces",
    inside=f"first % {STEPS} > 0",
    end=f"min(count, {_END.format('first')})",
    target="i",
)
_JOINED: Final = _Way("pieces of runs", following=_END.format("at"), number="at")


@kernels.write(specs.SCATTER_ND)
def scatter_nd(
    indices: TensorType,
    updates: TensorType,
    *,
    shape: Shape,
    backend: OpenedDevice,
    out: TensorType,
) -> Write:
    """Add updates at their indices. Negative ones count from the end.

    Updates out of range are dropped.
    """
    if not updates.size:
        return calls.fill_with(backend.runtime, out.dtype)
    targets = Targets.of(indices, updates, shape)
    kept = None if is_deterministic() else _choose_accumulator(backend, out.dtype)
    if kept is None:
        return _add_in_order(backend, targets, updates, out)
    runtime = backend.runtime
    finishes = runtime.limits.long_loops or targets.number <= STEPS
    if kept is dt.float64 and runtime.is_cpu and finishes:
        return _add_by_form(runtime, targets, updates, out)
    return _add_by_atomics(runtime, targets, updates, out, kept)


def is_deterministic() -> bool:
    """Return whether sums must be the same every time (``TENSORPLUG_OPENCL_DETERMINISTIC=1``).

    Raises:
        SettingsError: when the variable has a value other than 0 or 1.

    """
    value = os.environ.get(SETTING, "").strip()
    if value not in ("", "0", "1"):
        raise SettingsError(f"{SETTING} must be 0 or 1, got {value!r}")
    return value == "1"


def _choose_accumulator(backend: OpenedDevice, dtype: DType) -> DType | None:
    """Return the dtype in which atomics add up ``dtype``; None if they cannot.

    Integers wrap, so that any order gives the same. Sums of float64 in any order would exceed the
    documented error.
    """
    wide = backend.runtime.has_atomics64
    if dtype in dt.INTEGER:
        if dtype.itemsize < 8:
            return dt.uint32
        return dt.uint64 if wide else None
    if dtype in (dt.float16, dt.float32) and wide and dt.float64 in backend.dtypes:
        return dt.float64
    return None


_ATOMICS: Final = {
    dt.uint32: ("", "atomic_add(target, v);"),
    dt.uint64: (
        "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable",
        "atom_add(target, v);",
    ),
    # There is no atomic addition of doubles: a sum replaces its old value if that is still there.
    dt.float64: (
        "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable",
        """ulong old = 0, known;  // the first exchange reads it
    do {
      known = old;
      old = atom_cmpxchg((volatile global ulong *)target, known, as_ulong(as_double(known) + v));
    } while (old != known);""",
    ),
}


def _add_by_atomics(
    runtime: Runtime, targets: Targets, updates: TensorType, out: TensorType, kept: DType
) -> Write:
    zero = calls.make_element(0, kept)
    add = _launch_atomic_add(runtime, targets, updates, out, kept)
    if kept.itemsize == out.dtype.itemsize:

        def write(indices: DeviceBuffer, updates: DeviceBuffer, result: DeviceBuffer) -> None:
            runtime.fill(result, zero)
            add(indices, updates, result)

        return write

    make_sums = runtime.prepare_empty(TensorType(kept, out.shape))
    narrow = _launch_narrow(runtime, kept, out)

    def write_narrow(indices: DeviceBuffer, updates: DeviceBuffer, result: DeviceBuffer) -> None:
        sums = make_sums()
        runtime.fill(sums, zero)
        add(indices, updates, sums)
        narrow(sums, result)

    return write_narrow


def _add_by_form(
    runtime: Runtime, targets: Targets, updates: TensorType, out: TensorType
) -> Write:
    sums = TensorType(dt.float64, out.shape)
    form = writing.scatter_nd(Operand(targets.indices, 0), Operand(updates, 1), out=sums)
    (output,) = form.group.outputs
    wide = replace(output, expression=expressions.cast(output.expression, sums.dtype))
    group = replace(form.group, name=f"add {updates.dtype} in order", outputs=(wide,))
    add = loops.compile_group(sized(group), runtime)
    if add is None:
        raise KernelRefusedError(f"sums in {sums.dtype} are declined")
    sources = [each for each in form.sources if isinstance(each, int)]
    narrow = _launch_narrow(runtime, sums.dtype, out)
    return lambda *buffers: narrow(*add(*[buffers[at] for at in sources]), buffers[-1])


def _launch_atomic_add(
    runtime: Runtime, targets: Targets, updates: TensorType, out: TensorType, kept: DType
) -> Launch:
    pragma, add = _ATOMICS[kept]
    ctype = ctypes.stored(kept)
    return targets.launch_by_element(
        runtime,
        f"add {updates.dtype} by {targets.indices.dtype}",
        updates,
        [Array("y", ctype, written=True)],
        f"""    volatile global {ctype} *target = y + element;
    const {ctype} v = ({ctype})updates[i];
    {add}""",
        index=layouts.index_dtype(updates.size, out.size, targets.indices.size),
        declarations=pragma,
    )


def _launch_narrow(runtime: Runtime, kept: DType, out: TensorType) -> Launch:
    stored = ctypes.stored(out.dtype)
    return calls.launch_sized(
        runtime,
        f"narrow {kept} to {out.dtype}",
        [Array("x", ctypes.stored(kept)), Array("y", stored, written=True)],
        {"items": out.size},
        f"  y[i] = ({stored})x[i];",
        index=layouts.index_dtype(out.size),
    )


def _add_in_order(
    backend: OpenedDevice, targets: Targets, updates: TensorType, out: TensorType
) -> Write:
    """Sort the updates' rows, and add up each run of equal ones in one work-item."""
    runtime, count = backend.runtime, targets.number
    zero = calls.make_element(0, out.dtype)
    make_rows = runtime.prepare_empty(TensorType(dt.int64, (count,)))
    find = _launch_find_rows(runtime, targets)
    sort = merging.make_sorter(runtime, dt.int64, 1, count, descending=False)
    whole = runtime.limits.long_loops or count <= STEPS
    add = (
        _launch_add_runs(runtime, updates, count, out, _Way())
        if whole
        else _launch_add_pieces(runtime, updates, count, out)
    )

    def write(indices: DeviceBuffer, updates: DeviceBuffer, result: DeviceBuffer) -> None:
        rows = make_rows()
        runtime.fill(result, zero)
        find(indices, rows)
        add(updates, rows, sort(rows), result)

    return write


def _launch_find_rows(runtime: Runtime, targets: Targets) -> Launch:
    """Return the launch giving each update's row of the output; -1 for out of range."""
    return calls.launch_sized(
        runtime,
        f"find rows by {targets.indices.dtype}",
        [targets.array, Array("rows", "long", written=True)],
        {"items": targets.number},
        f"  rows[i] = {targets.row('i')};",
        index=layouts.index_dtype(targets.indices.size, targets.number),
        declarations=targets.function,
        constants=[targets.lengths],
    )


def _launch_add_runs(
    runtime: Runtime, updates: TensorType, count: int, out: TensorType, way: _Way
) -> Launch:
    """Return the launch that adds up each run of equal rows in sorted order."""
    inner = updates.size // count
    fold, stored = folds.sum_fold(out.dtype), ctypes.stored(out.dtype)
    return calls.launch_sized(
        runtime,
        f"add {way.what} of {out.dtype}",
        [
            Array("updates", ctypes.stored(updates.dtype)),
            Array("rows", "long"),
            Array("order", "int"),
            Array("y", stored, written=True),
        ],
        {"items": updates.size, "count": count, "inner": inner},
        f"""  const index_t first = i / inner, element = i % inner;
  const long row = rows[order[first]];
  if (row < 0 || ({way.inside} && rows[order[first - 1]] == row)) return;
  {fold.state}
  for (index_t at = first; at < {way.end} && rows[order[at]] == row; at = {way.following}) {{
    const A v = (A)updates[{way.number} * inner + element];
    {fold.step}
  }}
  y[{way.target}] = ({stored})({fold.result});""",
        index=layouts.index_dtype(updates.size, out.size),
        declarations=f"typedef {ctypes.ring(out.dtype)} A;",
    )


def _launch_add_pieces(
    runtime: Runtime, updates: TensorType, count: int, out: TensorType
) -> Callable[..., None]:
    """Return the same for a driver that does not finish long loops: runs are added in pieces.

    Raises:
        KernelRefusedError: there are too many pieces, too.

    """
    runtime.check_steps(-(-count // STEPS))
    parts = TensorType(out.dtype.compute, updates.shape)
    make_parts = runtime.prepare_empty(parts)
    add = _launch_add_runs(runtime, updates, count, parts, _PIECES)
    join = _launch_add_runs(runtime, parts, count, out, _JOINED)

    def run(
        updates: DeviceBuffer, rows: DeviceBuffer, order: DeviceBuffer, result: DeviceBuffer
    ) -> None:
        sums = make_parts()
        add(updates, rows, order, sums)
        join(sums, rows, order, result)

    return run
