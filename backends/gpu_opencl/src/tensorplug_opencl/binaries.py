"""Built programs on disk, so that the next process need not ask the compiler.

pyopencl keeps binaries for some drivers and leaves the others to their own caches. Those of PoCL
and NVIDIA keep what their compilers make, but run the front end for every program to find it:
with PoCL that takes 80 ms, and loading a binary 2.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tensorplug_opencl import cache_folder, identity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyopencl as cl

__all__ = ["Binaries"]

KEPT_BYTES: Final = 512 << 20  # in all; beyond, what was not used for longest goes
_FORMAT: Final = "2"
_PRUNE_EVERY: Final = 64  # programs that this process has put there
_DIGEST: Final = hashlib.sha256().digest_size


class Binaries:
    """The binaries of one device, as built with ``options``, by source text.

    A file holds a binary behind a digest of it and of the program that it belongs to: a driver may
    crash on half of one, and would run one of another program without a word. Files appear whole,
    so several processes may read and write. A cache that cannot be written is none.
    """

    def __init__(self, device: cl.Device, options: Sequence[str]) -> None:
        self._folder = cache_folder.find_folder()
        self._device = identity.start_key(device, _FORMAT, *options)
        self._written = 0

    def key(self, source: str) -> str:
        """Return what names the program ``source``, as built here for this device."""
        key = self._device.copy()
        key.update(source.encode())
        return key.hexdigest()

    def _find_file(self, source: str) -> tuple[Path, bytes] | None:
        """Return the file of the program ``source``, and its key."""
        if self._folder is None:
            return None
        key = self.key(source)
        return self._folder / f"{key}.bin", bytes.fromhex(key)

    def find(self, source: str) -> bytes | None:
        """Return the binary of the program ``source``; None where there is none, or a bad one."""
        named = self._find_file(source)
        if named is None:
            return None
        file, key = named
        content = cache_folder.read(file)
        if content is None:
            return None
        with suppress(OSError):
            os.utime(file)  # used now
        digest, binary = content[:_DIGEST], content[_DIGEST:]
        return binary if binary and digest == _seal(key, binary) else None

    def keep(self, source: str, binary: bytes) -> None:
        """Put the binary of the program ``source`` there."""
        named = self._find_file(source)
        if named is None or not binary:
            return
        file, key = named
        if not cache_folder.write(file, _seal(key, binary) + binary):
            return
        if self._written % _PRUNE_EVERY == 0:
            cache_folder.prune_leftovers(file.parent)
            with suppress(OSError):
                _prune(file.parent, KEPT_BYTES)
        self._written += 1

    def forget(self, source: str) -> None:
        """Take out the binary of the program ``source``, which its driver does not like."""
        named = self._find_file(source)
        if named is not None:
            with suppress(OSError):
                named[0].unlink()


def _seal(key: bytes, binary: bytes) -> bytes:
    """Return the digest that ties ``binary`` to the program with ``key``."""
    return hashlib.sha256(key + binary).digest()


def _prune(folder: Path, kept: int) -> None:
    """Delete the files not used for longest, until three quarters of ``kept`` bytes remain."""
    files = [(path.stat(), path) for path in folder.glob("*.bin")]
    total = sum(status.st_size for status, _ in files)
    if total <= kept:
        return
    for status, file in sorted(files, key=lambda entry: entry[0].st_mtime):
        if total <= kept * 3 // 4:
            return
        file.unlink(missing_ok=True)  # another process may be at it, too
        total -= status.st_size
