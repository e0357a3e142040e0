"""A backend of tensorplug on Dask arrays, for data that the memory of one machine cannot hold.

It needs no import: ``tensorplug.set_backend("dask")`` finds it. The functions here convert Dask
arrays to tensors and back.
"""

from __future__ import annotations

from tensorplug_dask import importing as _importing  # noqa: F401  # first: see there
from tensorplug_dask.handover import from_dask, persist, to_dask

__all__ = ["from_dask", "persist", "to_dask"]
