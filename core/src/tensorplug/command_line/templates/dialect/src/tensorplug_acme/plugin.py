"""The hooks through which tensorplug finds the backend, and kernels of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorplug.plugin import (
    Backend,
    BackendUnavailableError,
    KernelTable,
    Shape,
    TensorType,
    hookimpl,
    specs,
)
from tensorplug_loops import native
from tensorplug_loops.kernels import kernel_table

from tensorplug_acme.backend import AcmeBackend
from tensorplug_acme.device import Box

kernels = KernelTable()  # REPLACE: add what the device does better than compiled loops


@kernels.register(specs.IDENTITY)
def identity(x: Box) -> Any:
    """Return the same memory."""
    return x


@kernels.register(specs.RESHAPE)
def reshape(x: Box, *, shape: Shape) -> Any:
    """Return the same memory in another shape."""
    return Box(x.array.reshape(shape))


@kernels.register(specs.EXPAND_DIMS)
def expand_dims(input: Box, *, out: TensorType) -> Any:
    """Return the same memory in another shape."""
    return reshape(input, shape=out.shape)


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    """Open a device, the first if ``None``; raise ``BackendUnavailableError`` if there is none."""
    if device not in (None, "0"):  # REPLACE: ask the driver, and tell the user what to do
        raise BackendUnavailableError(f"there is no device {device!r}, only device 0")
    try:
        native.command()
    except native.CompilationError as error:
        raise BackendUnavailableError(str(error)) from error
    return AcmeBackend()


@hookimpl
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    """Return the kernels. The core asks a backend plugin for its own backend only."""
    return kernels, kernel_table(AcmeBackend.compile_group, own=[kernels])
