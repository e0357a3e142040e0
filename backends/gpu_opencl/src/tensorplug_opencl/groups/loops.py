"""Groups as kernels, by the library that schedules loops and writes them in the dialect."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

from tensorplug.plugin import KernelRefusedError, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_loops import extents, held
from tensorplug_loops.dialects import opencl_c
from tensorplug_loops.schedule import plan
from tensorplug_opencl import pairs
from tensorplug_opencl.codegen import calls
from tensorplug_opencl.groups import views
from tensorplug_opencl.launch import HEAVY_GROUP
from tensorplug_opencl.machine.description import describe_loops
from tensorplug_opencl.machine.features import dtypes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import DType, Group
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule import Launch as Step
    from tensorplug_loops.schedule import Program
    from tensorplug_loops.statements import Kernel
    from tensorplug_loops.templates import Sized
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime

    Run = Callable[..., list[DeviceBuffer]]

T = TypeVar("T")

ARGUMENTS: Final = 1024  # bytes that every device allows
_HEAVY: Final = 512  # instructions of a work-item from which on groups are small
_LONG: Final = 1 << 13  # likewise, from which on cores should have equally many items
_LITTLE: Final = 1 << 18  # instructions that one core does
_KEPT: Final = 4096
_NUMBERS: Final = {True: np.int32, False: np.int64}  # by whether indices are narrow
# What the first part of a device's trial covers; indices are no vectors.
_TRIED_FIRST: Final = frozenset({dt.float32, dt.int64})
_texts: Final[dict[tuple[int, bool, bool], tuple[Kernel, str]]] = {}


class Planned(NamedTuple):
    """A group's program, its dtypes, how many arrays it has, and the types of its outputs.

    ``into``: the inputs whose memory the outputs take. ``apart``: whether they were to take none.
    ``paired``: the numbers of arrays that the program takes for pairs of numbers.
    """

    program: Program
    dtypes: frozenset[DType]
    arrays: int
    outputs: tuple[TensorType, ...]
    into: tuple[int | None, ...]
    apart: bool
    paired: tuple[int, ...]


def compile_group(group: Sized, runtime: Runtime, *, form: bool = False) -> Run | None:
    """Return a function of the inputs' buffers that returns those of the outputs; None to decline.

    ``form``: whether it is a kernel's, whose result may share an input's memory, and whose sums
    ScatterND takes in parallel, if they meet.

    Raises:
        BuildError: the device's compiler refuses the program.
        KernelRefusedError: a kernel has too many arguments, or too long loops.

    """
    return _with_plan(group, runtime, _compile, form=form)


def compile_writer(group: Sized, runtime: Runtime) -> Callable[..., None] | None:
    """Return what writes outputs, of the inputs' buffers and then theirs; None to decline.

    An output at an index that nothing combines keeps what is not written.

    Raises: as ``compile_group``.
    """
    return _with_plan(group, runtime, _prepare)


def _with_plan(
    group: Sized,
    runtime: Runtime,
    finish: Callable[[Any, Runtime], T | None],
    *,
    form: bool = False,
) -> T | None:
    simple = not runtime.is_tried and _is_simple(group.group)
    tried = not simple  # its first part does not cover whole numbers of other sizes
    machine = _describe_first(runtime) if simple else runtime.description

    def compile_in(size: int) -> T | None:
        own = machine if size == machine.group_size else replace(machine, group_size=size)
        planned = group.plan(
            lambda group: _plan(group, own, form=form, tried=tried), own, form, tried
        )
        return None if planned is None else finish(planned, runtime)

    return calls.shrink_until_allowed(compile_in, machine.group_size)


def _is_simple(group: Group) -> bool:
    """Return whether the first part of the device's trial covers a group."""
    return not (group.reductions or group.folds) and held.dtypes_of(group) <= _TRIED_FIRST


def _describe_first(runtime: Runtime) -> Machine:
    """Return the device, as far as the first part of its trial covers it."""
    return describe_loops(runtime.device, runtime.limits, is_cpu=runtime.is_cpu, atomics64=False)


