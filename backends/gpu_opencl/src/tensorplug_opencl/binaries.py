"""Built programs on disk, so that the next process does not compile them.

pyopencl keeps binaries for some drivers and leaves the others to their own caches. The caches of
PoCL and NVIDIA keep the output of their compilers, but run the front end on every program to find
it. With PoCL this takes 80 ms; loading a binary takes 2 ms.
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

KEPT_BYTES: Final = 512 << 20  # in total; beyond that, the least recently used files are deleted
_FORMAT: Final = "2"
_PRUNE_EVERY: Final = 64  # programs that this process has written
_DIGEST: Final = hashlib.sha256().digest_size


class Binaries:
    """The binaries of one device, as built with ``options``, by source text.

    A file has a digest of the program and the binary, then the binary: a driver may crash on a
    truncated binary, and would run another program's without complaint. Files appear whole, so
    multiple processes may read and write. If the folder is not writable, nothing is kept.
    """

    def __init__(self, device: cl.Device, options: Sequence[str]) -> None:
        self._folder = cache_folder.find_folder()
        self._device = identity.start_key(device, _FORMAT, *options)
        self._written = 0

    def key(self, source: str) -> str:
        """Return the key of the program ``source``, as built for this device."""
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
        """Return the binary of the program ``source``; None if there is no intact one."""
        named = self._find_file(source)
        if named is None:
            return None
        file, key = named
        content = cache_folder.read(file)
        if content is None:
            return None
        with suppress(OSError):
            os.utime(file)  # it counts as used now
        digest, binary = content[:_DIGEST], content[_DIGEST:]
        return binary if binary and digest == _seal(key, binary) else None

    def keep(self, source: str, binary: bytes) -> None:
        """Save the binary of the program ``source``."""
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
        """Delete the binary of the program ``source``, which the driver rejects."""
        named = self._find_file(source)
        if named is not None:
            with suppress(OSError):
                named[0].unlink()


def _seal(key: bytes, binary: bytes) -> bytes:
    """Return the digest that ties ``binary`` to the program with ``key``."""
    return hashlib.sha256(key + binary).digest()


def _prune(folder: Path, kept: int) -> None:
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
