"""Kernels whose specs give an expression: arithmetic, comparison, elementary functions, bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import (
    Group,
    GroupInput,
    GroupOutput,
    KernelRefusedError,
    KernelTable,
    expressions,
    specs,
)
from tensorplug_opencl.codegen import calls
from tensorplug_opencl.groups import element_groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Expression, KernelSpec, TensorType
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Runtime


kernels = KernelTable()


def _compute_unary(spec: KernelSpec) -> Callable[..., Any]:
    def unary(x: TensorType, *, backend: OpenedDevice, out: TensorType) -> Any:
        return prepare_rule(backend.runtime, spec, [x], out)

    return unary


def _compute_binary(spec: KernelSpec) -> Callable[..., Any]:
    def binary(a: TensorType, b: TensorType, *, backend: OpenedDevice, out: TensorType) -> Any:
        return prepare_rule(backend.runtime, spec, [a, b], out)

    return binary


def prepare_rule(
    runtime: Runtime, spec: KernelSpec, types: list[TensorType], out: TensorType
) -> Callable[..., Any]:
    """Return a callable of the inputs' buffers that computes the spec's expression.

    Raises:
        KernelRefusedError: it has none for these types.

    """
    rule = spec.expression_rule
    operands = [expressions.parameter(at, type_.dtype) for at, type_ in enumerate(types)]
    expression = None if rule is None else rule(operands, {}, out)
    if expression is None:
        raise KernelRefusedError(f"it has no expression for {', '.join(map(str, types))}")
    return prepare_expression(runtime, spec.name, expression, types, out)


def prepare_expression(
    runtime: Runtime,
    name: str,
    expression: Expression,
    types: list[TensorType],
    out: TensorType,
) -> Callable[..., Any]:
    """Return a callable of the inputs' buffers that computes an expression of them.

    Raises:
        KernelRefusedError: there are complex numbers.

    """
    if not out.size:
        return calls.make_empty(runtime, out)
    if expression.op == "parameter" and types == [out]:
        return lambda buffer: buffer
    group = Group(
        f"{name} {types[0].dtype}",
        out.shape,
        tuple(GroupInput(type_, _find_spans(type_, out)) for type_ in types),
        (),
        (GroupOutput(expression, out, (True,) * out.rank),),
    )
    return calls.make_producer(runtime, out, element_groups.prepare(group, runtime))


def _find_spans(type_: TensorType, out: TensorType) -> tuple[bool, ...]:
    """Return along which axes of the output an input varies."""
    lead = out.rank - type_.rank
    own = zip(type_.shape, out.shape[lead:], strict=True)
    return (False,) * lead + tuple(length == whole for length, whole in own)


# Moves and copies have kernels of their own, and so have integers' powers.
_OTHERS: Final = (specs.IDENTITY, specs.POW)
_MAKERS: Final = {1: _compute_unary, 2: _compute_binary}

for _spec in specs:
    _count = len(_spec.input_names)
    if (
        _spec.expression_rule is not None
        and _count in _MAKERS
        and not _spec.attributes
        and _spec not in _OTHERS
    ):
        kernels.prepare(_spec)(_MAKERS[_count](_spec))
