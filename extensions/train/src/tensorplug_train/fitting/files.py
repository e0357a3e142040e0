"""Files and folders that are either complete or not there."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def replaced(target: Path, *, folder: bool = False) -> Iterator[Path]:
    """Return a path beside ``target`` to write to, which takes its place at the end.

    After an error nothing is left of it. ``folder``: whether to make a folder; an old one is moved
    aside first, since no system replaces a folder that is not empty.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if folder:
            part.mkdir()
        yield part
        if folder and target.exists():
            old = target.with_name(f".{target.name}.{os.getpid()}.old")
            target.rename(old)
            part.rename(target)
            shutil.rmtree(old)
        else:
            part.replace(target)
    except BaseException:
        if folder:
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
        raise
