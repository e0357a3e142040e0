"""Groups as kernels of LLVM: the library of loops plans and writes them, for all lengths."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.jit.codegen import processor, settings
from tensorplug_cpu.jit.codegen.compiler import CompilationError
from tensorplug_cpu.jit.groups.steps import Kernel, Memory, Step
from tensorplug_cpu.jit.groups.threads import MOST_MODULES, Module, make_launch
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from tensorplug.plugin import Group
    from tensorplug_cpu.arrays import Array
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule import Launch, Program
    from tensorplug_loops.statements import Kernel as Planned


_modules: Final[dict[int, tuple[Planned, Module]]] = {}  # by identity


def compile_group(group: Group) -> Callable[..., list[Array]] | None:
    """Return a function that computes a group through LLVM; None to decline it.

    It takes arrays positionally and returns arrays in row-major order. Groups with complex
    numbers, and without elements, are declined, and those that LLVM refuses.
    """
    program = _plan(group) if settings.least_elements() is not None else None
    if program is None:
        return None
    try:
        launches = [
            (make_launch(_module(each.kernel), _values(each), each.cost), each.arrays)
            for each in program.launches
        ]
    except CompilationError:  # by LLVM, which names no reason that a user could act on
        return None
    fresh = [
        allocator(output.type.shape, output.type.dtype.numpy)
        if output.into is None or program.reads_after(output.into, at)
        else output.into
        for at, output in enumerate(group.outputs, start=len(group.inputs))
    ]
    temporaries = [allocator((size,), dtype.numpy) for dtype, size in program.temporaries]
    count = len(group.inputs)
    ((launch, numbers), *more) = launches
    if not more and numbers == tuple(range(count + len(fresh))):
        return _single(launch, fresh)

    def run(*buffers: Array) -> list[Array]:
        arrays = list(map(np.ascontiguousarray, buffers))
        made = [arrays[new] if isinstance(new, int) else new() for new in fresh]
        arrays += [*made, *(new() for new in temporaries)]
        for launch, numbers in launches:
            launch(*[arrays[number] for number in numbers])
        return made

    return run


def _single(
    launch: Callable[..., None], fresh: list[Callable[[], Array] | int]
) -> Callable[..., list[Array]]:
    """Return the function for one kernel that reads all inputs and writes all outputs."""
    new = [each for each in fresh if not isinstance(each, int)]

    def run(*buffers: Array) -> list[Array]:
        made = [each() for each in new]
        launch(*map(np.ascontiguousarray, buffers), *made)
        return made

    def overwrite(*buffers: Array) -> list[Array]:
        arrays = list(map(np.ascontiguousarray, buffers))
        made = [arrays[each] if isinstance(each, int) else each() for each in fresh]
        launch(*arrays, *made)
        return made

    if len(new) < len(fresh):
        return overwrite
    if len(new) == 1:
        (allocate,) = new

        def alone(*buffers: Array) -> Array:
            result = allocate()
            launch(*map(np.ascontiguousarray, buffers), result)
            return result

        run.alone = alone  # type: ignore[attr-defined]  # see ``tensorplug_loops.kernels``
    return run


def kernels_of(group: Group) -> tuple[list[Step], range] | None:
    """Return the kernels of a group, in order, and the numbers of its outputs; None to decline.

    Arrays are numbered: the inputs, the outputs, then those that kernels read from one another.
    """
    program = _plan(group)
    if program is None:
        return None
    outputs = range(len(group.inputs), len(group.inputs) + len(group.outputs))
    memory = [
        *(Memory(output.type.shape, output.type.dtype.numpy) for output in group.outputs),
        *(Memory((size,), dtype.numpy) for dtype, size in program.temporaries),
    ]
    steps = []
    for each in program.launches:
        module = _module(each.kernel)
        written = sum(array.written for array in each.kernel.arrays)
        split = len(each.arrays) - written
        writes = each.arrays[split:]
        launch = Kernel(module.text, module.slots, _values(each), each.cost)
        allocate = [memory[number - len(group.inputs)] for number in writes]
        steps.append(Step(launch, each.arrays[:split], writes, allocate))
    return steps, outputs


def _plan(group: Group) -> Program | None:
    from tensorplug_loops.schedule import plan  # at the first group, not with the backend
    from tensorplug_loops.templates import sized

    machine = _machine()
    return sized(group).plan(lambda group: plan(group, machine)) if all(group.shape) else None


@cache
def _machine() -> Machine:
    from tensorplug_loops.machine import Machine

    return Machine(
        vector_bytes=processor.vector_bytes(),
        masked=True,
        registers=processor.registers(),
        narrow=frozenset({"float16"}),
    )


def _module(kernel: Planned) -> Module:
    """Return the module of a kernel, which is written once for all lengths."""
    found = _modules.get(id(kernel))
    if found is None:
        from tensorplug_loops.dialects import llvm

        slots: list[Hashable] = ["counter", "total", "grain"]
        slots += [("pointer", at) for at in range(len(kernel.arrays))]
        slots += [number.name for number in kernel.numbers]
        if len(_modules) >= MOST_MODULES:
            del _modules[next(iter(_modules))]
        found = kernel, Module(llvm.write(kernel, processor.attributes()), slots)
        _modules[id(kernel)] = found
    return found[1]


def _values(launch: Launch) -> Mapping[Hashable, Any]:
    names = [number.name for number in launch.kernel.numbers]
    return {"total": launch.items, **dict(zip(names, launch.numbers, strict=True))}
