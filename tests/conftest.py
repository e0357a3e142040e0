"""What holds for the whole run of the tests."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Take what collecting has made out of the garbage collector's sight.

    A million objects of thirty thousand tests stay to the end; each full collection, and each
    count of live tensors (``tensorplug.memory``), would go through them, for half a second.
    """
    gc.collect()
    gc.freeze()
