"""Kernels of one or two inputs from a table of formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug_opencl.kernels import pointwise

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug.plugin import KernelSpec, KernelTable, TensorType
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.kernels.pointwise import Formula

__all__ = ["register"]


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
