"""Groups as kernels of LLVM: the library of loops plans and writes them, for all lengths."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.jit.codegen import processor, settings
from tensorplug_cpu.jit.codegen.compiler import CompilationError
from tensorplug_cpu.jit.groups.steps import Kernel, Memory, Step
from tensorplug_cpu.jit.groups.threads import MOST_MODULES, Module, make_launch
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from tensorplug.plugin import Group, TensorType
    from tensorplug_cpu.arrays import Array
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule import Launch, Program
    from tensorplug_loops.statements import Kernel as Planned
    from tensorplug_loops.templates import Sized

    # How many inputs there are; of each output the type, and the input whose memory it takes.
    _Ends = tuple[int, list[tuple[TensorType, int | None]]]


_modules: Final[dict[int, tuple[Planned, Module]]] = {}  # by identity


def compile_group(group: Group) -> Callable[..., list[Array]] | None:
    """Return a function that computes a group through LLVM; None to decline it.

    It takes arrays positionally and returns arrays in row-major order. Groups with complex
    numbers, and without elements, are declined, and those that LLVM refuses.
    """
    program = _plan(group) if settings.least_elements() is not None else None
    return None if program is None else _compile(program, _ends(group))


def compile_query(q: TensorType, v: TensorType, scale: float) -> Callable[..., list[Array]] | None:
    """Return attention of one query (``tensorplug_loops.schedule.attention``); None to decline."""
    from tensorplug_loops.schedule.attention import plan_query

    *_, machine = _planner()
    program = plan_query(q, v, scale, machine)
    if program is None:
        return None
    return _compile(program, (4, [(type_, None) for type_ in program.outputs]))


def compile_form(form: Sized, least: int) -> Callable[..., list[Array]] | None:
    """Return a function that computes the group of a form, as ``compile_group`` does.

    It is planned by what is known of other sizes. Groups of fewer than ``least`` elements are
    declined, too.
    """
    _, plan, machine = _planner()

    def decide(group: Group) -> tuple[int, Program | None, _Ends]:
        empty = not any(output.type.size for output in group.outputs)
        program = plan(group, machine) if all(group.shape) and not empty else None
        return prod(group.shape), program, _ends(group)

    size, program, ends = form.plan(decide, "llvm")
    if size < least:
        return None
    if program is not None:
        return _compile(program, ends)
    _, outputs = ends
    if any(type_.size for type_, _ in outputs):
        return None
    return lambda *_arrays: [np.empty(type_.shape, type_.dtype.numpy) for type_, _ in outputs]


def _ends(group: Group) -> _Ends:
    return len(group.inputs), [(output.type, output.into) for output in group.outputs]


def _compile(program: Program, ends: _Ends) -> Callable[..., list[Array]] | None:
    count, outputs = ends
    try:
        launches = [
            (make_launch(_module(each.kernel), _values(each), each.cost), each.arrays)
            for each in program.launches
        ]
    except CompilationError:  # by LLVM, which names no reason that a user could act on
        return None
    fresh = [
        allocator(type_.shape, type_.dtype.numpy)
        if into is None or program.reads_after(into, at)
        else into
        for at, (type_, into) in enumerate(outputs, start=count)
    ]
    temporaries = [allocator((size,), dtype.numpy) for dtype, size in program.temporaries]
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
    if not all(group.shape):
        return None
    sized, plan, machine = _planner()
    return sized(group).plan(lambda group: plan(group, machine))


@cache
def _planner() -> tuple[
    Callable[[Group], Sized], Callable[[Group, Machine], Program | None], Machine
]:
    """Return the library's functions, imported at the first group, not with the backend."""
    from tensorplug_loops.schedule import plan
    from tensorplug_loops.templates import sized

    return sized, plan, _describe()


def _describe() -> Machine:
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
