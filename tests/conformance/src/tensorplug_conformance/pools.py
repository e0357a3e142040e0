"""Processes that share work, by ``multiprocessing``."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_SAFE_PATH: Final = "PYTHONSAFEPATH"


@contextmanager
def spawned_pool(
    jobs: int, initializer: Callable[..., Any], arguments: tuple[Any, ...]
) -> Iterator[ProcessPoolExecutor]:
    """Return a pool of new processes in the block, which starts them."""
    context = multiprocessing.get_context("spawn")
    with safely_started(), ProcessPoolExecutor(jobs, context, initializer, arguments) as pool:
        yield pool


@contextmanager
def safely_started() -> Iterator[None]:
    """Let new processes import nothing from the current folder; then they get this one's path.

    A ``queue.py`` of the user's would otherwise take the place of what ``multiprocessing`` needs.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before
