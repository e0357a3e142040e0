"""The module to import for OpenCL kernels in other distributions.

Call its functions where you prepare a kernel (``KernelTable.prepare``), with the ``backend`` and
the ``out`` that the kernel asks for, and return the callable of buffers that they return. They
allocate the output, build a program once per source text, for all shapes and numbers, and
translate OpenCL's errors.

    >>> import tensorplug as tp
    >>> from tensorplug.plugin import KernelSpec, attributes, dispatch, inference
    >>> slope = attributes.number(0.5)
    >>> HINGE = KernelSpec("Hinge", ("x",), inference.same, attributes={"slope": slope})
    >>> def hinge(x, *, slope, backend, out):
    ...     constants = {"slope": slope}
    ...     return elementwise(backend, "Hinge", "x > 0 ? x : slope * x", {"x": x}, out, constants)
    >>> with tp.use_backend("opencl"), tp.register_kernel(HINGE, "opencl", hinge, prepares=True):
    ...     dispatch(HINGE, tp.asarray([-2.0, 3.0]), slope=0.25).tolist()
    [-0.5, 3.0]

A distribution instead puts the kernel into a table, with ``@kernels.prepare(HINGE)``, and returns
the table from its hook ``tensorplug_kernels``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import DType, KernelRefusedError, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.backend import OpenCLBackend
from tensorplug_opencl.codegen import calls, ctypes, joint, pointwise
from tensorplug_opencl.codegen.pointwise import Formula
from tensorplug_opencl.memory.buffers import DeviceBuffer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug_opencl.runtime import Runtime

    Number = bool | int | float | np.generic

__all__ = [
    "DeviceBuffer",
    "Formula",
    "OpenCLBackend",
    "c_type",
    "elementwise",
    "elementwise_multiple",
    "on_cpu",
    "program",
]


def c_type(dtype: DType) -> str:
    """Return the C type of an element of ``dtype`` in memory; a boolean is a byte, 0 or 1.

    Raises:
        KernelRefusedError: C has no such type, as for complex numbers and bfloat16. A kernel that
            is prepared for bfloat16 may let it pass: the core then asks for the kernel in float32.

    """
    return ctypes.stored(dtype)


def on_cpu(backend: OpenCLBackend) -> bool:
    """Return whether the device is a CPU, which runs a group of work-items on one core.

    A CPU is fast with work-items that do much, in small groups. A GPU needs thousands of them, in
    groups of 64 or more.
    """
    return backend.runtime.is_cpu


def elementwise(
    backend: OpenCLBackend,
    name: str,
    formula: str | Formula,
    inputs: Mapping[str, TensorType],
    out: TensorType,
    constants: Mapping[str, Number] | None = None,
    *,
    functions: str = "",
) -> Callable[..., DeviceBuffer]:
    """Return a callable of the inputs' buffers that computes an expression for every element.

    Inputs are broadcast to the shape of ``out``. In the expression they have their dtype's C type
    (half is widened to float), which is also called ``A``; the value is converted to the dtype of
    ``out``. The backend's functions ``floor_div``, ``floor_mod``, ``power``, ``logistic`` and, for
    floats, ``wrapped`` may be called like OpenCL's own. Pass a number that is not an integer as a
    constant: ``0.5`` in C is a double, which not every device has.

    Args:
        backend: the ``backend`` that the kernel asked for.
        name: the kernel's name in messages.
        formula: a C expression over the names of inputs and constants; a ``Formula`` has
            variants for signed and unsigned integers, and ``ring=True`` lets them wrap.
        inputs: type by name, in the order in which the kernel gets their buffers; all of one
            dtype, as the spec's ``promote`` makes them.
        out: the type of the result.
        constants: numbers by name, mostly attributes. They are arguments of the program, so one
            program serves all numbers. A Python number takes the type of the inputs, to which a
            float is rounded; a NumPy scalar keeps its own.
        functions: C functions that the expression calls.

    Raises:
        KernelRefusedError: a constant does not fit its type; the op is then decomposed.
        TypeError, ValueError: inputs or constants break these rules.
        BuildError: the device's compiler refuses the program.

    """
    formula = Formula(formula) if isinstance(formula, str) else formula
    numbers = {} if constants is None else constants
    dtype = _find_common_dtype(inputs)
    _check_names([*inputs, *numbers])
    ctype = ctypes.ring(dtype) if formula.ring else ctypes.computed(dtype)
    converted = [
        _make_constant(backend, key, number, dtype, ctype) for key, number in numbers.items()
    ]
    title = f"{name} {dtype}"
    return pointwise.prepare_formula(
        backend.runtime, title, formula, inputs, out, converted, functions
    )


def elementwise_multiple(
    backend: OpenCLBackend,
    name: str,
    statements: str,
    inputs: Mapping[str, TensorType],
    outs: Mapping[str, TensorType],
    constants: Mapping[str, Number] | None = None,
) -> Callable[..., list[DeviceBuffer]]:
    """Return a callable of the inputs' buffers that computes multiple results elementwise.

    ``statements`` are C statements that assign to the names of ``outs``, which have one shape; an
    input has that shape too, or one element. They may declare variables of type ``A``, that of the
    inputs as computed with. Beside the functions that ``elementwise`` names there are ``a_sqrt``
    and ``a_fabs``: OpenCL's functions in a form that CPU drivers vectorize.

        >>> import numpy as np
        >>> from tensorplug.plugin import dtypes as dt
        >>> backend = OpenCLBackend.open(None)
        >>> type_ = TensorType(dt.float32, (2,))
        >>> polar = elementwise_multiple(
        ...     backend,
        ...     "Polar",
        ...     "radius = a_sqrt(x * x + y * y); angle = atan2(y, x);",
        ...     {"x": type_, "y": type_},
        ...     {"radius": type_, "angle": type_},
        ... )
        >>> x, y = (backend.from_host(np.array(values, np.float32)) for values in ([3, 1], [4, 0]))
        >>> [backend.to_host(result).round(3).tolist() for result in polar(x, y)]
        [[5.0, 1.0], [0.9269999861717224, 0.0]]

    Args: as for ``elementwise``, except for
        outs: type by name, in the order in which the kernel returns them.

    Raises: as ``elementwise``, and ValueError if the shapes break these rules.
    """
    numbers = {} if constants is None else constants
    dtype = _find_common_dtype(inputs)
    _check_names([*inputs, *numbers])
    _check_names(list(outs))
    twice = outs.keys() & {*inputs, *numbers}
    if twice:
        raise ValueError(f"{sorted(twice)} name both a result and something else")
    shapes = {output.shape for output in outs.values()}
    fitting = {operand.shape in shapes or operand.size == 1 for operand in inputs.values()}
    if len(shapes) != 1 or fitting != {True}:
        shown = ", ".join(f"{key}={operand}" for key, operand in (*inputs.items(), *outs.items()))
        raise ValueError(
            f"results must have one shape, and inputs this shape or one element: {shown}"
        )
    runtime = backend.runtime
    if not next(iter(outs.values())).size:
        return _produce_all(runtime, list(outs.values()), _write_nothing)
    ctype = ctypes.computed(dtype)
    converted = [
        _make_constant(backend, key, number, dtype, ctype) for key, number in numbers.items()
    ]
    write = joint.launch(runtime, f"{name} {dtype}", statements, inputs, outs, converted, dtype)
    return _produce_all(runtime, list(outs.values()), write)


def _find_common_dtype(inputs: Mapping[str, TensorType]) -> DType:
    dtypes = {operand.dtype for operand in inputs.values()}
    if len(dtypes) != 1:
        shown = ", ".join(f"{name}={operand}" for name, operand in inputs.items()) or "none"
        raise TypeError(f"elementwise takes inputs of one dtype, got {shown}")
    return dtypes.pop()


def _check_names(names: Sequence[str]) -> None:
    for number, name in enumerate(names):
        if not (name.isidentifier() and name.isascii()):
            raise ValueError(f"{name!r} is not a name in C")
        if name in names[:number]:
            raise ValueError(f"{name!r} is both an input and a constant")


def _make_constant(
    backend: OpenCLBackend, name: str, value: Number, inputs: DType, ctype: str
) -> pointwise.Constant:
    """Return ``value`` in the inputs' type as computed with, or in its own if it has one."""
    if isinstance(value, np.generic):
        own = dt.of(value.dtype)
        if own not in backend.dtypes:
            raise KernelRefusedError(f"constant {name!r} is {own}, which {backend.device} lacks")
        ctype = ctypes.computed(own)
        return pointwise.Constant(name, ctype, value.astype(ctypes.host(ctype)))
    if not isinstance(value, bool | int | float):
        raise TypeError(f"constant {name!r} must be a number, got {value!r}")
    if not _fits(value, inputs):
        raise KernelRefusedError(f"constant {name!r} is {value!r}, which does not fit {inputs}")
    with np.errstate(over="ignore"):  # rounded to an infinity, as the expression itself might be
        exact = inputs.numpy.type(value)
    return pointwise.Constant(name, ctype, exact.astype(ctypes.host(ctype)))


