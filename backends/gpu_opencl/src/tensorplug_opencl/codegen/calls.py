"""Callables that most prepared kernels return: they make the output, write and return it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from tensorplug.plugin import DType, KernelRefusedError, Scalar, TensorType
from tensorplug_opencl.codegen import templates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug_opencl.codegen.templates import Array, Index
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime

    Call = Callable[..., DeviceBuffer]


T = TypeVar("T")

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
    heavy: bool = False,
) -> Launch:
    """Return the launch of a program that has ``sizes`` by name as constants.

    ``sizes["items"]``, the first size, is the number of work-items. Each runs ``body`` with its
    number as ``i``.
    """
    text = templates.write_program(
        title,
        arrays,
        templates.declare_indices(*sizes),
        _ITEM + body,
        index=index,
        declarations=declarations,
    )
    constants = [index.type(size) for size in sizes.values()]
    return runtime.launch(text, len(arrays), constants, sizes["items"], heavy=heavy)


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


def make_producer(runtime: Runtime, out: TensorType, write: Callable[..., None]) -> Call:
    """Return a callable of input buffers; ``write`` gets them, then the output's buffer."""
    make = runtime.prepare_empty(out)

    def run(*inputs: DeviceBuffer) -> DeviceBuffer:
        result = make()
        write(*inputs, result)
        return result

    return run


def make_empty(runtime: Runtime, out: TensorType) -> Call:
    """Return a callable that makes ``out``, which has no elements."""
    make = runtime.prepare_empty(out)

    def run(*_inputs: DeviceBuffer) -> DeviceBuffer:
        return make()

    return run


def make_constant(runtime: Runtime, out: TensorType, value: Scalar = 0) -> Call:
    """Return a callable that fills ``out`` with ``value`` and ignores its inputs."""
    filling = make_element(value, out.dtype)
    return make_producer(runtime, out, lambda *buffers: runtime.fill(buffers[-1], filling))


def make_element(value: Scalar, dtype: DType) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Return ``value`` as an array of one element; if it does not fit, it wraps or is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array(value).astype(dtype.numpy)
