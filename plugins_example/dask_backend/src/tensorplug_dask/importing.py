"""Imports ``dask.array`` with the garbage collector on.

Dask remembers whether it was on at import, and puts it back to that after each slice. tensorplug
pauses it while it imports plugins, so that the first slice would end garbage collection.
"""

from __future__ import annotations

import gc

_paused = not gc.isenabled()
gc.enable()
import dask.array  # noqa: E402, F401  # see above

if _paused:
    gc.disable()
