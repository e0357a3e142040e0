"""Registers OpenCL runtimes that pip has installed with the loader, after the system's drivers.

The loader reads one folder of .icd files, each of which names a driver's library. Intel's
distribution contains its library, but the .icd file in it names a path that does not exist.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyopencl as cl

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["find_installed", "list_platforms"]

VENDORS: Final = "OCL_ICD_VENDORS"
FILENAMES: Final = "OCL_ICD_FILENAMES"  # Windows has no folder of drivers
SYSTEM: Final = Path("/etc/OpenCL/vendors")
# By distribution, the driver's library on Linux and on Windows.
_RUNTIMES: Final = {"intel-opencl-rt": ("libintelocl.so", "intelocl64.dll")}

_lock = threading.RLock()  # a signal handler may list the devices meanwhile
_asked = False


def find_installed() -> dict[str, Path]:
    """Return the libraries, by distribution, of the drivers that pip has installed.

    These are the ones that the loader does not find by itself; PoCL's is not among them.
    """
    wanted = 1 if sys.platform == "win32" else 0
    found = {}
    for name, libraries in _RUNTIMES.items():
        library = _find_library(name, libraries[wanted])
        if library is not None:
            found[name] = library
    return found


def _find_library(name: str, library: str) -> Path | None:
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        return None
    for file in files:
        if file.name == library:
            place = Path(str(file.locate())).resolve()
            return place if place.exists() else None
    return None


def list_platforms() -> list[cl.Platform]:
    """Return all platforms, including those of ``find_installed``.

    The loader looks for drivers once in a process. If other code has asked it before, it does not
    find the drivers that pip has installed. To make it find them, set ``OCL_ICD_VENDORS`` in the
    environment to a folder with the .icd files of all drivers.
    """
    global _asked  # noqa: PLW0603  # the loader's state is global in the process, too
    with _lock:
        if _asked:
            return cl.get_platforms()
        with _register(find_installed()):
            found = cl.get_platforms()
        _asked = True
        return found


@contextmanager
def _register(drivers: dict[str, Path]) -> Iterator[None]:
    """Let the loader find ``drivers`` in the block, unless the user has chosen the drivers."""
    if not drivers or os.environ.get(VENDORS) or sys.platform == "darwin":
        yield
        return
    if sys.platform == "win32":
        named = [os.environ.get(FILENAMES, ""), *map(str, drivers.values())]
        with _set_variable(FILENAMES, os.pathsep.join(filter(None, named))):
            yield
        return
    with tempfile.TemporaryDirectory(prefix="tensorplug-opencl-") as folder:
        registered = ""
        for file in SYSTEM.glob("*.icd"):
            with suppress(OSError):  # the loader cannot read it either
                Path(folder, file.name).write_bytes(file.read_bytes())
                registered += file.read_text(errors="replace")
        for name, library in drivers.items():
            if library.name not in registered:
                Path(folder, f"tensorplug-{name}.icd").write_text(f"{library}\n", encoding="utf-8")
        with _set_variable(VENDORS, folder):
            yield


@contextmanager
def _set_variable(variable: str, value: str) -> Iterator[None]:
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = before
