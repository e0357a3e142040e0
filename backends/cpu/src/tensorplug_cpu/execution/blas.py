"""One BLAS thread per matrix product, while the threads of this backend share the products out.

BLAS splits a product among threads of its own. If several threads call it at the same time, or
other programs use the same processors, its threads wait for one another, and everything takes
several times as long as with one thread each (figures in the README of the example ``attention``).
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array


def matmul(left: Array, right: Array, out: Array | None = None) -> Array:
    """Return the products of matrices, as ``np.matmul`` does, always by BLAS.

    Where there is one row or column, NumPy multiplies matrices that BLAS does not take, such as
    stretched or reversed ones, by itself: slowly, and adding one number after the other, so that a
    sum of thousands may lose two digits more. Here such matrices are copied.
    """
    product: Array = np.matmul(_packed(left), _packed(right), out=out)
    return product


def _packed(x: Array) -> Array:
    if x.flags.forc:
        return x
    (rows, columns), (down, across) = x.shape[-2:], x.strides[-2:]
    size = x.itemsize
    if (across == size and down >= size * columns) or (down == size and across >= size * rows):
        return x
    return np.ascontiguousarray(x)


class _OneThreadEach:
    """Runs functions, in several threads at the same time if need be, with one BLAS thread each.

    The number of BLAS threads belongs to the process. The first function that begins sets it to
    one; the last that ends restores it. If an interrupt prevents that, the next one restores it.
    A signal handler or a finalizer may come here while its own thread changes the number.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._limiting = False
        self._inside: set[object] = set()
        self._limit: Callable[..., Any] | None = None
        self._set_back: Callable[[], None] | None = None

    def run(self, work: Callable[[], object]) -> None:
        """Call ``work``."""
        call = object()
        try:
            with self._lock:
                self._inside.add(call)
                if self._set_back is None and not self._limiting:
                    try:
                        self._limiting = True
                        self._set_back = self._limited().restore_original_limits
                    finally:
                        self._limiting = False
            work()
        finally:
            with self._lock:  # not in another method, which an interrupt could prevent
                self._inside.discard(call)
                if not self._inside and self._set_back is not None:
                    self._set_back()
                    self._set_back = None

    def _limited(self) -> Any:
        """Set the limit. Finding the libraries takes milliseconds, so it is done once."""
        if self._limit is None:
            from threadpoolctl import ThreadpoolController

            self._limit = ThreadpoolController().select(user_api="blas").limit
        return self._limit(limits=1)

    def forget(self) -> None:
        """Forget the functions that run: a forked child does not have its parent's threads."""
        self._lock = threading.RLock()
        self._limiting = False
        self._inside.clear()
        if self._set_back is not None:
            self._set_back()
            self._set_back = None


one_thread_each: Final = _OneThreadEach()
if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=one_thread_each.forget)
