"""Points of gradients that the conformance suite does not have: inputs in float64, attributes.

The suite checks gradients at its own points against its oracle. A factorization with results of
any phase has no oracle; the other points here have a zero, a size or an index that the suite
lacks. They lie away from kinks by far more than the step of the differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.core.support.samples import Case, apart, real


def whole(*values: Any, dtype: Any = np.int32) -> np.ndarray:
    return np.array(values, dtype)


ARITHMETIC = [
    Case("RealDiv", "negative", {"a": real(3), "b": -real(3, low=0.5)}, ("a", "b")),
    Case(
        "Pow",
        "integer power of negative",
        {"a": -real(3, low=0.3), "b": np.array([2.0, 3.0, -1.0])},
        ("a",),
    ),
    Case("Pow", "power 0", {"a": real(3, low=0.5), "b": np.zeros(3)}, ("a", "b")),
    Case("Pow", "power 1", {"a": real(3, low=0.5), "b": np.ones(1)}, ("a", "b")),
    Case("Multiply", "int with float", {"a": real(3), "b": whole(1, 2, 3)}, ("a",)),
    Case("Prod", "odd length", {"x": real(7, low=0.5)}, ("x",)),
    Case("Prod", "one zero", {"x": np.array([1.5, 0.0, -2.0, 3.0])}, ("x",)),
    Case("Prod", "two zeros", {"x": np.array([0.0, 2.0, 0.0, 3.0, 4.0])}, ("x",)),
    Case("Prod", "three zeros", {"x": np.array([[0.0, 0.0, 0.0, 5.0]])}, ("x",), {"axis": 1}),
    *(
        Case(kernel, what, {"logits": x}, ("logits",))
        for kernel in ("Softmax", "LogSoftmax")
        for what, x in (("far from 0", real(2, 3) + 500.0), ("empty axis", real(3, 0)))
    ),
    *(
        Case(
            "BatchMatMul",
            f"size 1 batches{', a transposed' * flip_a}{', b transposed' * flip_b}",
            {
                "a": real(2, 1, *((3, 2) if flip_a else (2, 3))),
                "b": real(1, 3, *((4, 3) if flip_b else (3, 4)), salt=1),
            },
            ("a", "b"),
            {"transpose_a": flip_a, "transpose_b": flip_b},
        )
        for flip_a in (False, True)
        for flip_b in (False, True)
    ),
]

INDEXING = [
    *(
        Case("GatherV2", what, {"x": x, "indices": indices}, ("x",), attributes)
        for what, x, indices, attributes in (
            ("scalar index", real(4, 3), whole(1)[0], {}),
            ("axis -1, rank 2 indices", real(2, 4), whole([0, 3], [3, 1]), {"axis": -1}),
            ("uint8", real(5), whole(4, 4, 0, dtype=np.uint8), {}),
            ("int64", real(5), whole(-5, 3, dtype=np.int64), {}),
            ("empty axis", real(0, 2), whole(), {}),
            (
                "batch_dims 1, axis 2",
                real(2, 3, 4),
                whole([0, 3], [-1, 1]),
                {"axis": 2, "batch_dims": 1},
            ),
            (
                "batch_dims 2",
                real(2, 2, 3),
                whole([[0], [2]], [[1], [1]]),
                {"axis": 2, "batch_dims": 2},
            ),
            ("batch_dims -1", real(2, 3), whole([0, 2], [1, 1]), {"axis": 1, "batch_dims": -1}),
            ("empty batch", real(0, 3), np.zeros((0, 2), np.int32), {"axis": 1, "batch_dims": 1}),
        )
    ),
    *(
        Case(
            "ScatterNd",
            what,
            {"indices": indices, "updates": updates},
            ("updates",),
            {"shape": shape},
        )
        for what, indices, updates, shape in (
            ("elements of depth 2", whole([0, 1], [2, 0]), real(2), (3, 2)),
            ("rank 2 of rows", whole([[0], [1]], [[1], [2]]), real(2, 2, 3), (4, 3)),
            ("depth 2 of rank 3", whole([1, 0], [1, 0]), real(2, 2), (2, 3, 2)),
            ("depth 0", np.zeros((2, 0), np.int32), real(2, 3), (3,)),
            ("one update", whole(1), real(2), (3, 2)),
        )
    ),
]


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

CASES: list[Case] = [*ARITHMETIC, *INDEXING, *WINDOWS, *FACTORS]
