"""The caches that drivers keep on disk, which are not ours and without which some do not work.

PoCL finds no device if it cannot make its folder, and compiles nothing if the folder is full.
Other drivers do without.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from tensorplug.plugin import BackendWarning, warn

POCL: Final = "Portable Computing Language"
# By platform: the variable that names the folder, and the default folder, below the user's cache
# folder (or below the home folder, after "~").
_CACHES: Final = {
    POCL: ("POCL_CACHE_DIR", "pocl/kcache"),
    "NVIDIA CUDA": ("CUDA_CACHE_PATH", "~/.nv/ComputeCache"),
    "rusticl": ("MESA_SHADER_CACHE_DIR", "mesa_shader_cache"),
    "Intel(R) OpenCL Graphics": ("NEO_CACHE_DIR", "neo_compiler_cache"),
    "AMD Accelerated Parallel Processing": ("AMD_COMGR_CACHE_DIR", "comgr"),
}
_LEAST: Final = bytes(1 << 20)  # what a driver writes for a few programs


def find_folder(platform: str) -> Path | None:
    """Return the folder in which a platform's driver keeps what it compiles; None: not known."""
    if platform not in _CACHES:
        return None
    variable, default = _CACHES[platform]
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    inner = default if default.startswith("~") else str(Path(caches, default))
    folder = Path(os.environ.get(variable) or inner)
    try:
        return folder.expanduser()
    except RuntimeError:  # the user has no home
        return Path(tempfile.gettempdir(), default.removeprefix("~/"))


def explain(platform: str) -> str:
    """Return why a platform's driver can keep no files, with the remedy; "" if it can."""
    folder = find_folder(platform)
    obstacle = "" if folder is None else _find_obstacle(folder)
    if not obstacle:
        return ""
    return (
        f"the driver of {platform} cannot keep files in {folder}: {obstacle}. "
        f"Set {_CACHES[platform][0]} to a folder that can be written to"
    )


def _find_obstacle(folder: Path) -> str:
    """Return why nothing can be written into ``folder``, once it is made; "" if it can."""
    try:
        while not folder.exists():
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(_LEAST)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def provide() -> None:
    """Give PoCL a temporary folder until this process ends, if it cannot write to its own.

    This comes before the loader lists the drivers, and before the process of a trial starts.
    """
    variable, _ = _CACHES[POCL]
    reason = explain(POCL)
    if not reason:
        return
    try:
        made = tempfile.mkdtemp(prefix="tensorplug-pocl-")
    except OSError:  # `explain` says what is wrong where PoCL then fails
        return
    atexit.register(_remove, made, os.getpid())
    if _find_obstacle(Path(made)):
        return
    if os.environ.get(variable):
        what = f"{reason}. Until this process ends, it keeps them in {made}"
        warn(what, BackendWarning, within=("tensorplug_opencl",))
    os.environ[variable] = made


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # no forked child
        shutil.rmtree(folder, ignore_errors=True)