def _fits(value: float, dtype: DType) -> bool:
    if dtype.kind == "bool":
        return isinstance(value, bool)
    if dtype.kind != "float":
        limits = np.iinfo(dtype.name)
        return isinstance(value, int) and int(limits.min) <= value <= int(limits.max)
    try:
        float(value)
    except OverflowError:  # an integer larger than every float
        return False
    return True


def program(
    backend: OpenCLBackend,
    source: str,
    inputs: int,
    out: TensorType | Sequence[TensorType],
    constants: Sequence[np.generic | np.ndarray[Any, Any]] = (),
    *,
    items: int,
    heavy: bool = False,
    group: int | None = None,
) -> Callable[..., Any]:
    """Return a callable of the inputs' buffers that runs an OpenCL C program of your own.

    The program has one kernel, called ``run``. For each input and then for each output it takes a
    ``global`` pointer and a ``long``, the offset of the first element in elements, since tensors
    may share memory; then the constants. All arrays are dense and in row-major order; an array
    without elements has a null pointer. The program must not write to inputs. A comment in the
    first line names the program in messages. For multiple passes use multiple programs: the output
    of one is the input of the next.

        >>> import numpy as np
        >>> from tensorplug.plugin import dtypes as dt
        >>> REVERSE = '''// reverse
        ... kernel void run(global const float *x, const long x_at,
        ...                 global float *y, const long y_at, const uint n) {
        ...   const uint i = get_global_id(0);
        ...   if (i < n) y[y_at + i] = x[x_at + n - 1 - i];
        ... }'''
        >>> backend = OpenCLBackend.open(None)
        >>> out = TensorType(dt.float32, (3,))
        >>> reverse = program(backend, REVERSE, 1, out, [np.uint32(3)], items=3)
        >>> x = backend.from_host(np.array([1, 2, 3], np.float32))
        >>> backend.to_host(reverse(x)).tolist()
        [3.0, 2.0, 1.0]

    Args:
        backend: the ``backend`` that the kernel asked for.
        source: the program. Pass sizes and numbers as constants and do not write them into it,
            since every new text is built; ``c_type`` gives the types of elements.
        inputs: how many buffers the callable takes.
        out: the type of the output, or the types of multiple outputs, which come as a list.
        constants: NumPy scalars, whose dtype must be that of the parameter, or arrays that are
            the bytes of a struct.
        items: the number of work-items needed. OpenCL runs whole groups: the kernel must ignore
            work-items whose ``get_global_id(0)`` is not below it.
        heavy: whether a work-item does a lot, such as loop over a row.
        group: the number of work-items in a group, if they cooperate through local memory; the
            program need not be correct for any other number.

    Raises:
        KernelRefusedError: the device does not allow groups of that size, or lacks the local
            memory for them; the op is then decomposed.
        TypeError: a constant has no C type, or the number of arguments is wrong.
        ValueError: ``items`` is not positive although there is something to compute.
        BuildError: the device's compiler refuses the program.

    """
    runtime = backend.runtime
    outs = [out] if isinstance(out, TensorType) else list(out)
    for constant in constants:
        if not isinstance(constant, np.generic | np.ndarray):
            raise TypeError(f"constant {constant!r} has no C type; give a NumPy scalar")
    write: Callable[..., None] = _write_nothing
    if any(output.size for output in outs):
        if items < 1:
            raise ValueError(f"items must be positive, got {items}")
        arrays = inputs + len(outs)
        write = runtime.launch(source, arrays, constants, items, heavy=heavy, group=group)
    if isinstance(out, TensorType):
        return calls.make_producer(runtime, out, write)
    return _produce_all(runtime, outs, write)


def _write_nothing(*_buffers: DeviceBuffer) -> None:
    """Do nothing: the outputs have no elements."""


def _produce_all(
    runtime: Runtime, outs: Sequence[TensorType], write: Callable[..., None]
) -> Callable[..., list[DeviceBuffer]]:
    makers = [runtime.prepare_empty(output) for output in outs]

    def run(*inputs: DeviceBuffer) -> list[DeviceBuffer]:
        results = [make() for make in makers]
        write(*inputs, *results)
        return results

    return run
