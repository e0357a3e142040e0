"""All kernel tables: the modules of this package are walked, so nobody keeps a list."""

from __future__ import annotations

import importlib
import pkgutil

from tensorplug.tables import KernelTable
from tensorplug_opencl import kernels

__all__ = ["tables"]


def tables() -> list[KernelTable]:
    """Return the table called ``kernels`` of every family module."""
    names = sorted(info.name for info in pkgutil.iter_modules(kernels.__path__))
    modules = [importlib.import_module(f"{kernels.__name__}.{name}") for name in names]
    found = [vars(module).get("kernels") for module in modules]
    return [each for each in found if isinstance(each, KernelTable)]
