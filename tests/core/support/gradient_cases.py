"""Points of gradients that the conformance suite does not have: inputs in float64, attributes.

The suite checks gradients at its own points against its oracle. A factorization with results of
any phase has no oracle; the other points here are images without rows or columns, which the suite
lacks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.core.support.samples import Case, apart, real


def windows(
    what: str, x: np.ndarray, taps: tuple[int, int], outs: Any, **moves: Any
) -> list[Case]:
    """Return the cases of an image without rows or columns."""
    filter_, dy = real(*taps, 2, 3, salt=1), real(2, *outs, 3, salt=2)
    pooled = {"filter_size": taps, **moves}
    return [
        Case("Conv2D", what, {"x": x, "filter": filter_}, ("x", "filter"), moves),
        Case(
            "Conv2DBackpropInput",
            what,
            {"dy": dy, "filter": filter_},
            ("dy", "filter"),
            {**moves, "input_shape": x.shape},
        ),
        Case(
            "Conv2DBackpropFilter",
            what,
            {"x": x, "dy": dy},
            ("x", "dy"),
            {**moves, "filter_shape": filter_.shape},
        ),
        Case("MaxPool", what, {"x": x}, ("x",), pooled),
        Case("MaxPoolGrad", what, {"dy": dy[..., :2], "input": x}, ("dy",), pooled),
    ]


WINDOWS = [
    *windows("no rows, same", apart(2, 0, 4, 2), (2, 3), (0, 2), strides=(1, 2), pad="same"),
    *windows("no columns, same", apart(2, 3, 0, 2), (3, 3), (2, 0), strides=2, pad="same"),
    *windows("no columns, valid", apart(2, 3, 0, 2), (2, 1), (2, 0), strides=1, pad="valid"),
]

TALL = real(2, 4, 3) + 2 * np.eye(4, 3)
REGULAR = real(2, 3, 3) + 3 * np.eye(3)
FACTORS = [
    *(
        Case("Qr", what, {"input": x}, ("input",))
        for what, x in (
            ("tall", TALL),
            ("square", REGULAR),
            ("wide", TALL.swapaxes(1, 2)),
            ("one element", np.array([[2.0]])),
            ("one column", real(3, 1)),
            ("no matrices", real(0, 3, 2)),
            ("no columns", real(3, 0)),
        )
    ),
    *(
        Case("Eig", what, {"input": x}, ("input",), {"compute_v": False})  # vectors have any phase
        for what, x in (
            ("several", REGULAR),
            ("one", real(1, 1)),
            ("none", real(0, 2, 2)),
            ("no rows", real(2, 0, 0)),
        )
    ),
]

CASES: list[Case] = [*WINDOWS, *FACTORS]
