"""Kernels that the library of loops has forms for, compiled as groups."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, TypeVar

from tensorplug.plugin import KernelRefusedError
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.codegen.settings import least_elements
from tensorplug_cpu.jit.groups.kernels import compile_form

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Backend, DType, KernelEntry, KernelSpec
    from tensorplug_cpu.arrays import Array, Call
    from tensorplug_loops.templates import Sized

    F = TypeVar("F", bound=Callable[..., Any])


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


def by_form(spec: KernelSpec, dtypes: frozenset[DType] = dt.STORED) -> Callable[[F], F]:
    """Decorate what prepares a kernel by NumPy: many elements are computed by its form.

    For kernels whose results are the same either way, to the bit or nearly so, in these dtypes.
    """
    native = formed(spec)

    def decorate(by_numpy: F) -> F:
        parameters = signature(by_numpy).parameters.values()
        asks = {each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY}

        def prepare(*types: Any, attributes: dict[str, Any], **asked: Any) -> Call:
            if asked["out"].dtype in dtypes:
                with suppress(KernelRefusedError):  # few elements, or no LLVM
                    return without_warnings(native(*types, attributes=attributes, **asked))
            known = {**attributes, "attributes": attributes, **asked}
            made: Call = by_numpy(*types, **{name: known[name] for name in asks})
            return made

        prepare.__signature__ = signature(native)  # type: ignore[attr-defined]
        return prepare  # type: ignore[return-value]  # it takes all that a kernel may ask for

    return decorate


@cache
def _entries(always: bool) -> dict[str, KernelEntry]:  # noqa: FBT001  # a key
    from tensorplug_loops.kernels import kernel_table  # dozens of modules, at the first long loop

    def compile_(_backend: Any, form: Sized) -> Callable[..., list[Array]] | None:
        return compile_form(form, 0 if always else least_elements() or 0)

    return {entry.spec.name: entry for entry in kernel_table(compile_, sized=True)}
