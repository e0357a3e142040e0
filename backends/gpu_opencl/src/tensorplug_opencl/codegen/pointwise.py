"""Elementwise launches: each operand's shape decides how the program reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import shapes
from tensorplug_opencl.codegen import calls, ctypes, functions, layouts, templates
from tensorplug_opencl.codegen.templates import Operand, Routine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.plugin import DType, Shape, TensorType
    from tensorplug.plugin import dtypes as dt
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime


# Elements that a work-item computes on a CPU: few enough that the groups of a large array keep all
# cores busy, and enough that the start of a loop costs little.
RUN: Final = 1024


class Input:
    """An operand: its name in the expression, its type, and the C types to read it as."""

    __slots__ = ("computed", "name", "stored", "type")

    def __init__(self, name: str, type_: TensorType, stored: str, computed: str) -> None:
        self.name = name
        self.type = type_
        self.stored = stored
        self.computed = computed


class Constant(NamedTuple):
    """A number that the expression names: an argument, so that one program serves all values."""

    name: str
    ctype: str
    value: np.generic


def prepare(
    runtime: Runtime,
    title: str,
    inputs: Sequence[Input],
    out: TensorType,
    result: str,
    expression: str,
    definitions: str = "",
    constants: Sequence[Constant] = (),
) -> Callable[..., DeviceBuffer]:
    """Return a callable of the inputs' buffers that computes ``expression`` into ``out``.

    ``result`` is the C type of the output's elements, ``definitions`` C declarations that the
    expression uses, ``constants`` the numbers it names.
    """
    if not out.size:
        return calls.make_empty(runtime, out)
    name = "tensorplug_result"  # an input's name may be any other
    statement = f"{name} = ({result})({expression});"
    routine = make_routine(inputs, constants, [(result, name)], statement)
    reads = [
        Read(operand, layouts.broadcast_strides(operand.type.shape, out.shape))
        for operand in inputs
    ]
    launch = launch_elementwise(
        runtime, title, out.shape, reads, [(result, "y")], routine, definitions, constants
    )
    return calls.make_producer(runtime, out, launch)


def make_routine(
    inputs: Sequence[Input],
    constants: Sequence[Constant],
    results: Sequence[tuple[str, str]],
    statements: str,
) -> Routine:
    """Return the routine for one element whose parameters are the inputs, then the constants."""
    parameters = [(operand.computed, operand.name) for operand in inputs]
    parameters += [(constant.ctype, constant.name) for constant in constants]
    return Routine("values_of", parameters, results, statements)


class Read(NamedTuple):
    """An input, and the distance of its elements in memory along each axis of the loops."""

    input: Input
    strides: layouts.Strides


def launch_elementwise(
    runtime: Runtime,
    title: str,
    shape: Shape,
    reads: Sequence[Read],
    results: Sequence[tuple[str, str]],
    routine: Routine,
    definitions: str = "",
    constants: Sequence[Constant] = (),
) -> Launch:
    """Return the launch of ``routine`` for each element of ``shape``, of which there are some.

    It takes the buffers of the reads, then of the results, which are dense and of that shape; they
    are (C type, name).
    """
    size = shapes.size(shape)
    whole = layouts.row_major(shape)
    layout = layouts.collapse(shape, [*(read.strides for read in reads), whole])
    operands, placed = [], []
    for (operand, _), steps in zip(reads, layout.strides, strict=False):
        access = classify_access(steps, layout.strides[-1])
        if operand.type.size == 1 and operand.type.shape != shape:
            access = "single"  # also if there is one result: a program serves every size
        if access in ("row", "column"):
            placed.append(steps[:-1])
        operands.append(Operand(operand.name, operand.stored, operand.computed, access))
    index = layouts.index_dtype(size, *(read.input.type.size for read in reads))
    run = RUN if runtime.is_cpu else 1
    source = templates.write_elementwise(
        title,
        operands,
        results,
        routine,
        layout.rank - 1 if placed else 0,
        index,
        definitions,
        [(constant.name, constant.ctype) for constant in constants],
        run=run,
    )
    arguments: list[Any] = [index.type(size)]
    if placed:
        arguments.append(index.type(layout.sizes[-1]))
        outer = layouts.Layout(layout.sizes[:-1], tuple(placed))
        arguments.append(layouts.pack([outer], index))
    arguments.extend(constant.value for constant in constants)
    items = -(-size // run)
    return runtime.launch(source, len(reads) + len(results), arguments, items, heavy=run > 1)


def classify_access(steps: layouts.Strides, whole: layouts.Strides) -> templates.Access:
    """Return how a program reads an array with these strides, from those of the result."""
    if steps == whole:
        return "whole"
    if not any(steps):
        return "single"
    return "row" if steps[-1] else "column"  # dense arrays have no other step along a row than 1


class Formula(NamedTuple):
    """The C expression of an elementwise kernel over its inputs' names.

    ``signed`` and ``unsigned`` replace it for integers, ``boolean`` for booleans. With ``ring``
    the inputs are read in the ring type, in which integers wrap.
    """

    any: str
    signed: str | None = None
    unsigned: str | None = None
    ring: bool = False
    boolean: str | None = None

    def of(self, dtype: DType) -> str:
        """Return the expression for inputs of ``dtype``."""
        kinds = {"signed": self.signed, "unsigned": self.unsigned, "bool": self.boolean}
        return kinds.get(dtype.kind) or self.any


def prepare_formula(
    runtime: Runtime,
    title: str,
    formula: Formula,
    types: Mapping[str, TensorType],
    out: TensorType,
    constants: Sequence[Constant] = (),
    declarations: str = "",
) -> Callable[..., DeviceBuffer]:
    """Return a callable of the inputs' buffers; ``types`` are of one dtype, by name.

    ``declarations``: the caller's C functions that the expression calls.
    """
    dtype = next(iter(types.values())).dtype
    expression = formula.of(dtype)
    if types == {expression: out} and not constants:
        return lambda buffer: buffer
    computed = ctypes.ring(dtype) if formula.ring else ctypes.computed(dtype)
    inputs = [Input(name, type_, ctypes.stored(dtype), computed) for name, type_ in types.items()]
    return prepare(
        runtime,
        title,
        inputs,
        out,
        ctypes.stored(out.dtype),
        expression,
        f"{functions.define(declarations + expression, dtype)}\n{declarations}",
        constants,
    )


def make_constant(name: str, value: dt.Scalar, dtype: DType) -> Constant:
    """Return ``value`` rounded to ``dtype``, in the type that computes with it."""
    ctype = ctypes.computed(dtype)
    with np.errstate(over="ignore"):  # values beyond the type's range become infinite
        rounded = np.array(value).astype(dtype.numpy)
    return Constant(name, ctype, ctypes.host(ctype).type(rounded))
