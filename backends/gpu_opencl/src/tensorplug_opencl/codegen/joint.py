"""Elementwise kernels with multiple results, which share their inputs and intermediate values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug_opencl.codegen import ctypes, functions, layouts, pointwise
from tensorplug_opencl.codegen.pointwise import Input, Read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.plugin import DType, TensorType
    from tensorplug_opencl.codegen.pointwise import Constant
    from tensorplug_opencl.runtime import Launch, Runtime


def launch(
    runtime: Runtime,
    title: str,
    statements: str,
    inputs: Mapping[str, TensorType],
    outs: Mapping[str, TensorType],
    constants: Sequence[Constant],
    dtype: DType,
) -> Launch:
    """Return a callable of the inputs' buffers and then the outputs', which writes these.

    ``statements`` assign to the outputs' names. Inputs have the outputs' shape, or one element;
    ``dtype`` is theirs, and that of the functions that the statements call.
    """
    shape = next(iter(outs.values())).shape
    named = [
        Input(name, type_, ctypes.stored(type_.dtype), ctypes.computed(type_.dtype))
        for name, type_ in inputs.items()
    ]
    computed = [(ctypes.computed(output.dtype), name) for name, output in outs.items()]
    routine = pointwise.make_routine(named, constants, computed, statements)
    reads = [
        Read(
            operand, layouts.row_major(shape) if operand.type.shape == shape else (0,) * len(shape)
        )
        for operand in named
    ]
    stored = [(ctypes.stored(output.dtype), name) for name, output in outs.items()]
    definitions = functions.define(statements, dtype)
    return pointwise.launch_elementwise(
        runtime, title, shape, reads, stored, routine, definitions, constants
    )
