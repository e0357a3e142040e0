"""A backend whose memory is NumPy's, and whose compiler of groups is the suite's interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import Backend, BackendUnavailableError, TensorType, hookimpl
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.interpreter import interpreter
from tensorplug_loops.kernels import kernel_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tensorplug.plugin import Group, KernelTable

Array = np.ndarray[Any, Any]


class Interpreted:
    """It computes slowly, and forms groups only where a program asks for them."""

    name, device = "interpreted", "the interpreter of groups"
    dtypes = dt.BOOL | dt.INTEGER | dt.INEXACT - {dt.bfloat16}
    survives_fork = True
    least_group = 1 << 30

    def from_host(self, array: Array) -> Array:
        return array.copy()

    def to_host(self, buffer: Array) -> Array:
        return buffer

    def describe(self, buffer: object) -> TensorType:
        if not isinstance(buffer, np.ndarray):
            raise TypeError(f"{type(buffer).__name__} is not an array")
        return TensorType(dt.of(buffer.dtype), buffer.shape)

    def allocation(self, buffer: Array) -> tuple[int, int]:
        owner: Any = buffer
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return id(owner), owner.nbytes

    def synchronize(self) -> None:
        pass

    def memory(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        pass

    def compile_group(self, group: Group) -> Callable[..., Sequence[Any]] | None:
        if any(each.into is not None for each in group.outputs):
            return None
        return interpreter(group)


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    if device not in (None, "0"):
        raise BackendUnavailableError(f"there is no device {device!r}, only device 0")
    return Interpreted()


@hookimpl
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    return (kernel_table(backend.compile_group),) if isinstance(backend, Interpreted) else ()
