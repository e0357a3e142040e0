"""The identity of a device, on which built programs and verdicts depend."""

from __future__ import annotations

import hashlib
import os
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from tensorplug_opencl.machine import processor

if TYPE_CHECKING:
    import pyopencl as cl


_FACTS: Final = ("name", "vendor", "version", "driver_version")


def find_version() -> str:
    """Return the version of this distribution."""
    try:
        return version("tensorplug-opencl")
    except PackageNotFoundError:  # its source folder is on the path, and nothing is installed
        return "unknown"


def read_facts(device: cl.Device) -> dict[str, str]:
    """Return, by name, the facts that distinguish ``device`` and its driver from others.

    Two devices of one model have the same facts: what is true for one is true for the other.
    """
    platform = device.platform
    facts = {name: str(getattr(device, name)).strip() for name in _FACTS}
    facts["platform"] = platform.name.strip()
    facts["platform version"] = platform.version.strip()
    return facts


def start_key(device: cl.Device, *more: str) -> hashlib._Hash:
    """Return the digest of ``device``, the processor, the compiler's options and ``more``."""
    parts = (
        *read_facts(device).values(),
        processor.compute_digest(),
        os.environ.get("PYOPENCL_BUILD_OPTIONS", ""),  # pyopencl adds them
        *more,
    )
    return hashlib.sha256("\0".join(parts).encode())