def _plan(
    group: Group, machine: Machine, *, form: bool, tried: bool
) -> Planned | views.View | None:
    if form:
        view = views.find_view(group)
        if view or any(each.combine in {"sum", "prod"} for each in group.outputs):
            return view
    real = held.in_real_numbers(group)
    if real is None:
        return None
    dtypes = held.dtypes_of(real)
    real = held.in_bits(real) if tried else real
    program = plan(real, machine)
    if program is None:
        return None
    ends, own = (
        [*[each.type.rank for each in one.inputs], *[each.type.rank for each in one.outputs]]
        for one in (group, real)
    )
    into = [
        None if each.into is None or program.reads_after(each.into, at) else each.into
        for at, each in enumerate(group.outputs, len(group.inputs))
    ]
    return Planned(
        program,
        dtypes,
        len(ends),
        tuple([output.type for output in group.outputs]),
        tuple(into),
        all(output.into is None for output in group.outputs),
        tuple([at for at, rank in enumerate(ends) if rank != own[at]]),
    )


def _compile(planned: Planned | views.View, runtime: Runtime) -> Run | None:
    """Return the function of a group; None if the device lacks a dtype."""
    if isinstance(planned, views.View):
        return views.compile_view(planned)
    wide = dt.float64 in planned.dtypes
    if wide and dt.float64 not in dtypes_of(runtime.device, runtime.limits):
        return None
    makers = [runtime.prepare_empty(type_) for type_ in planned.outputs]
    into, write = planned.into, _prepare(planned, runtime)
    if into == (None,):
        (make,) = makers

        def alone(*buffers: DeviceBuffer) -> DeviceBuffer:
            result = make()
            write(*buffers, result)
            return result

        def run_alone(*buffers: DeviceBuffer) -> list[DeviceBuffer]:
            return [alone(*buffers)]

        run_alone.alone = alone  # type: ignore[attr-defined]  # for tensorplug_loops.kernels
        return run_alone

    def run(*buffers: DeviceBuffer) -> list[DeviceBuffer]:
        results = [make() for make in makers]
        write(*buffers, *results)
        return results

    def overwrite(*buffers: DeviceBuffer) -> list[DeviceBuffer]:
        results = [
            make() if at is None else buffers[at] for make, at in zip(makers, into, strict=True)
        ]
        write(*buffers, *results)
        return results

    return run if into.count(None) == len(into) else overwrite


def _prepare(planned: Planned, runtime: Runtime) -> Callable[..., None]:
    """Return what writes the outputs, of the buffers of the inputs and then of the outputs."""
    program, paired = planned.program, planned.paired
    launches = [
        (_launch(runtime, each, apart=planned.apart), each.arrays) for each in program.launches
    ]
    if len(launches) == 1 and launches[0][1] == tuple(range(planned.arrays)) and not paired:
        return launches[0][0]
    temporaries = [
        runtime.prepare_empty(TensorType(dtype, (size,))) for dtype, size in program.temporaries
    ]

    def write(*buffers: DeviceBuffer) -> None:
        everything = [*buffers, *(make() for make in temporaries)]
        for at in paired:  # pairs count their elements otherwise
            everything[at] = pairs.as_pairs(everything[at])
        for launch, arrays in launches:
            launch(*[everything[at] for at in arrays])

    return write


def check_arguments(arrays: int, arguments: Sequence[Any]) -> None:
    """Check that a kernel may have so many arguments.

    Raises:
        KernelRefusedError: it may not.

    """
    if 16 * arrays + sum(argument.nbytes for argument in arguments) > ARGUMENTS:
        raise KernelRefusedError(f"{arrays} arrays are too many for one kernel")


def _launch(runtime: Runtime, planned: Step, *, apart: bool) -> Launch:
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
    if runtime.is_cpu and planned.cost > _LONG and _is_uneven(runtime, items):
        return runtime.launch(text, len(kernel.arrays), numbers, items, group=1)
    many = runtime.is_cpu and items >= 64 * runtime.parallel_items
    few = runtime.is_cpu and items <= HEAVY_GROUP[True]  # idle ones would cost time
    heavy = planned.cost > _HEAVY and (few or (not many and planned.cost * items > _LITTLE))
    return runtime.launch(text, len(kernel.arrays), numbers, items, heavy=heavy)


def _is_uneven(runtime: Runtime, items: int) -> bool:
    """Return whether some cores would wait for others, if groups have several items."""
    cores, size = runtime.device.max_compute_units, HEAVY_GROUP[True]
    groups = -(-items // size)
    return -(-groups // cores) * size * 8 > -(-items // cores) * 9


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
