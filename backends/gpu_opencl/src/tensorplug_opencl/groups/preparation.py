"""Groups of a program's calls without reductions as kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Group, KernelRefusedError
from tensorplug_opencl.groups import element_groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Runtime

    Run = Callable[..., list[DeviceBuffer]]


def compile_group(group: Group, runtime: Runtime) -> Run | None:
    """Return a function of the inputs' buffers that returns those of the outputs; None to decline.

    Raises:
        BuildError: the device's compiler refuses the program.

    """
    makers = [runtime.prepare_empty(output.type) for output in group.outputs]
    if not any(output.type.size for output in group.outputs):
        return lambda *_inputs: [make() for make in makers]
    try:
        launch = _prepare(group, runtime)
    except KernelRefusedError:  # complex numbers, too many arguments
        return None

    def run(*inputs: DeviceBuffer) -> list[DeviceBuffer]:
        results = [make() for make in makers]
        launch(*inputs, *results)
        return results

    def overwrite(*inputs: DeviceBuffer) -> list[DeviceBuffer]:
        results = [
            make() if at is None else inputs[at] for make, at in zip(makers, into, strict=True)
        ]
        launch(*inputs, *results)
        return results

    into = [output.into for output in group.outputs]
    return run if into.count(None) == len(into) else overwrite


def _prepare(group: Group, runtime: Runtime) -> Callable[..., None]:
    """Return the launch of a group that has elements, of its inputs and then its outputs."""
    if not all(all(output.spans) for output in group.outputs):
        raise KernelRefusedError("an output does not span all axes")
    return element_groups.prepare(group, runtime)
