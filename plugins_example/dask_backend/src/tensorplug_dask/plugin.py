"""The hooks through which tensorplug finds this backend, its kernels and its versions."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import dask
import numpy as np

from tensorplug.plugin import Backend, BackendUnavailableError, KernelTable, hookimpl, tables_of
from tensorplug_dask import kernels, settings
from tensorplug_dask.backend import DaskBackend

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    """Open the only device, as the environment says.

    Raises:
        BackendUnavailableError: for any other device ("dask:1"), and where no scheduler answers.
        SettingsError: an environment variable holds what it does not allow.

    """
    if device not in (None, "0"):
        raise BackendUnavailableError(
            f"there is no device {device!r}, only device 0; to choose a scheduler, set "
            f"{settings.SCHEDULER}"
        )
    return DaskBackend(settings.read())


@hookimpl
def tensorplug_kernels() -> Iterable[KernelTable]:
    """Return the kernels. The core asks a backend plugin for its own backend only."""
    return tables_of(kernels, KernelTable, "kernels")


@hookimpl
def tensorplug_diagnostics() -> Mapping[str, str]:
    """Return the versions of Dask, of distributed, if it is installed, and of NumPy."""
    try:
        distributed = version("distributed")
    except PackageNotFoundError:
        distributed = "not installed"
    return {"dask": dask.__version__, "distributed": distributed, "numpy": np.__version__}
