"""The user's cache folder on disk: built programs, verdicts on devices, notes of attempts.

The backend runs or trusts its contents. So it does not use a folder or a file that belongs to
another user, or that other users may write to.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from tensorplug.plugin import BackendWarning, warn

__all__ = ["CACHE", "LEFTOVER", "find_folder", "open_trusted", "prune_leftovers", "read", "write"]

CACHE: Final = "TENSORPLUG_OPENCL_CACHE"
LEFTOVER: Final = ".part"  # the suffix of a file that is being written
LEFTOVER_SECONDS: Final = 3600  # if a file is older, its process was killed
_OFF: Final = {"0", "off", "no", "false"}
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH

_refused: set[Path] = set()  # folders that the user was warned of


def find_folder() -> Path | None:
    """Return the folder, which may not exist yet.

    None if the environment turns it off, if the user has no home, or if another user could have
    written to it.
    """
    place = _choose_place()
    return place if place is not None and _is_trusted(place) else None


def _choose_place() -> Path | None:
    asked = os.environ.get(CACHE, "").strip()
    if asked.lower() in _OFF or os.environ.get("PYOPENCL_NO_CACHE"):
        return None
    if asked:
        return Path(asked)
    caches = _find_caches()
    return None if caches is None else caches / "tensorplug-opencl"


def _find_caches() -> Path | None:
    """Return the system's folder for the user's caches; None if it is not known."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else None
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"])
    home = os.environ.get("HOME")
    if not home:
        return None
    return Path(home, "Library/Caches" if sys.platform == "darwin" else ".cache")


def _is_trusted(folder: Path) -> bool:
    """Return whether ``folder`` belongs to this user or does not exist yet; else warn once."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return True
    except OSError as error:
        reason = str(error)
    else:
        reason = (
            _explain_distrust(status) if stat.S_ISDIR(status.st_mode) else "it is not a folder"
        )
    if reason and folder not in _refused:
        _refused.add(folder)
        warn(
            f"{folder} is not used to keep OpenCL programs: {reason}. "
            f"Set {CACHE} to another folder, or to 0 to keep no programs",
            BackendWarning,
            within=("tensorplug_opencl",),
        )
    return not reason


def _explain_distrust(status: os.stat_result) -> str:
    """Return why a file or folder with ``status`` is not trusted; "" if it is."""
    if not hasattr(os, "geteuid"):  # Windows, which uses access control lists
        return ""
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    if status.st_mode & _OTHERS_WRITE:
        return "other users may write to it (chmod go-w forbids that)"
    return ""


def open_trusted(file: Path, flags: int = os.O_RDONLY) -> int | None:
    """Return a descriptor of ``file``; None if it does not exist or is not trusted."""
    more = ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")  # a pipe must not block
    follow = sum(getattr(os, name, 0) for name in more)
    try:
        descriptor = os.open(file, flags | follow)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or _explain_distrust(status):
        os.close(descriptor)
        return None
    return descriptor


def read(file: Path) -> bytes | None:
    """Return the contents of ``file``; None if it does not exist or is not trusted."""
    descriptor = open_trusted(file)
    if descriptor is None:
        return None
    with suppress(OSError), os.fdopen(descriptor, "rb") as stream:
        return stream.read()
    return None


def write(file: Path, content: bytes) -> bool:
    """Write ``content`` to ``file`` atomically; return whether that worked."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(suffix=LEFTOVER, dir=file.parent)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError:
        return False
    return True


def prune_leftovers(folder: Path) -> None:
    """Delete partly written files of killed processes."""
    oldest = time.time() - LEFTOVER_SECONDS
    for file in folder.glob(f"*{LEFTOVER}"):
        with suppress(OSError):  # another process may delete it too
            if file.stat().st_mtime < oldest:
                file.unlink()
