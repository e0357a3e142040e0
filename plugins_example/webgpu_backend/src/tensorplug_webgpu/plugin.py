"""The hooks through which tensorplug finds the backend, and kernels of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import (
    Backend,
    BackendUnavailableError,
    DeviceInfo,
    KernelTable,
    Shape,
    TensorType,
    hookimpl,
    specs,
)
from tensorplug_loops.kernels import kernel_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorplug_webgpu.memory import Box

kernels = KernelTable()


@kernels.register(specs.IDENTITY)
def identity(x: Box) -> Any:
    """Return the same memory."""
    return x


@kernels.register(specs.RESHAPE)
def reshape(x: Box, *, shape: Shape) -> Any:
    """Return the same memory in another shape."""
    return x.reshaped(shape)


@kernels.register(specs.EXPAND_DIMS)
def expand_dims(input: Box, *, out: TensorType) -> Any:  # the spec's name
    """Return the same memory in another shape."""
    return input.reshaped(out.shape)


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    """Open an adapter by its number or a part of its name; None is the first, the best one.

    Raises:
        BackendUnavailableError: there is none, with a list of those found; or its driver failed
            its trial.

    """
    try:
        from tensorplug_webgpu import adapters, trial
        from tensorplug_webgpu.backend import WebGPUBackend
        from tensorplug_webgpu.runtime import Runtime
    except (ImportError, OSError) as error:
        raise BackendUnavailableError(f"wgpu does not load: {error}") from error
    adapter = adapters.choose(device)
    return WebGPUBackend(Runtime(adapter, trial.check(adapter)))


@hookimpl
def tensorplug_devices() -> Sequence[DeviceInfo]:
    """Return the adapters, the best one first."""
    from tensorplug_webgpu import adapters

    return adapters.list_infos()


@hookimpl
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    """Return the kernels. The core asks a backend plugin for its own backend only."""
    if backend.name != "webgpu":
        return ()
    from tensorplug_webgpu.backend import WebGPUBackend

    assert isinstance(backend, WebGPUBackend)
    return kernels, kernel_table(
        WebGPUBackend.compile_group,
        dtypes=backend.dtypes,
        own=[kernels],
        arrays=backend.runtime.arrays,
    )


@hookimpl
def tensorplug_diagnostics() -> Mapping[str, str]:
    """Return the version of wgpu, and of each adapter's driver."""
    try:
        import wgpu

        from tensorplug_webgpu import adapters
    except (ImportError, OSError) as error:
        return {"wgpu": f"does not load: {error}"}
    try:
        found = {adapters.name_of(each): each.info["description"] for each in adapters.find()}
    except BackendUnavailableError as error:
        found = {"adapters": str(error)}
    return {"wgpu": wgpu.__version__, **found}
