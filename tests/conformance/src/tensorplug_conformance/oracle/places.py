"""Indices of all elements at once, so that references for movement need no loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorplug_conformance.case import Array


def everywhere(shape: Sequence[int]) -> list[Array]:
    """Return for each axis the index of every element along it, of length 1 along the others."""
    return list(np.indices(tuple(shape), sparse=True))


def taken(x: Array, places: Sequence[Array], shape: Sequence[int]) -> Array:
    """Return ``out[i] = x[places[0][i], places[1][i], ...]``, of ``shape``."""
    out = np.empty(tuple(shape), dtype=x.dtype)
    out[...] = x[tuple(places)] if places else x
    return out


def spread(spans: Iterable[Iterable[int]]) -> tuple[Array, ...]:
    """Return the indices of the block that spans of indices along each axis make."""
    return np.ix_(*(np.fromiter(span, dtype=np.int64) for span in spans))
