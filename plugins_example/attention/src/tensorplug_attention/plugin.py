"""The hook through which tensorplug finds the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Backend, KernelTable, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable


@hookimpl
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    """Return the kernels for a backend that is being opened; none for an unknown one.

    Neither backend need be installed, so the imports are here.
    """
    if backend.name == "cpu":
        from tensorplug_attention.kernels import cpu

        return (cpu.kernels,)
    if backend.name == "opencl":
        from tensorplug_attention.kernels import opencl

        return (opencl.kernels,)
    return ()
