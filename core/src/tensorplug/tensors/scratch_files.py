"""Files that are written under another name and renamed when they are complete.

Whoever reads the target finds the old file or the new one, whole, whatever happens to the writer.
The data is on the disk before the name changes, else a power cut could leave the name without
the data. The folder is not synchronized: a power cut may bring the old file back, which is whole.

A process that is killed leaves its scratch file behind. The next one that writes into the same
folder removes it: every writer locks its scratch file, and the system releases the lock of a
process that has ended. Where there are no such locks (Windows, some network file systems),
nothing is removed.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO


_NAMED: Final = re.compile(r"\.tensorplug-[0-9a-f]{16}\.tmp", re.ASCII)


@contextmanager
def scratch_file(target: Path) -> Iterator[BinaryIO]:
    """Open an empty file, which replaces ``target`` if the block does not raise.

    It gets the permissions of ``target``, or of a new file. If the block raises, it is removed.

    Raises:
        OSError: it cannot be created or written, or cannot replace ``target``.

    """
    _remove_stale(target.parent)
    scratch = target.with_name(f".tensorplug-{secrets.token_hex(8)}.tmp")
    try:
        with _create(scratch) as file:
            if target.is_file():
                scratch.chmod(stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            if sys.platform == "win32":
                file.close()  # an open file cannot be renamed there
            scratch.replace(target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def _create(scratch: Path) -> BinaryIO:
    """Create a file, and lock it until it is closed."""
    while True:
        file = scratch.open("xb")
        if sys.platform == "win32":
            return file
        try:
            with suppress(OSError):  # no locks here, then nobody removes it
                fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink:
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # removed by another process before it was locked


def _remove_stale(folder: Path) -> None:
    """Remove the scratch files in ``folder`` whose writers have ended."""
    if sys.platform == "win32":
        return
    with suppress(OSError), os.scandir(folder) as entries:  # saving itself reports what is wrong
        for item in entries:
            if _NAMED.fullmatch(item.name) and item.is_file(follow_symlinks=False):
                with suppress(OSError):  # another user's, locked, or already removed
                    descriptor = os.open(item.path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                    try:
                        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        # While it is locked, no writer can begin to use it. But another
                        # process may have removed it before, and its writer made a new one.
                        scratch = folder.joinpath(item.name)
                        if os.path.samestat(scratch.lstat(), os.fstat(descriptor)):
                            scratch.unlink()
                    finally:
                        os.close(descriptor)
