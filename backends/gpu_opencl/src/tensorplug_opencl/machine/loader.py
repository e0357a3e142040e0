"""Registers OpenCL runtimes that pip has installed with the loader, after the system's drivers.

The loader reads one folder of .icd files, each of which names a driver's library. Intel's
distribution contains its library, but the .icd file in it names a path that does not exist.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyopencl as cl

from tensorplug.plugin import BackendWarning, Lock, warn
from tensorplug_opencl.machine import cache_folder, driver_caches

if TYPE_CHECKING:
    from collections.abc import Iterator


VENDORS: Final = "OCL_ICD_VENDORS"
FILENAMES: Final = "OCL_ICD_FILENAMES"  # Windows has no folder of drivers
SYSTEM: Final = Path("/etc/OpenCL/vendors")
# By distribution, the driver's library on Linux and on Windows.
_RUNTIMES: Final = {"intel-opencl-rt": ("libintelocl.so", "intelocl64.dll")}

_WITHIN: Final = ("tensorplug_opencl",)

_lock = Lock()  # a signal handler may list the devices meanwhile
_asker: int | None = None  # the process that asked the loader first


def find_installed() -> dict[str, Path]:
    """Return the libraries, by distribution, of the drivers that pip has installed.

    These are the ones that the loader does not find by itself; PoCL's is not among them.
    """
    kind = 1 if sys.platform == "win32" else 0
    libraries_by_name = {}
    for name, libraries in _RUNTIMES.items():
        library = _find_library(name, libraries[kind])
        if library is not None:
            libraries_by_name[name] = library
    return libraries_by_name


def _find_library(name: str, library: str) -> Path | None:
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        return None
    for file in files:
        if file.name == library:
            resolved = Path(str(file.locate())).resolve()
            return resolved if resolved.exists() else None
    return None


def list_platforms() -> list[cl.Platform]:
    """Return all platforms, including those of ``find_installed``.

    The loader looks for drivers once in a process. If other code has asked it before, it does not
    find the drivers that pip has installed. To make it find them, set ``OCL_ICD_VENDORS`` in the
    environment to a folder with the .icd files of all drivers.
    """
    global _asker  # noqa: PLW0603  # the loader's state is global in the process, too
    with _lock:
        if _asker is not None:
            return cl.get_platforms()
        driver_caches.provide()
        with _register(find_installed()):
            platforms = cl.get_platforms()
        _asker = os.getpid()
        return platforms


def is_inherited() -> bool:
    """Return whether this is a forked child, and the drivers were loaded in its parent."""
    return _asker not in (None, os.getpid())


@contextmanager
def _register(drivers: dict[str, Path]) -> Iterator[None]:
    """Let the loader find ``drivers`` in the block, unless the user has chosen the drivers.

    The loader gets regular files only: it would wait forever for the other end of a FIFO.
    """
    if sys.platform == "darwin":
        yield
        return
    if sys.platform == "win32":
        named = [os.environ.get(FILENAMES, ""), *map(str, drivers.values())]
        with _set_variable(FILENAMES, os.pathsep.join(filter(None, named))):
            yield
        return
    chosen = os.environ.get(VENDORS)
    entries = _list_entries(chosen)
    kept = [entry for entry in entries if not _leave_out(entry)]
    added = {} if chosen else drivers
    if not added and len(kept) == len(entries):
        yield
        return
    with _make_folder(kept, added) as folder:
        value = str(folder or _name_without_folder(kept, added))
        with _set_variable(VENDORS, value):
            yield


def _list_entries(chosen: str | None) -> list[Path]:
    """Return the files that the loader opens for this value of ``OCL_ICD_VENDORS``."""
    vendors = Path(chosen) if chosen else SYSTEM
    if chosen and not vendors.is_dir():
        return [vendors]  # a library, or one .icd file
    return sorted(vendors.glob("*.icd"))


def _leave_out(entry: Path) -> bool:
    """Return whether an entry, or the library that it names, is not a regular file; then warn."""
    about, kind = "it", _name_kind(entry)
    if not kind and entry.suffix == ".icd":
        with suppress(OSError):  # the loader cannot read it either
            library = entry.read_text("utf-8", "replace").partition("\n")[0].strip()
            if "/" in library:
                about, kind = f"its library {library}", _name_kind(Path(library))
    if kind:
        what = f"{entry} is left out of the OpenCL drivers: {about} is {kind}, not a regular file"
        warn(what, BackendWarning, within=_WITHIN)
    return bool(kind)


def _name_kind(path: Path) -> str:
    """Return what kind of thing a path leads to; "" for a regular file, or if nothing is there."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return ""
    kinds = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}
    return "" if stat.S_ISREG(mode) else kinds.get(stat.S_IFMT(mode), "a device")


@contextmanager
def _make_folder(entries: list[Path], drivers: dict[str, Path]) -> Iterator[Path | None]:
    """Return a temporary folder of .icd files in the block; None if there is no place for one."""
    with ExitStack() as stack:
        made = None
        for parent in (None, cache_folder.find_folder()):
            try:
                prefix = "tensorplug-opencl-"
                folder = tempfile.TemporaryDirectory(prefix=prefix, dir=parent)
                place = Path(stack.enter_context(folder))
                _fill_folder(place, entries, drivers)
            except OSError:  # read-only, full, or none at all
                continue
            made = place
            break
        yield made


def _fill_folder(folder: Path, entries: list[Path], drivers: dict[str, Path]) -> None:
    """Write the .icd files of ``entries`` and of ``drivers`` into a new folder."""
    registered = ""
    for entry in entries:
        try:
            content = entry.read_bytes()
        except OSError:  # the loader cannot read it either
            continue
        (folder / entry.name).write_bytes(content)
        registered += content.decode(errors="replace")
    for name, library in drivers.items():
        if library.name not in registered:
            (folder / f"tensorplug-{name}.icd").write_text(f"{library}\n", encoding="utf-8")


def _name_without_folder(entries: list[Path], drivers: dict[str, Path]) -> str:
    """Return a value of ``OCL_ICD_VENDORS`` for one driver; warn of those that are left out."""
    one, *others = [*filter(Path.exists, entries), *drivers.values(), Path(os.devnull)]
    if len(others) > 1:
        what = (
            f"of the OpenCL drivers, only {one} is used: to name all of them takes a folder for "
            "temporary files, and none can be written to (TMPDIR)"
        )
        warn(what, BackendWarning, within=_WITHIN)
    return str(one)


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
