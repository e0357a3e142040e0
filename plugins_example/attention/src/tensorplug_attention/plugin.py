"""The hook through which tensorplug finds the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Backend, KernelTable, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable


@hookimpl
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    """Return the kernels for a backend that is being opened; none for an unknown one.

    The backend need not be installed, so the import is here.
    """
    if backend.name == "minimal":
        from tensorplug_attention.kernels import kernels

        return (kernels,)
    return ()
