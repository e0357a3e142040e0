"""The environment variables of this backend, except paths and sizes."""

from __future__ import annotations

import os
from typing import Final, Literal

from tensorplug.plugin import SettingsError

TRIAL: Final = "TENSORPLUG_OPENCL_TRIAL"

Trial = Literal["once", "never", "again"]
_TRIALS: Final[dict[str, Trial]] = {"": "once", "1": "once", "0": "never", "again": "again"}


def read_trial() -> Trial:
    """Return when devices are tried: "once" per driver, "never", or "again" in this process.

    Raises:
        SettingsError: the variable has a value other than 0, 1 and again.

    """
    value = os.environ.get(TRIAL, "").strip().lower()
    if value not in _TRIALS:
        raise SettingsError(
            f"{TRIAL}={value!r}: must be 0 (no trial), 1 (one trial of each driver) or again "
            "(a new trial now)"
        )
    return _TRIALS[value]
