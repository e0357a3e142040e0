"""Elementwise launches: each operand's shape decides how the program reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorplug.plugin import shapes
from tensorplug_opencl.codegen import calls, ctypes, functions, layouts, templates, walks
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.codegen.walks import Walk, Walked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from tensorplug.plugin import DType, Shape, TensorType
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime


class Input(NamedTuple):
    """An operand: its name in the expression, its type, and the C types to read it as."""

    name: str
    type: TensorType
    stored: str
    computed: str


class Constant(NamedTuple):
    """A number that the expression names: an argument, so that one program serves all values."""

    name: str
    ctype: str
    value: np.generic


class Routine(NamedTuple):
    """A C function that computes one element of each result.

    ``parameters`` and ``results`` are (C type, name). ``statements`` assign to the results' names.
    """

    name: str
    parameters: Sequence[tuple[str, str]]
    results: Sequence[tuple[str, str]]
    statements: str

    def define(self) -> str:
        """Return the function."""
        parameters = [f"const {ctype} {parameter}" for ctype, parameter in self.parameters]
        parameters += [f"{ctype} *{result}_set" for ctype, result in self.results]
        local = "".join(f"  {ctype} {result};\n" for ctype, result in self.results)
        sets = "".join(f"  *{result}_set = {result};\n" for _, result in self.results)
        return (
            f"INLINE void {self.name}({', '.join(parameters)}) {{\n{local}"
            f"  {self.statements}\n{sets}}}"
        )

    def call(self, values: Sequence[str], sets: Sequence[str], indent: str = "  ") -> str:
        """Return the statements that compute one element.

        ``sets``: for each result, the statement that takes ``{}``, its value.
        """
        made = [f"{result}_new" for _, result in self.results]
        local = "".join(
            f"{ctype} {new}; " for (ctype, _), new in zip(self.results, made, strict=True)
        )
        arguments = ", ".join([*values, *(f"&{new}" for new in made)])
        ends = " ".join(end.format(new) for end, new in zip(sets, made, strict=True))
        return f"{indent}{local}{self.name}({arguments}); {ends}"


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
    # A single number is one also if there is one result: a program serves every size.
    walk = Walk.of(
        shape,
        [
            None if operand.type.size == 1 and operand.type.shape != shape else steps
            for operand, steps in reads
        ],
    )
    operands = [
        Walked(operand.name, operand.type.dtype, operand.stored, access)
        for (operand, _), access in zip(reads, walk.accesses, strict=True)
    ]
    size = shapes.size(shape)
    index = layouts.index_dtype(size, *(read.input.type.size for read in reads))
    run = walks.RUN if runtime.is_cpu else 1
    rows, sizes = walks.declare(operands, walk.rank)
    source = templates.write_program(
        title,
        [
            *(Array(f"{operand.name}_in", operand.stored) for operand in operands),
            *(Array(f"{name}_out", ctype, written=True) for ctype, name in results),
        ],
        [*sizes, *(f"const {constant.ctype} {constant.name}_argument" for constant in constants)],
        _write_body(
            [read.input for read in reads],
            operands,
            [name for _, name in results],
            routine,
            constants,
            run,
        ),
        index=index,
        declarations="\n".join([*rows, definitions, routine.define()]),
        apart=True,
    )
    arguments = [*walk.arguments(index), *(constant.value for constant in constants)]
    arrays, items = len(reads) + len(results), -(-size // run)
    return runtime.launch(source, arrays, arguments, items, heavy=run > 1)


def _write_body(
    inputs: Sequence[Input],
    operands: Sequence[Walked],
    results: Sequence[str],
    routine: Routine,
    constants: Sequence[Constant],
    run: int,
) -> str:
    """Return the body that calls the routine for each element.

    It is a function of its own, so that the names of operands and constants cannot clash with
    others. Its parameters are the operands, then the constants.
    """
    numbers = [f"{constant.name}_argument" for constant in constants]
    walked = list(zip(operands, (operand.computed for operand in inputs), strict=True))

    def write_element() -> list[str]:
        values = [f"({ctype}){walks.read(operand)}" for operand, ctype in walked]
        sets = [f"{name}_out[i] = {{}};" for name in results]
        return [routine.call([*values, *numbers], sets)]

    def write_loop(start: str, count: str) -> list[str]:
        lines, values = [], []
        for operand, ctype in walked:
            name, pointer = operand.name, walks.point(operand, start)
            read = f"({ctype}){walks.read(operand)}"
            lines.append(pointer or f"  const {ctype} {name}_value = {read};")
            values.append(f"({ctype}){name}_run[k]" if pointer else f"{name}_value")
        sets = [f"{name}_out[{start} + k] = {{}};" for name in results]
        call = routine.call([*values, *numbers], sets, "    ")
        return [*lines, f"  for (index_t k = 0; k < {count}; k++) {{", call, "  }"]

    return walks.write_body(operands, run, write_element, write_loop)


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
