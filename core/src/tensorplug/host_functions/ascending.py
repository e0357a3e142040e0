"""The check that row splits and segment ids share: they ascend."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.errors import ArgumentError

__all__ = ["check_ascending"]


def check_ascending(values: np.ndarray[Any, Any], what: str) -> None:
    """Refuse a vector with an element below the one before it; ``what`` names it.

    Raises:
        ArgumentError: naming the first such element.

    """
    down = values[1:] < values[:-1]
    if down.any():
        at = int(np.argmax(down)) + 1
        raise ArgumentError(
            f"{what} must not descend, but element {at} is {values[at]} after {values[at - 1]}"
        )
