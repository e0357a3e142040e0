"""The environment variables of this backend, read when a device is opened."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import dask
from dask.utils import parse_bytes

from tensorplug.plugin import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping


CHUNK_BYTES: Final = "TENSORPLUG_DASK_CHUNK_BYTES"
MAX_LAYERS: Final = "TENSORPLUG_DASK_MAX_LAYERS"
SCHEDULER: Final = "TENSORPLUG_DASK_SCHEDULER"

_LAYERS: Final = 100
_LOCAL: Final = ("threads", "synchronous")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of this backend.

    ``chunk_bytes``: how large a chunk may be; arrays up to that size are one chunk.
    ``max_layers``: how many kernels may be pending on an array of one chunk.
    ``scheduler``: ``"threads"``, ``"synchronous"``, the address of a scheduler of distributed, or
    None for what Dask would take by itself.
    """

    chunk_bytes: int
    max_layers: int = _LAYERS
    scheduler: str | None = None


def read(environ: Mapping[str, str] | None = None) -> Settings:
    """Parse ``environ``, by default the process's own.

    Raises:
        SettingsError: naming the variable, its value and what is allowed.

    """
    variables = os.environ if environ is None else environ
    chunk = variables.get(CHUNK_BYTES, "").strip() or str(dask.config.get("array.chunk-size"))
    scheduler = variables.get(SCHEDULER, "").strip() or None
    if scheduler and scheduler not in _LOCAL and "://" not in scheduler:
        raise SettingsError(
            f"{SCHEDULER}={scheduler!r}: must be {', '.join(_LOCAL)} or an address such as "
            "tcp://127.0.0.1:8786"
        )
    return Settings(_bytes(chunk), _layers(variables.get(MAX_LAYERS, "").strip()), scheduler)


def _bytes(value: str) -> int:
    try:
        found = int(parse_bytes(value))
    except ValueError:
        found = 0
    if found < 1:
        raise SettingsError(f"{CHUNK_BYTES}={value!r}: must be a size such as 64MiB")
    return found


def _layers(value: str) -> int:
    if value and not (value.isdecimal() and int(value)):
        raise SettingsError(f"{MAX_LAYERS}={value!r}: must be a whole number above 0")
    return int(value or _LAYERS)
