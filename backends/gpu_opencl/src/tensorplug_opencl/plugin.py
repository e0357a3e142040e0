"""The hooks through which tensorplug finds this backend.

The hooks import pyopencl late. So if its driver library is missing, this module still imports, and
opening the backend fails with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Backend, BackendUnavailableError, DeviceInfo, KernelTable, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    """Open an OpenCL device by its number; None is the first, the best one.

    Raises:
        BackendUnavailableError: when there is no such device, with the list of those found.

    """
    from tensorplug_opencl.trial import parent

    parent.begin()
    try:
        from tensorplug_opencl.backend import OpenCLBackend
    except ImportError as error:
        raise _explain_no_pyopencl(error) from error
    return OpenCLBackend.open(device)


@hookimpl
def tensorplug_devices() -> Sequence[DeviceInfo]:
    """Return the devices of all platforms, the best one first.

    Raises:
        BackendUnavailableError: when pyopencl or the loader fails.

    """
    try:
        from tensorplug_opencl.device import list_infos
    except ImportError as error:
        raise _explain_no_pyopencl(error) from error
    return list_infos()


def _explain_no_pyopencl(error: ImportError) -> BackendUnavailableError:
    return BackendUnavailableError(
        f"OpenCL is not usable here, because pyopencl does not load: {error}"
    )


@hookimpl
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    """Return the kernel tables of all families, for this backend only."""
    if backend.name != "opencl":
        return ()
    from tensorplug_opencl.catalogue import collect_tables

    return collect_tables()


@hookimpl
def tensorplug_diagnostics() -> Mapping[str, str]:
    """Return the versions of pyopencl, of each platform and of each device's driver."""
    try:
        from tensorplug_opencl.device import collect_diagnostics
    except ImportError as error:
        return {"pyopencl": f"does not load: {error}"}
    return collect_diagnostics()
