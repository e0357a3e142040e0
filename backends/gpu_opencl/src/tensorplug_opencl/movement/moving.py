"""Strided copies as groups, for every family that moves elements without computing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tensorplug.plugin import (
    Group,
    GroupOutput,
    KernelRefusedError,
    TensorType,
    dtypes,
    expressions,
    groups,
)
from tensorplug_loops.templates import Sized
from tensorplug_opencl.codegen import calls, layouts
from tensorplug_opencl.groups import loops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import DType, Expression, Shape
    from tensorplug_opencl.codegen.calls import Call, Write
    from tensorplug_opencl.codegen.layouts import Strides
    from tensorplug_opencl.runtime import Runtime


def make_mover(
    runtime: Runtime,
    dtype: DType,
    shape: Shape,
    source: Strides,
    target: Strides,
    reach: int,
    *,
    starts: tuple[int, int] = (0, 0),
) -> Write:
    """Return the copy of ``shape`` (not empty) from strides ``source`` to strides ``target``.

    ``reach``: the number of elements in the larger of the two arrays. ``starts``: the first
    element in either.

    Raises:
        KernelRefusedError: there are too many axes for a kernel.

    """
    order = sorted(range(len(shape)), key=target.__getitem__, reverse=True)
    sizes = [each[axis] for each in (shape, source, target) for axis in order]
    make = partial(_copy, dtype, len(shape))
    group = Sized((_copy, dtype, len(shape)), [*sizes, *starts, reach], make)
    write = loops.compile_writer(group, runtime)
    if write is None:
        raise KernelRefusedError(f"copies of {dtype} are declined")
    return write


def make_reader(
    runtime: Runtime, x: TensorType, shape: Shape, strides: Strides, out: TensorType
) -> Call:
    """Return a callable that reads x with ``strides``, in ``out``'s order.

    ``strides`` are along the axes of ``shape``, which has as many elements as ``out``. The result
    shares the memory if they walk it one element after the other.
    """
    final = out.shape
    if not out.size:
        return calls.make_empty(runtime, out)
    target = layouts.row_major(shape)
    if layouts.collapse(shape, [strides, target]).strides[0] in {(), (1,)}:
        return lambda x: x.view(final)
    copy = make_mover(runtime, x.dtype, shape, strides, target, max(x.size, out.size))
    return calls.make_producer(runtime, out, copy)


def _copy(dtype: DType, rank: int, sizes: Sequence[int]) -> Group:
    """Return the copy of a shape; ``sizes``: it, the strides, the starts, and the reach."""
    shape, source, target = (tuple(sizes[at : at + rank]) for at in (0, rank, 2 * rank))
    *starts, reach = sizes[3 * rank :]
    type_, x = TensorType(dtype, (reach,)), expressions.parameter(0, dtype)
    read, written = (_place(*each) for each in zip(starts, (source, target), strict=True))
    output = GroupOutput(x, type_, (True,) * rank, index=(written,))
    return Group(f"move {dtype}", shape, (groups.mapped(type_, [read], shape),), (), (output,))


def _place(start: int, strides: Strides) -> Expression:
    place = expressions.constant(start, dtypes.int64)
    for axis, step in enumerate(strides):
        place = place + groups.axis(axis) * step
    return place
