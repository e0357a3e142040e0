"""One BLAS thread per matrix product, while the threads of this backend share the products out.

BLAS splits a product among threads of its own. If several threads call it at the same time, or
other programs use the same processors, its threads wait for one another, and everything takes
several times as long as with one thread each (figures in the README of the example ``attention``).
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["one_thread_each"]


class _OneThreadEach:
    """A context manager that several threads may enter at the same time.

    The number of BLAS threads belongs to the process. The first thread to enter sets it to one;
    the last to leave restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Callable[..., Any] | None = None
        self._set_back: Callable[[], None]

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._set_back = self._limited().restore_original_limits
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._inside == 1:
                self._set_back()
            self._inside = max(self._inside - 1, 0)

    def _limited(self) -> Any:
        """Set the limit. Finding the libraries takes milliseconds, so it is done once."""
        if self._limit is None:
            from threadpoolctl import ThreadpoolController

            self._limit = ThreadpoolController().select(user_api="blas").limit
        return self._limit(limits=1)

    def forget(self) -> None:
        """Reset the count: a forked child does not have its parent's threads."""
        self._lock = threading.Lock()
        if self._inside:
            self._set_back()
            self._inside = 0


one_thread_each: Final = _OneThreadEach()
if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=one_thread_each.forget)
