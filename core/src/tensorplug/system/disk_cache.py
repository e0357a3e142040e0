"""The user's folders for what is compiled: kept on disk, so that the next process finds it.

A process runs or trusts what it finds there. So a folder or a file is not used if it belongs to
another user, or if other users may write to it; and a file that holds code is sealed with a
digest of what it is for.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from tensorplug.errors import BackendWarning
from tensorplug.system.notices import warn

__all__ = [
    "LEFTOVER",
    "CacheFolder",
    "SealedFiles",
    "open_trusted",
    "prune_leftovers",
    "read",
    "write",
]

LEFTOVER: Final = ".part"  # the suffix of a file that is being written
LEFTOVER_SECONDS: Final = 3600  # if a file is older, its process was killed
KEPT_BYTES: Final = 512 << 20  # in total; beyond that, the least recently used files are deleted
_PRUNE_EVERY: Final = 64  # files that this process has written
_DIGEST: Final = hashlib.sha256().digest_size
_OFF: Final = {"0", "off", "no", "false"}
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH

_found: Final[dict[Path, CacheFolder]] = {}  # whose folder it is
_refused: set[tuple[str, Path | None]] = set()  # folders that the user was warned of


class CacheFolder:
    """A folder for one purpose.

    Args:
        variable: of the environment: another folder, or ``0`` for none.
        name: of the folder in the user's folder for caches.
        what: is kept there, for messages.
        within: the packages that a warning does not point at (``warn``).

    """

    def __init__(self, variable: str, name: str, what: str, within: tuple[str, ...]) -> None:
        self.variable = variable
        self._name = name
        self._what = what
        self._within = within

    def find(self) -> Path | None:
        """Return the folder, which may not exist yet.

        None if the environment turns it off, if the user has no home, or if another user could
        have written to it; of both, this warns once.
        """
        asked = os.environ.get(self.variable, "").strip()
        if asked.lower() in _OFF:
            return None
        caches = None if asked else _find_caches()
        if not asked and caches is None:
            missing = "LOCALAPPDATA" if sys.platform == "win32" else "HOME"
            self.refuse(None, f"{missing} is not set")
            return None
        folder = Path(caches or "", asked or self._name)
        reason = _explain_folder(folder)
        if reason:
            self.refuse(folder, reason)
        _found[folder] = self
        return None if reason else folder

    def refuse(self, place: Path | None, reason: str) -> None:
        """Warn, once for each ``place``, that nothing is kept there."""
        if (self._name, place) in _refused:
            return
        _refused.add((self._name, place))
        subject = f"{place} is not" if place else "no folder is"
        warn(
            f"{subject} used to keep {self._what}: {reason}. "
            f"Set {self.variable} to another folder, or to 0 for none",
            BackendWarning,
            within=self._within,
        )


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


def _explain_folder(folder: Path) -> str:
    """Return why a folder is not trusted; "" if it is, or does not exist yet."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return _explain_distrust(status) if stat.S_ISDIR(status.st_mode) else "it is not a folder"


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
    """Write ``content`` to ``file`` atomically; return whether that worked.

    If it did not, and ``CacheFolder.find`` has found its folder, this warns once.
    """
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
    except OSError as error:
        folder = _found.get(file.parent)
        if folder is not None:
            folder.refuse(file.parent, error.strerror or str(error))
        return False
    return True


def prune_leftovers(folder: Path) -> None:
    """Delete partly written files of killed processes."""
    oldest = time.time() - LEFTOVER_SECONDS
    for file in folder.glob(f"*{LEFTOVER}"):
        with suppress(OSError):  # another process may delete it too
            if file.stat().st_mtime < oldest:
                file.unlink()


class SealedFiles:
    """Files of code in a folder, by key: the hexadecimal digest of what each is for.

    A file has a digest of its key and the content, then the content: who loads it may crash on a
    truncated one, and would run what another program compiled without complaint. Files appear
    whole, so several processes may read and write. If the folder is None or not writable,
    nothing is kept.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._written = 0

    def _file(self, key: str) -> Path | None:
        return None if self._folder is None else self._folder / f"{key}.bin"

    def find(self, key: str) -> bytes | None:
        """Return the content for ``key``; None if there is no intact file."""
        file = self._file(key)
        content = None if file is None else read(file)
        if file is None or content is None:
            return None
        with suppress(OSError):
            os.utime(file)  # it counts as used now
        digest, code = content[:_DIGEST], content[_DIGEST:]
        return code if code and digest == _seal(key, code) else None

    def keep(self, key: str, content: bytes) -> None:
        """Save the content for ``key``."""
        file = self._file(key)
        if file is None or not content or not write(file, _seal(key, content) + content):
            return
        if self._written % _PRUNE_EVERY == 0:
            prune_leftovers(file.parent)
            with suppress(OSError):
                prune(file.parent, KEPT_BYTES)
        self._written += 1

    def forget(self, key: str) -> None:
        """Delete the file for ``key``, which cannot be loaded."""
        file = self._file(key)
        if file is not None:
            with suppress(OSError):
                file.unlink()


def _seal(key: str, content: bytes) -> bytes:
    """Return the digest that ties ``content`` to its key."""
    return hashlib.sha256(bytes.fromhex(key) + content).digest()


def prune(folder: Path, kept: int) -> None:
    """Delete the least recently used files, until three quarters of ``kept`` bytes remain."""
    files = [(path.stat(), path) for path in folder.glob("*.bin")]
    total = sum(status.st_size for status, _ in files)
    if total <= kept:
        return
    for status, file in sorted(files, key=lambda entry: entry[0].st_mtime):
        if total <= kept * 3 // 4:
            return
        file.unlink(missing_ok=True)  # another process may delete it, too
        total -= status.st_size
