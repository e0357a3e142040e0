"""What holds for the whole run of the tests."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_sessionstart(session: pytest.Session) -> None:
    """Forget the crashes of earlier runs: a run that was killed is no fault of a kernel's."""
    if not hasattr(session.config, "workerinput"):  # once, not in each of xdist's workers
        try:
            from tensorplug_opencl import attempts
        except ImportError:
            return  # without pyopencl there are none
        attempts.forget()


def pytest_collection_finish() -> None:
    """Take what collecting has made out of the garbage collector's sight.

    A million objects of thirty thousand tests stay to the end; each full collection, and each
    count of live tensors (``tensorplug.memory``), would go through them, for half a second.
    """
    gc.collect()
    gc.freeze()
