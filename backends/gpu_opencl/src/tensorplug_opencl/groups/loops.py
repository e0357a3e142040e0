"""Groups that use the whole language of loops, by the library that schedules them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import Group, TensorType, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_loops import extents, held
from tensorplug_loops.dialects import opencl_c
from tensorplug_loops.schedule import plan
from tensorplug_opencl import pairs
from tensorplug_opencl.codegen import calls
from tensorplug_opencl.groups.element_groups import check_arguments
from tensorplug_opencl.machine.features import dtypes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_loops.schedule import Launch as Planned
    from tensorplug_loops.statements import Kernel
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime

    Run = Callable[..., list[DeviceBuffer]]

_HEAVY: Final = 512  # instructions of a work-item from which on groups are small
_LITTLE: Final = 1 << 18  # instructions that one core does
_KEPT: Final = 4096
_NUMBERS: Final = {True: np.int32, False: np.int64}  # by whether indices are narrow
_texts: Final[dict[tuple[int, bool, bool], tuple[Kernel, str]]] = {}


def compile_group(group: Group, runtime: Runtime) -> Run | None:
    """Return a function of the inputs' buffers that returns those of the outputs; None to decline.

    Raises:
        BuildError: the device's compiler refuses the program.
        KernelRefusedError: a kernel has too many arguments, or too long loops.

    """
    real = held.in_real_numbers(group)
    if real is None:
        return None
    if not _is_narrow(real) and dt.float64 not in dtypes_of(runtime.device, runtime.limits):
        return None
    size = runtime.description.group_size
    return calls.shrink_until_allowed(lambda size: _compile(group, real, runtime, size), size)


def _compile(group: Group, real: Group, runtime: Runtime, group_size: int) -> Run | None:
    """Return the function of a group, ``real`` without complex numbers, by such work-groups."""
    program = plan(real, replace(runtime.description, group_size=group_size))
    if program is None:
        return None
    makers = [runtime.prepare_empty(output.type) for output in group.outputs]
    temporaries = [
        runtime.prepare_empty(TensorType(dtype, (size,))) for dtype, size in program.temporaries
    ]
    apart = all(output.into is None for output in group.outputs)
    launches = [(_launch(runtime, each, apart=apart), each.arrays) for each in program.launches]
    inputs = range(len(group.inputs))
    into = [
        None if each.into is None or program.reads_after(each.into, at) else each.into
        for at, each in enumerate(group.outputs, len(inputs))
    ]
    given = [at for at in inputs if real.inputs[at].type.rank != group.inputs[at].type.rank]
    # Pairs count their elements otherwise.
    if not given and len(launches) == 1 and into == [None] and not temporaries:
        ((launch, arrays),) = launches
        (make,) = makers
        if arrays == tuple(range(len(group.inputs) + 1)):

            def alone(*buffers: DeviceBuffer) -> DeviceBuffer:
                result = make()
                launch(*buffers, result)
                return result

            def run_alone(*buffers: DeviceBuffer) -> list[DeviceBuffer]:
                return [alone(*buffers)]

            run_alone.alone = alone  # type: ignore[attr-defined]  # for tensorplug_loops.kernels
            return run_alone

    def run(*buffers: DeviceBuffer) -> list[DeviceBuffer]:
        results = [
            make() if at is None else buffers[at] for make, at in zip(makers, into, strict=True)
        ]
        everything = [*buffers, *results, *(make() for make in temporaries)]
        for at in given:
            everything[at] = pairs.as_pairs(everything[at])
        for launch, arrays in launches:
            launch(*[everything[at] for at in arrays])
        return results

    return run


def _is_narrow(group: Group) -> bool:
    """Return whether nothing in a group is float64."""
    types = [*(each.type for each in group.inputs), *(each.type for each in group.outputs)]
    nodes = expressions.linearize(group.expressions())
    used = {*(type_.dtype for type_ in types), *(node.dtype for node in nodes)}
    return dt.float64 not in used


def _launch(runtime: Runtime, planned: Planned, *, apart: bool) -> Launch:
    kernel, items = planned.kernel, planned.items
    runtime.check_steps(planned.steps)
    narrow = extents.fit(kernel, planned.numbers, items)
    number = _NUMBERS[narrow]
    numbers: list[Any] = [number(items)]
    for value, own in zip(planned.numbers, kernel.numbers, strict=True):
        is_index = own.dtype is dt.int64
        numbers.append(number(value) if is_index else np.int64(value).view(own.dtype.numpy))
    check_arguments(len(kernel.arrays), numbers)
    text = _write(kernel, narrow=narrow, apart=apart)
    size = kernel.group_size
    if size > 1:
        return runtime.launch(text, len(kernel.arrays), numbers, items * size, group=size)
    many = runtime.is_cpu and items >= 64 * runtime.parallel_items
    heavy = planned.cost > _HEAVY and not many and planned.cost * items > _LITTLE
    return runtime.launch(text, len(kernel.arrays), numbers, items, heavy=heavy)


def _write(kernel: Kernel, *, narrow: bool, apart: bool) -> str:
    """Return the text of a kernel, which is written once for all sizes."""
    key = id(kernel), narrow, apart
    found = _texts.get(key)
    if found is None:
        if len(_texts) >= _KEPT:
            del _texts[next(iter(_texts))]
        found = kernel, opencl_c.write(kernel, kernel.name, narrow=narrow, apart=apart)
        _texts[key] = found
    return found[1]
