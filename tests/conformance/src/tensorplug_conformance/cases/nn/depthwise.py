"""Cases for depthwise convolution and its two transposes."""

from __future__ import annotations

from tensorplug.algorithms import CONVOLUTION_DEPTHWISE
from tensorplug_conformance.cases.nn import convolution
from tensorplug_conformance.cases.nn.convolution import Geometry, enter
from tensorplug_conformance.oracle.nn import convolution as oracle
from tensorplug_conformance.tables import CaseTable

cases = CaseTable()

# The geometries of Conv2D; a filter's last axis is a multiplier here.
enter(
    cases,
    CONVOLUTION_DEPTHWISE,
    (oracle.depthwise, oracle.depthwise_backprop_input, oracle.depthwise_backprop_filter),
    (
        *convolution.GEOMETRIES,
        Geometry("one each", (2, 5, 6, 3), (3, 3, 3, 1), {"strides": 1, "pad": "same"}),
        Geometry("one each, strided", (2, 5, 6, 3), (3, 2, 3, 1), {"strides": 2, "pad": "same"}),
    ),
    (
        *convolution.SMALL,
        Geometry("one each", (2, 3, 3, 2), (2, 2, 2, 1), {"strides": 1, "pad": "same"}),
        Geometry(
            "NCHW, dilated",
            (1, 2, 3, 4),
            (2, 2, 2, 2),
            {"strides": 1, "pad": "same", "dilations": 2, "data_format": "NCHW"},
        ),
    ),
    (Geometry("large", (3, 61, 59, 7), (3, 3, 7, 1), {"strides": 1, "pad": "same"}),),
    lambda taps: taps[2] * taps[3],
)
