"""The hooks through which the core finds this backend and its kernels."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import Backend, BackendUnavailableError, KernelTable, hookimpl, tables_of
from tensorplug_cpu import kernels
from tensorplug_cpu.backend import CpuBackend
from tensorplug_cpu.jit.codegen.settings import is_on
from tensorplug_cpu.kernels import forms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


TABLES = tables_of(kernels, KernelTable, "kernels")


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    """Open the CPU.

    Raises:
        BackendUnavailableError: for a device number other than 0.

    """
    if device not in (None, "0"):
        raise BackendUnavailableError(
            f"backend 'cpu' has one device, number 0, and no device {device!r}; "
            "all cores belong to it"
        )
    return CpuBackend()


@hookimpl
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    """Return the kernels of the CPU backend; none for any other."""
    if backend.name != "cpu":
        return ()
    return TABLES if is_on() else [table for table in TABLES if table is not forms.kernels]


@hookimpl
def tensorplug_diagnostics() -> Mapping[str, str]:
    """Return the versions of NumPy and its BLAS, and the machine."""
    configuration: Any = np.show_config(mode="dicts")
    blas = configuration.get("Build Dependencies", {}).get("blas", {})
    return {
        "numpy": np.__version__,
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".rstrip(),
        "machine": platform.machine() or "unknown",
    }
