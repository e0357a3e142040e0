"""Callables that most prepared kernels return: they make the output, write and return it.

A kernel that only writes its output says no more than how, in a table of ``Kernels``.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from tensorplug.plugin import (
    DType,
    KernelRefusedError,
    KernelSpec,
    KernelTable,
    Scalar,
    TensorType,
)
from tensorplug_opencl.codegen import templates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tensorplug_opencl.codegen.templates import Array, Index
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime

    Call = Callable[..., DeviceBuffer]
    Write = Callable[..., None]  # of the inputs' buffers and the output's
    Constant = tuple[str, str, np.generic | np.ndarray[Any, Any]]  # C type, name, value


T = TypeVar("T")


class Kernels(KernelTable):
    """Kernels, most of which write one output."""

    def write(
        self, spec: KernelSpec, *, dtypes: Iterable[DType] | None = None
    ) -> Callable[[Callable[..., Write]], Callable[..., Call]]:
        """Decorate a function of input types, ``backend`` and ``out`` that returns what writes.

        That is a callable of the inputs' buffers and the output's, such as a ``Launch``. The
        function is not called for an output without elements: there is nothing to write.
        """

        def decorate(function: Callable[..., Write]) -> Callable[..., Call]:
            @wraps(function)
            def prepare(*types: Any, **asked: Any) -> Call:
                runtime, out = asked["backend"].runtime, asked["out"]
                write = function(*types, **asked) if out.size else _write_nothing
                return make_producer(runtime, out, write)

            return self.prepare(spec, dtypes=dtypes)(prepare)

        return decorate


def _write_nothing(*_buffers: DeviceBuffer) -> None:
    """Leave an output without elements as it is."""


_ITEM: Final = "  const index_t i = get_global_id(0);\n  if (i >= items) return;\n"


def launch_sized(
    runtime: Runtime,
    title: str,
    arrays: Sequence[Array],
    sizes: Mapping[str, int],
    body: str,
    *,
    index: Index,
    declarations: str = "",
    constants: Sequence[Constant] = (),
    heavy: bool = False,
) -> Launch:
    """Return the launch of a program that has ``sizes`` by name as constants, then ``constants``.

    ``sizes["items"]``, the first size, is the number of work-items. Each runs ``body`` with its
    number as ``i``.
    """
    others = [f"const {ctype} {name}" for ctype, name, _ in constants]
    text = templates.write_program(
        title,
        arrays,
        [*templates.declare_indices(*sizes), *others],
        _ITEM + body,
        index=index,
        declarations=declarations,
    )
    numbers = [*map(index.type, sizes.values()), *(number for *_, number in constants)]
    return runtime.launch(text, len(arrays), numbers, sizes["items"], heavy=heavy)


def shrink_until_allowed(prepare: Callable[[int], T], size: int, least: int = 1) -> T:
    """Call ``prepare`` with the size of a group, and halve the size while the device refuses it.

    Raises:
        KernelRefusedError: the device does not even allow ``least``.

    """
    while True:
        try:
            return prepare(size)
        except KernelRefusedError:  # the device does not allow that many work-items
            if size <= least:
                raise
            size //= 2


def make_producer(runtime: Runtime, out: TensorType, write: Write) -> Call:
    """Return a callable of input buffers; ``write`` gets them, then the output's buffer."""
    make = runtime.prepare_empty(out)

    def run(*inputs: DeviceBuffer) -> DeviceBuffer:
        result = make()
        write(*inputs, result)
        return result

    return run


def make_empty(runtime: Runtime, out: TensorType) -> Call:
    """Return a callable that makes ``out``, which has no elements."""
    return make_producer(runtime, out, _write_nothing)


def make_zeros(runtime: Runtime, out: TensorType) -> Call:
    """Return a callable that fills ``out`` with zeros and ignores its inputs."""
    return make_producer(runtime, out, fill_with(runtime, out.dtype))


def fill_with(runtime: Runtime, dtype: DType, value: Scalar = 0) -> Write:
    """Return what fills the output with ``value`` and ignores its inputs."""
    element = make_element(value, dtype)
    return lambda *buffers: runtime.fill(buffers[-1], element)


def make_element(value: Scalar, dtype: DType) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Return ``value`` as an array of one element; if it does not fit, it wraps or is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array(value).astype(dtype.numpy)
