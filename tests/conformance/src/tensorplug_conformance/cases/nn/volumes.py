"""Cases for convolution in three dimensions and its two transposes."""

from __future__ import annotations

from typing import Any

from tensorplug.algorithms import CONVOLUTION_3D
from tensorplug_conformance.cases.nn.convolution import Geometry, enter
from tensorplug_conformance.oracle.nn import convolution as oracle
from tensorplug_conformance.tables import CaseTable

cases = CaseTable()

_PAIRS = ((0, 0), (1, 0), (0, 2), (1, 1), (0, 0))
_FIRST: dict[str, Any] = {"data_format": "NCDHW"}
GEOMETRIES = (
    Geometry("valid", (2, 3, 4, 5, 2), (2, 3, 2, 2, 3), {"strides": 1, "pad": "valid"}),
    Geometry("same", (1, 3, 4, 3, 2), (3, 2, 3, 2, 2), {"strides": 1, "pad": "same"}),
    Geometry("strided same", (1, 5, 4, 6, 1), (3, 3, 3, 1, 2), {"strides": 2, "pad": "same"}),
    Geometry("uneven", (1, 4, 5, 7, 1), (2, 1, 3, 1, 2), {"strides": (1, 2, 3), "pad": "valid"}),
    Geometry(
        "dilated",
        (1, 5, 4, 5, 1),
        (2, 2, 3, 1, 1),
        {"strides": 1, "pad": "valid", "dilations": (3, 1, 2)},
    ),
    Geometry("images", (5, 2, 3, 2, 2), (2, 2, 1, 2, 3), {"strides": 1, "pad": "same"}),
    Geometry("1x1x1", (2, 2, 3, 2, 3), (1, 1, 1, 3, 2), {"strides": 1, "pad": "valid"}),
    Geometry("explicit pad", (1, 2, 3, 3, 2), (2, 3, 2, 2, 1), {"strides": 1, "pad": _PAIRS}),
    Geometry(
        "rounded up",
        (1, 4, 4, 4, 1),
        (3, 2, 2, 1, 1),
        {"strides": (2, 3, 2), "pad": 0, "dim_rounding_mode": "ceil"},
    ),
    Geometry("no batch", (0, 2, 2, 2, 1), (2, 2, 2, 1, 2), {"strides": 1, "pad": "valid"}),
    Geometry(
        "NCDHW", (1, 2, 3, 4, 5), (2, 2, 2, 2, 3), {"strides": (1, 2, 1), "pad": "same", **_FIRST}
    ),
    Geometry(
        "NCDHW, equal axes", (1, 2, 2, 2, 2), (2, 2, 2, 2, 2), {"strides": 1, "pad": 1, **_FIRST}
    ),
)
SMALL = (
    Geometry("valid", (1, 2, 2, 3, 1), (2, 1, 2, 1, 1), {"strides": 1, "pad": "valid"}),
    Geometry("strided same", (1, 3, 2, 2, 1), (2, 2, 1, 1, 2), {"strides": 2, "pad": "same"}),
    Geometry(
        "dilated NCDHW",
        (1, 2, 3, 2, 3),
        (2, 1, 2, 2, 1),
        {"strides": 1, "pad": "valid", "dilations": (2, 1, 2), **_FIRST},
    ),
    Geometry("explicit pad", (1, 2, 2, 2, 1), (2, 2, 2, 1, 1), {"strides": 2, "pad": _PAIRS}),
    Geometry(
        "rounded up",
        (1, 2, 3, 2, 1),
        (2, 2, 1, 1, 1),
        {"strides": 2, "pad": 1, "dim_rounding_mode": "ceil"},
    ),
    Geometry("no batch", (0, 2, 2, 2, 1), (2, 2, 2, 1, 2), {"strides": 1, "pad": "valid"}),
)

enter(
    cases,
    CONVOLUTION_3D,
    (oracle.conv2d, oracle.conv2d_backprop_input, oracle.conv2d_backprop_filter),
    GEOMETRIES,
    SMALL,
    (Geometry("large", (1, 17, 20, 20, 2), (2, 3, 3, 2, 10), {"strides": 1, "pad": "same"}),),
    lambda taps: taps[4],
)
