"""Kernels of one or two inputs from the expressions of their specs, or from formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import Group, GroupInput, GroupOutput, KernelRefusedError, expressions
from tensorplug_opencl.kernels import calls, element_groups, pointwise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tensorplug.plugin import Expression, KernelSpec, KernelTable, TensorType
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.kernels.pointwise import Formula
    from tensorplug_opencl.runtime import Runtime

__all__ = ["prepare_expression", "prepare_rule", "register", "register_expressions"]


def register(kernels: KernelTable, formulas: Mapping[KernelSpec, Formula]) -> None:
    """Put a kernel of one or two inputs into ``kernels`` for each formula."""
    for spec, formula in formulas.items():
        make = _make_unary if len(spec.input_names) == 1 else _make_binary
        kernels.prepare(spec)(make(spec, formula))


def _make_unary(spec: KernelSpec, formula: Formula) -> Callable[..., Any]:
    def unary(x: TensorType, *, backend: OpenCLBackend, out: TensorType) -> Any:
        title = f"{spec.name} {x.dtype}"
        return pointwise.prepare_formula(backend.runtime, title, formula, {"x": x}, out)

    return unary


def _make_binary(spec: KernelSpec, formula: Formula) -> Callable[..., Any]:
    def binary(a: TensorType, b: TensorType, *, backend: OpenCLBackend, out: TensorType) -> Any:
        title = f"{spec.name} {a.dtype}"
        return pointwise.prepare_formula(backend.runtime, title, formula, {"a": a, "b": b}, out)

    return binary


def register_expressions(kernels: KernelTable, chosen: Iterable[KernelSpec]) -> None:
    """Put a kernel into ``kernels`` for each spec, which has an expression."""
    for spec in chosen:
        make = _compute_unary if len(spec.input_names) == 1 else _compute_binary
        kernels.prepare(spec)(make(spec))


def _compute_unary(spec: KernelSpec) -> Callable[..., Any]:
    def unary(x: TensorType, *, backend: OpenCLBackend, out: TensorType) -> Any:
        return prepare_rule(backend.runtime, spec, [x], out)

    return unary


def _compute_binary(spec: KernelSpec) -> Callable[..., Any]:
    def binary(a: TensorType, b: TensorType, *, backend: OpenCLBackend, out: TensorType) -> Any:
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
