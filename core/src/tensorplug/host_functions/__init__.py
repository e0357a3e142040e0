"""Functions that no ops can express, on NumPy arrays."""

from __future__ import annotations

from tensorplug.host_functions import (
    ascending,
    bits,
    broadcasting,
    complexes,
    coordinates,
    fingerprints,
    linalg,
    ragged,
    sets,
    sparse,
    strings,
    suppression,
)

__all__ = [
    "ascending",
    "bits",
    "broadcasting",
    "complexes",
    "coordinates",
    "fingerprints",
    "linalg",
    "ragged",
    "sets",
    "sparse",
    "strings",
    "suppression",
]
