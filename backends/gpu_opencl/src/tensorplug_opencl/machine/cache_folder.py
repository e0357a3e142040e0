"""The user's cache folder on disk: built programs, verdicts on devices, notes of attempts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import disk_cache

if TYPE_CHECKING:
    from pathlib import Path


CACHE: Final = "TENSORPLUG_OPENCL_CACHE"
LEFTOVER: Final = disk_cache.LEFTOVER
_FOLDER: Final = disk_cache.CacheFolder(
    CACHE, "tensorplug-opencl", "OpenCL programs", ("tensorplug_opencl",)
)

open_trusted = disk_cache.open_trusted
prune_leftovers = disk_cache.prune_leftovers
read = disk_cache.read
write = disk_cache.write


def find_folder() -> Path | None:
    """Return the folder; None also if pyopencl is told to keep no programs."""
    return None if os.environ.get("PYOPENCL_NO_CACHE") else _FOLDER.find()
