"""Kernels that the library of loops has forms for, compiled as groups."""

from __future__ import annotations

from functools import cache
from inspect import Parameter, Signature
from math import prod
from typing import TYPE_CHECKING, Any

from tensorplug.plugin import KernelRefusedError
from tensorplug_cpu.jit.codegen.settings import is_worthwhile, least_elements
from tensorplug_cpu.jit.groups.kernels import compile_group

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Backend, Group, KernelEntry, KernelSpec
    from tensorplug_cpu.arrays import Array, Call


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

    table = kernel_table(compile_group if always else _compile_long)
    return {entry.spec.name: entry for entry in table}


def _compile_long(group: Group) -> Callable[..., list[Array]] | None:
    return compile_group(group) if is_worthwhile(prod(group.shape)) else None
