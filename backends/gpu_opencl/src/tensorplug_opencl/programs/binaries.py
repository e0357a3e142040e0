"""Built programs on disk, so that the next process does not compile them.

pyopencl keeps binaries for some drivers and leaves the others to their own caches. The caches of
PoCL and NVIDIA keep the output of their compilers, but run the front end on every program to find
it. With PoCL this takes 80 ms; loading a binary takes 2 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import disk_cache
from tensorplug_opencl.machine import cache_folder, identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyopencl as cl


_FORMAT: Final = "2"


class Binaries:
    """The binaries of one device, as built with ``options``, by source text.

    If the folder is not writable, nothing is kept.
    """

    def __init__(self, device: cl.Device, options: Sequence[str]) -> None:
        folder = cache_folder.find_folder()
        self.has_folder = folder is not None
        self._files = disk_cache.SealedFiles(folder)
        self._device = identity.start_key(device, _FORMAT, *options)

    def key(self, source: str) -> str:
        """Return the key of the program ``source``, as built for this device."""
        key = self._device.copy()
        key.update(source.encode())
        return key.hexdigest()

    def find(self, source: str) -> bytes | None:
        """Return the binary of the program ``source``; None if there is no intact one."""
        return self._files.find(self.key(source))

    def keep(self, source: str, binary: bytes) -> None:
        """Save the binary of the program ``source``."""
        self._files.keep(self.key(source), binary)

    def forget(self, source: str) -> None:
        """Delete the binary of the program ``source``, which the driver rejects."""
        self._files.forget(self.key(source))
