"""Sums of what a kernel has computed in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import (
    Group,
    GroupInput,
    GroupOutput,
    KernelRefusedError,
    Reduction,
    TensorType,
    expressions,
)
from tensorplug_loops.templates import sized
from tensorplug_opencl.groups import loops

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Runtime


def make_adder(
    runtime: Runtime, title: str, parts: TensorType, out: TensorType
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    """Return a callable that adds up ``parts``, of [number, *out.shape], into ``out``."""
    size = out.size
    shape, kept = (parts.size // size, size), (False, True)
    total = expressions.cast(expressions.parameter(1, parts.dtype), out.dtype)
    group = Group(
        title,
        shape,
        (GroupInput(TensorType(parts.dtype, shape), (True, True)),),
        (Reduction("sum", expressions.parameter(0, parts.dtype), (True, False)),),
        (GroupOutput(total, TensorType(out.dtype, (size,)), kept),),
    )
    add = loops.compile_group(sized(group), runtime)
    if add is None:
        raise KernelRefusedError(f"sums of {parts.dtype} are declined")

    def run(x: DeviceBuffer) -> DeviceBuffer:
        (result,) = add(x)
        return result.reinterpret(out.dtype, out.shape)

    return run
