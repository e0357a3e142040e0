"""Facts about NumPy's floating dtypes, and about those of ml_dtypes, which NumPy does not know.

``numpy.dtype.kind`` is "V" for bfloat16, as for raw bytes, and ``numpy.finfo`` refuses it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


class _Facts(NamedTuple):
    """What ``numpy.finfo`` says of its own dtypes; the numbers are exact in Python's floats."""

    dtype: np.dtype[Any]
    eps: float
    max: float
    tiny: float
    smallest_normal: float
    smallest_subnormal: float
    minexp: int
    maxexp: int
    nmant: int


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return NumPy's letter of a dtype's kind: "f" for bfloat16 too."""
    if dtype.kind != "V":
        return dtype.kind
    return {"float": "f", "signed": "i", "unsigned": "u"}[dt.of(dtype).kind]


@cache
def finfo(dtype: Any) -> Any:
    """Return the limits of a floating or complex dtype, under the names of ``numpy.finfo``."""
    known = np.dtype(dtype)
    if known.kind != "V":
        return np.finfo(known)
    import ml_dtypes  # its dtype is here already

    read: Any = ml_dtypes.finfo
    about = read(known)
    return _Facts(
        known,
        eps=float(about.eps),
        max=float(about.max),
        tiny=float(about.tiny),
        smallest_normal=float(about.smallest_normal),
        smallest_subnormal=float(about.smallest_subnormal),
        minexp=int(about.minexp),
        maxexp=int(about.maxexp),
        nmant=int(about.nmant),
    )


def computing(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which a kernel computes with floats of ``dtype``: float32 or wider.

    What it adds up, or rounds several times, it rounds to a narrower dtype at the end alone.
    """
    return np.result_type(dtype, np.float32)


def epsilon(x: Array) -> np.longdouble:
    """Return the distance from 1 to the next number where ``x`` is computed with, wide."""
    return np.longdouble(finfo(computing(x.dtype)).eps)
