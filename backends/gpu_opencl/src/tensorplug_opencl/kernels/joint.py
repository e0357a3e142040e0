"""Elementwise kernels with multiple results, which share their inputs and intermediate values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import ctypes, functions, templates
from tensorplug_opencl.kernels.pointwise import RUN
from tensorplug_opencl.kernels.templates import Array

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.plugin import DType, TensorType
    from tensorplug_opencl.kernels.pointwise import Constant
    from tensorplug_opencl.runtime import Runtime

__all__ = ["launch"]


def launch(
    runtime: Runtime,
    title: str,
    statements: str,
    inputs: Mapping[str, TensorType],
    outs: Mapping[str, TensorType],
    constants: Sequence[Constant],
    dtype: DType,
) -> Callable[..., None]:
    """Return a callable of the inputs' buffers and then the outputs', which writes these.

    ``statements`` assign to the outputs' names. Inputs have the outputs' shape, or one element;
    ``dtype`` is theirs, and that of the functions that the statements call.
    """
    size = next(iter(outs.values())).size
    index = layouts.index_dtype(size)
    run = RUN if runtime.is_cpu else 1
    source = _write_source(title, statements, inputs, outs, constants, dtype, index, run)
    arguments: list[Any] = [index.type(size), *(constant.value for constant in constants)]
    arrays = len(inputs) + len(outs)
    return runtime.launch(source, arrays, arguments, -(-size // run), heavy=run > 1)


def _write_source(
    title: str,
    statements: str,
    inputs: Mapping[str, TensorType],
    outs: Mapping[str, TensorType],
    constants: Sequence[Constant],
    dtype: DType,
    index: templates.Index,
    run: int,
) -> str:
    """Return the program; a work-item computes ``run`` elements that lie side by side.

    The statements are the body of a separate function, as an expression is, so that their names
    cannot clash with others.
    """
    shape = next(iter(outs.values())).shape
    computed = {
        name: ctypes.computed(operand.dtype) for name, operand in (*inputs.items(), *outs.items())
    }
    parameters = [
        *(f"const {computed[name]} {name}" for name in inputs),
        *(f"const {constant.ctype} {constant.name}" for constant in constants),
        *(f"{computed[name]} *{name}_set" for name in outs),
    ]
    local = "".join(f"  {computed[name]} {name};\n" for name in outs)
    end = "".join(f"  *{name}_set = {name};\n" for name in outs)
    function = f"INLINE void values_of({', '.join(parameters)}) {{\n{local}  {statements}\n{end}}}"
    places = {name: "i" if operand.shape == shape else "0" for name, operand in inputs.items()}
    reads = [f"({computed[name]}){name}_in[{at}]" for name, at in places.items()]
    call_arguments = [
        *reads,
        *(f"{constant.name}_argument" for constant in constants),
        *(f"&{name}" for name in outs),
    ]
    body = [
        f"  const index_t start = get_global_id(0) * (index_t){run};",
        "  if (start >= n) return;",
        f"  const index_t end = start + min(n - start, (index_t){run});",
        "  for (index_t i = start; i < end; i++) {",
        *(f"    {computed[name]} {name};" for name in outs),
        f"    values_of({', '.join(call_arguments)});",
        *(f"    {name}_out[i] = {name};" for name in outs),
        "  }",
    ]
    stored = ctypes.stored
    return templates.write_program(
        title,
        [
            *(Array(f"{name}_in", stored(operand.dtype)) for name, operand in inputs.items()),
            *(
                Array(f"{name}_out", stored(output.dtype), written=True)
                for name, output in outs.items()
            ),
        ],
        [
            *templates.declare_indices("n"),
            *(f"const {constant.ctype} {constant.name}_argument" for constant in constants),
        ],
        "\n".join(body),
        index=index,
        declarations=f"{functions.define(statements, dtype)}\n{function}",
        apart=True,
    )
