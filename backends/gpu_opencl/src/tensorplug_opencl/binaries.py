"""Built programs on disk, so that the next process need not ask the compiler.

pyopencl keeps binaries for some drivers and leaves the others to their own caches. Those of PoCL
and NVIDIA keep what their compilers make, but run the front end for every program to find it:
with PoCL that takes 80 ms, and loading a binary 2.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyopencl as cl

__all__ = ["CACHE", "Binaries", "place"]

CACHE: Final = "TENSORPLUG_OPENCL_CACHE"
KEPT_BYTES: Final = 512 << 20  # in all; beyond, what was not used for longest goes
_FORMAT: Final = b"1"
_OFF: Final = {"0", "off", "no", "false"}
_PRUNE_EVERY: Final = 64  # programs that this process has put there
_DIGEST: Final = hashlib.sha256().digest_size


def place() -> Path | None:
    """Return the folder of the binaries, None where the environment wants none."""
    asked = os.environ.get(CACHE, "").strip()
    if asked.lower() in _OFF or os.environ.get("PYOPENCL_NO_CACHE"):
        return None
    return Path(asked) if asked else _caches() / "tensorplug-opencl"


def _caches() -> Path:
    """Return where programs put what they can make again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or tempfile.gettempdir())
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"])
    home = os.environ.get("HOME") or tempfile.gettempdir()
    return Path(home, "Library/Caches" if sys.platform == "darwin" else ".cache")


class Binaries:
    """The binaries of one device, as built with ``options``, by source text.

    A file holds a binary behind its digest: a driver may crash on half of one. Files appear
    whole, so several processes may read and write. A cache that cannot be written is none.
    """

    def __init__(self, device: cl.Device, options: Sequence[str]) -> None:
        self._folder = place()
        platform = device.platform
        facts = (
            *(device.name, device.vendor, device.version, device.driver_version),
            *(platform.name, platform.version),
            *options,
            os.environ.get("PYOPENCL_BUILD_OPTIONS", ""),  # pyopencl adds them
        )
        self._device = hashlib.sha256(_FORMAT + "\0".join(facts).encode())
        self._written = 0

    def _file(self, source: str) -> Path | None:
        if self._folder is None:
            return None
        key = self._device.copy()
        key.update(source.encode())
        return self._folder / f"{key.hexdigest()}.bin"

    def find(self, source: str) -> bytes | None:
        """Return the binary of the program ``source``; None where there is none, or a bad one."""
        file = self._file(source)
        if file is None:
            return None
        try:
            content = file.read_bytes()
            os.utime(file)  # used now
        except OSError:
            return None
        digest, binary = content[:_DIGEST], content[_DIGEST:]
        return binary if digest == hashlib.sha256(binary).digest() else None

    def keep(self, source: str, binary: bytes) -> None:
        """Put the binary of the program ``source`` there."""
        file = self._file(source)
        if file is None or not binary:
            return
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, name = tempfile.mkstemp(dir=file.parent)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(hashlib.sha256(binary).digest() + binary)
                Path(name).replace(file)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
            if self._written % _PRUNE_EVERY == 0:
                _prune(file.parent, KEPT_BYTES)
            self._written += 1

    def forget(self, source: str) -> None:
        """Take out the binary of the program ``source``, which its driver does not like."""
        file = self._file(source)
        if file is not None:
            with suppress(OSError):
                file.unlink()


def _prune(folder: Path, kept: int) -> None:
    """Delete the files not used for longest, until three quarters of ``kept`` bytes remain."""
    files = [(each.stat(), each) for each in folder.glob("*.bin")]
    total = sum(status.st_size for status, _ in files)
    if total <= kept:
        return
    for status, file in sorted(files, key=lambda each: each[0].st_mtime):
        if total <= kept * 3 // 4:
            return
        file.unlink(missing_ok=True)  # another process may be at it, too
        total -= status.st_size
