"""Notes of attempts: work that runs for the first time on this machine and may crash or hang.

A locked file exists as long as the attempt lasts. A process that dies leaves its file behind, and
the system releases its lock. So a file without a lock names what crashed a process.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug_opencl.machine import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


SUFFIX: Final = ".attempt"

Story = dict[str, str]

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool:
        """Lock the file's first byte; return False if another process holds the lock."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        """Lock the file; return False if another process holds the lock."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class Fatal(NamedTuple):
    """An attempt that ended an earlier process: the file that it left, and its content."""

    file: Path
    story: Story


def find_fatal(key: str) -> Fatal | None:
    """Return the attempt under ``key`` that ended an earlier process; None if there is none."""
    folder = cache_folder.find_folder()
    if folder is None:
        return None
    file = folder / f"{key}{SUFFIX}"
    descriptor = cache_folder.open_trusted(file, os.O_RDWR)
    if descriptor is None:
        return None
    try:
        if not _lock(descriptor):
            return None  # another process makes this attempt
        if not os.fstat(descriptor).st_nlink:
            return None  # the attempt has succeeded meanwhile
        return Fatal(file, _read_story(descriptor))
    except OSError:
        return None  # a file system without locks
    finally:
        os.close(descriptor)


def _read_story(descriptor: int) -> Story:
    try:
        record: Any = json.loads(os.read(descriptor, 1 << 16))
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


@contextmanager
def attempting(key: str, **story: str) -> Iterator[None]:
    """Note the ``with`` block, which may crash, as an attempt under ``key``.

    If this process dies, a later one reads ``story``. If no file can be kept, or if another
    process makes the same attempt, the block runs without a note.
    """
    folder = cache_folder.find_folder()
    begun = None if folder is None else _begin(folder, key, story)
    try:
        yield
    finally:
        if begun is not None:
            _end(*begun)


def _end(file: Path, descriptor: int) -> None:
    if sys.platform == "win32":  # where no open file can be deleted
        os.close(descriptor)
        file.unlink(missing_ok=True)
        return
    try:  # while it is locked: an unlocked file would look like a dead process's
        file.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _begin(folder: Path, key: str, story: Story) -> tuple[Path, int] | None:
    """Return the locked file of an attempt and its descriptor; None if that is impossible."""
    # The file gets its name once it is locked: an unlocked one would look like a dead process's.
    file = folder / f"{key}{SUFFIX}"
    unnamed = folder / f"{key}.{os.getpid()}{cache_folder.LEFTOVER}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(unnamed, flags, 0o600)
    except OSError:
        return None
    try:
        os.write(descriptor, json.dumps({**story, "process": str(os.getpid())}).encode())
        if _lock(descriptor):
            os.link(unnamed, file)
            return file, descriptor
    except OSError:  # no locks or links here, or another process makes this attempt
        pass
    finally:
        with suppress(OSError):
            unnamed.unlink()
    os.close(descriptor)
    return None


def forget() -> None:
    """Delete the notes of all crashes, so that everything is tried again."""
    folder = cache_folder.find_folder()
    if folder is None:
        return
    for file in folder.glob(f"*{SUFFIX}"):
        fatal = find_fatal(file.name.removesuffix(SUFFIX))
        if fatal is not None:
            with suppress(OSError):
                fatal.file.unlink()
