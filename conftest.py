"""What holds for the whole run of the tests."""

from __future__ import annotations

import gc
import os
import sys

import pytest

os.environ.setdefault("TENSORPLUG_TRACEBACK", "full")  # failures of the core's own tests


def pytest_collection_finish() -> None:
    """Begin without crashes of earlier runs, and out of the garbage collector's sight.

    A run that was killed is no fault of a kernel's, and a crash would be remembered as one.

    A million objects of thirty thousand tests stay to the end; each full collection, and each
    count of live tensors (``tensorplug.memory.scopes``), would go through them, for half a second.
    """
    if "tensorplug_opencl" in sys.modules:
        from tensorplug_opencl.machine import attempts

        attempts.forget()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _earlier_objects_out_of_sight() -> None:
    """Take what earlier tests have left out of the collector's sight as well."""
    gc.collect()
    gc.freeze()
