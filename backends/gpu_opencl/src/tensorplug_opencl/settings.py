"""The environment variables of this backend that are more than a path or a size."""

from __future__ import annotations

import os
from typing import Final, Literal

from tensorplug.errors import SettingsError

__all__ = ["TRIAL", "Trial", "trial"]

TRIAL: Final = "TENSORPLUG_OPENCL_TRIAL"

Trial = Literal["once", "never", "again"]
_TRIALS: Final[dict[str, Trial]] = {"": "once", "1": "once", "0": "never", "again": "again"}


def trial() -> Trial:
    """Return when devices are tried: once per driver, never, or now, whatever is remembered.

    Raises:
        SettingsError: the variable has another value than 0, 1 and again.

    """
    value = os.environ.get(TRIAL, "").strip().lower()
    if value not in _TRIALS:
        raise SettingsError(f"{TRIAL}={value!r}: must be 0 (never), 1 (once) or again")
    return _TRIALS[value]
