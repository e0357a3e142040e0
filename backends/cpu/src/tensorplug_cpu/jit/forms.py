"""Kernels that the library of loops has forms for, compiled by LLVM where the loops are long.

What is compiled depends on structure: a kernel serves all lengths.
"""

from __future__ import annotations

from functools import cache
from inspect import Parameter, Signature
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import KernelRefusedError
from tensorplug_cpu.jit.codegen import processor
from tensorplug_cpu.jit.codegen.compiler import CompilationError
from tensorplug_cpu.jit.codegen.settings import is_worthwhile, least_elements
from tensorplug_cpu.jit.groups.threads import Module, make_launch
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tensorplug.plugin import Backend, Group, KernelEntry, KernelSpec
    from tensorplug_cpu.arrays import Array, Call
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule import Launch
    from tensorplug_loops.statements import Kernel


_MOST_MODULES: Final = 1024
_modules: Final[dict[int, tuple[Kernel, Module]]] = {}  # by identity: a kernel is planned once


def formed(spec: KernelSpec, *, always: bool = False) -> Callable[..., Call]:
    """Return what prepares a kernel by its form.

    It refuses where loops are not compiled, or too short to be worth it, unless ``always``.
    """

    def prepare(
        *types: Any, attributes: dict[str, Any], backend: Backend, out: Any
    ) -> Callable[..., Any]:
        if least_elements() is None:
            raise KernelRefusedError("loops are not compiled")
        entry = _entries(always)[spec.name]
        rest = {name: value for name, value in attributes.items() if name not in entry.asks}
        asked = {**attributes, "attributes": rest, "backend": backend, "out": out}
        made: Call = entry.function(*types, **{name: asked[name] for name in entry.asks})
        return made

    inputs = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in spec.input_names]
    asks = [Parameter(n, Parameter.KEYWORD_ONLY) for n in ("attributes", "backend", "out")]
    prepare.__signature__ = Signature([*inputs, *asks])  # type: ignore[attr-defined]
    return prepare


@cache
def _entries(always: bool) -> dict[str, KernelEntry]:  # noqa: FBT001  # a key
    from tensorplug_loops.kernels import kernel_table  # dozens of modules, at the first long loop

    table = kernel_table(_compile_group if always else _compile_long)
    return {entry.spec.name: entry for entry in table}


def _compile_long(group: Group) -> Callable[..., list[Array]] | None:
    return _compile_group(group) if is_worthwhile(prod(group.shape)) else None


@cache
def _machine() -> Machine:
    from tensorplug_loops.machine import Machine

    return Machine(
        vector_bytes=processor.vector_bytes(),
        registers=processor.registers(),
        narrow=frozenset({"float16"}),
    )


def _compile_group(group: Group) -> Callable[..., list[Array]] | None:
    """Return a function that computes a group; None where it is refused."""
    from tensorplug_loops.schedule import plan

    program = plan(group, _machine())
    if program is None:
        return None
    try:
        launches = [(_launch(each), each.arrays) for each in program.launches]
    except CompilationError:  # by LLVM, which names no reason that a user could act on
        return None
    outputs = [allocator(type_.shape, type_.dtype.numpy) for type_ in program.outputs]
    temporaries = [allocator((size,), dtype.numpy) for dtype, size in program.temporaries]

    def run(*inputs: Array) -> list[Array]:
        results = [allocate() for allocate in outputs]
        arrays = [*map(np.ascontiguousarray, inputs), *results]
        arrays += [allocate() for allocate in temporaries]
        for launch, numbers in launches:
            launch(*[arrays[number] for number in numbers])
        return results

    return run


def _launch(launch: Launch) -> Callable[..., None]:
    names = [number.name for number in launch.kernel.numbers]
    values: dict[Hashable, int] = {"total": launch.items}
    values |= dict(zip(names, launch.numbers, strict=True))
    return make_launch(_module(launch.kernel, names), values, launch.cost)


def _module(kernel: Kernel, names: Sequence[str]) -> Module:
    """Return the module of a kernel."""
    found = _modules.get(id(kernel))
    if found is None:
        from tensorplug_loops.dialects import llvm

        slots: list[Hashable] = ["counter", "total", "grain"]
        slots += [("pointer", at) for at in range(len(kernel.arrays))]
        if len(_modules) >= _MOST_MODULES:
            del _modules[next(iter(_modules))]
        text = llvm.write(kernel, processor.attributes())
        found = _modules[id(kernel)] = kernel, Module(text, [*slots, *names])
    return found[1]
