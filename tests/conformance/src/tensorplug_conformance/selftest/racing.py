"""Memory that threads share without a lock; who writes there always loses the race."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance.comparing.compare import same_bits

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


_PATIENCE: Final = 0.25  # seconds: the other threads may have ended
_A_MOMENT: Final = 0.0005


class SharedScratch:
    """One place for all arrays of a shape and dtype, whichever thread they come from.

    Who has written waits until another thread writes to the same place. So a race is lost on every
    machine, however busy it is. The main thread does not wait, since calls from there are alone,
    and nobody does once a race is lost.
    """

    def __init__(self) -> None:
        self._places: dict[Any, Array] = {}
        self._writers: dict[Any, int] = {}
        self._lost = False

    def passed(self, array: Array) -> Array:
        """Return what is in the place after ``array`` was written there."""
        key = array.shape, array.dtype
        place = self._places.setdefault(key, np.empty_like(array))
        np.copyto(place, array)
        own = self._writers[key] = threading.get_ident()
        end = time.monotonic() + _PATIENCE
        alone = threading.current_thread() is threading.main_thread()
        while self._writers[key] == own and not (alone or self._lost or time.monotonic() > end):
            time.sleep(_A_MOMENT)
        result = np.array(place)
        self._lost |= not same_bits(result, array)
        return result
