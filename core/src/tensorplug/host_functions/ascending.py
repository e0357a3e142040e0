"""The check that row splits and segment ids are ascending."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.errors import ArgumentError

__all__ = ["check_ascending"]


def check_ascending(values: np.ndarray[Any, Any], what: str) -> None:
    """Check that a vector is ascending; ``what`` names it in messages.

    Raises:
        ArgumentError: an element is less than the one before it.

    """
    down = values[1:] < values[:-1]
    if down.any():
        at = int(np.argmax(down)) + 1
        raise ArgumentError(
            f"{what} must be ascending, but element {at} is {values[at]} after {values[at - 1]}"
        )
