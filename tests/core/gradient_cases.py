"""Where each kernel's gradients are checked: inputs in float64, attributes, what to differentiate.

The points lie away from kinks by far more than the step of the differences. What happens at
the kinks is a convention, and is tested by value in ``test_gradients_at_kinks.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .samples import Case, apart, real
from .sliding_cases import SLIDING


def unary(kernel: str, *points: tuple[str, np.ndarray], name: str = "x") -> list[Case]:
    return [Case(kernel, what, {name: x}, (name,)) for what, x in points]


SMOOTH = (
    ("rank 2", real(2, 3)),
    ("rank 0", real()),
    ("size 1", real(1, 1)),
    ("empty", real(0, 3)),
)
POSITIVE = (
    ("rank 2", real(2, 3, low=0.2)),
    ("rank 0", real(low=0.2)),
    ("empty", real(2, 0)),
)
KINKED = (("rank 2", apart(3, 4)), ("rank 1", apart(5)), ("empty", apart(0)))

UNARY = [
    case
    for kernel, points in {
        "Neg": SMOOTH,
        "Abs": KINKED,
        "Exp": SMOOTH,
        "Log": POSITIVE,
        "Sqrt": POSITIVE,
        "Sin": SMOOTH,
        "Cos": SMOOTH,
        "Atan": SMOOTH,
        "Erf": SMOOTH,
        "Tanh": SMOOTH,
        "Square": SMOOTH,
        "Relu": KINKED,
        "Sigmoid": SMOOTH,
        "Identity": SMOOTH,
    }.items()
    for case in unary(kernel, *points)
]

BROADCASTS = (
    ("same shapes", (2, 3), (2, 3)),
    ("scalars", (), ()),
    ("scalar left", (), (2, 3)),
    ("scalar right", (2, 3), ()),
    ("row and column", (3, 1), (1, 4)),
    ("missing axes", (4,), (2, 3, 4)),
    ("size 1 against 1", (1, 3), (1, 1)),
    ("empty", (0, 3), (3,)),
    ("size 1 against 0", (1, 3), (0, 3)),
)


def binary(kernel: str, a: dict[str, float], b: dict[str, float]) -> list[Case]:
    return [
        Case(kernel, what, {"a": real(*left, **a), "b": real(*right, salt=1, **b)}, ("a", "b"))
        for what, left, right in BROADCASTS
    ]


def binary_kinked(kernel: str) -> list[Case]:
    """Two operands that are never closer than 0.05 to one another."""
    return [
        Case(
            kernel,
            what,
            {"a": apart(*left), "b": apart(*right, salt=1) + 0.05},
            ("a", "b"),
        )
        for what, left, right in BROADCASTS
    ]


BINARY = [
    *binary("Add", {}, {}),
    *binary("Sub", {}, {}),
    *binary("Multiply", {}, {}),
    *binary("RealDiv", {}, {"low": 0.5}),
    *binary("Pow", {"low": 0.3}, {}),
    *binary("SquaredDifference", {}, {}),
    *binary_kinked("Maximum"),
    *binary_kinked("Minimum"),
    # a / b stays between two integers: 7.3/2.0 .. 7.9/2.4 is in (3, 4).
    *binary("Mod", {"low": 7.3, "high": 7.9}, {"low": 2.0, "high": 2.4}),
    Case("Mod", "negative", {"a": -real(3, low=7.3, high=7.9), "b": np.array(2.2)}, ("a", "b")),
    Case("RealDiv", "negative", {"a": real(3), "b": -real(3, low=0.5)}, ("a", "b")),
    Case(
        "Pow",
        "integer power of negative",
        {"a": -real(3, low=0.3), "b": np.array([2.0, 3.0, -1.0])},
        ("a",),
    ),
    Case("Pow", "power 0", {"a": real(3, low=0.5), "b": np.zeros(3)}, ("a", "b")),
    Case("Pow", "power 1", {"a": real(3, low=0.5), "b": np.ones(1)}, ("a", "b")),
    Case("Multiply", "int with float", {"a": real(3), "b": np.array([1, 2, 3], np.int32)}, ("a",)),
]

MASK = np.array([[True, False, True], [False, False, True]])
SELECTION = [
    Case(
        "Select",
        "same shapes",
        {"condition": MASK, "t": real(2, 3), "e": real(2, 3, salt=1)},
        ("t", "e"),
    ),
    Case(
        "Select",
        "all broadcast",
        {"condition": MASK[:, :1], "t": real(3), "e": real(salt=1)},
        ("t", "e"),
    ),
    Case(
        "Select",
        "condition broadcast",
        {"condition": np.array(True), "t": real(2, 3), "e": real(1, 3)},
        ("t", "e"),
    ),
    Case("Select", "empty", {"condition": MASK[:0], "t": real(0, 3), "e": real(3)}, ("t", "e")),
    Case("Cast", "same", {"x": real(2, 3)}, ("x",), {"dtype": "float64"}),
    *(
        Case("Cast", what, {"x": real(*shape)}, ("x",), {"dtype": "float64"})
        for what, shape in (("rank 0", ()), ("rank 3", (2, 1, 3)), ("empty", (0,)))
    ),
]

AXES = (
    ("all", (2, 3), None),
    ("axis 0", (3, 2), 0),
    ("axis -1", (2, 3), -1),
    ("axes 0 and -1", (2, 3, 2), (0, -1)),
    ("middle axis", (2, 3, 2), 1),
    ("no axis", (2, 3), ()),
    ("rank 0", (), None),
    ("size 1", (1, 3), 0),
    ("outer empty", (0, 3), 1),
)
EMPTY_AXES = (("reduced empty", (2, 0), 1), ("all of nothing", (0,), None))


def reduction(kernel: str, name: str, *, kinked: bool, empty: bool) -> list[Case]:
    return [
        Case(
            kernel,
            f"{what}, {'kept' if keep else 'dropped'}",
            {"x": (apart if kinked else real)(*shape)},
            ("x",),
            {name: axis, "keep_dims": keep},
        )
        for what, shape, axis in (*AXES, *(EMPTY_AXES if empty else ()))
        for keep in (False, True)
    ]


REDUCTION = [
    *reduction("Sum", "axis", kinked=False, empty=True),
    *reduction("Prod", "axis", kinked=False, empty=True),
    *reduction("Mean", "axis", kinked=False, empty=False),
    *reduction("Max", "reduction_indices", kinked=True, empty=False),
    *reduction("Min", "axis", kinked=True, empty=False),
    Case("Prod", "odd length", {"x": real(7, low=0.5)}, ("x",)),
    Case("Prod", "one zero", {"x": np.array([1.5, 0.0, -2.0, 3.0])}, ("x",)),
    Case("Prod", "two zeros", {"x": np.array([0.0, 2.0, 0.0, 3.0, 4.0])}, ("x",)),
    Case("Prod", "three zeros", {"x": np.array([[0.0, 0.0, 0.0, 5.0]])}, ("x",), {"axis": 1}),
    *(
        Case(kernel, what, {"logits": x}, ("logits",), {name: axis})
        for kernel, name in (("Softmax", "dim"), ("LogSoftmax", "axis"))
        for what, x, axis in (
            ("last axis", real(2, 4), -1),
            ("first axis", real(3, 2), 0),
            ("middle axis", real(2, 3, 2), 1),
            ("size 1", real(3, 1), -1),
            ("far from 0", real(2, 3) + 500.0, -1),
            ("empty batch", real(0, 3), -1),
            ("empty axis", real(3, 0), -1),
        )
    ),
]

MOVEMENT = [
    Case("Reshape", "merge", {"x": real(2, 3)}, ("x",), {"shape": (6,)}),
    Case("Reshape", "with -1", {"x": real(2, 6)}, ("x",), {"shape": (3, -1)}),
    Case("Reshape", "to scalar", {"x": real(1, 1)}, ("x",), {"shape": ()}),
    Case("Reshape", "empty", {"x": real(0, 3)}, ("x",), {"shape": (3, 0, 2)}),
    Case("Transpose", "default", {"x": real(2, 3)}, ("x",)),
    Case("Transpose", "cycle", {"x": real(2, 3, 4)}, ("x",), {"perm": (1, 2, 0)}),
    Case("Transpose", "negative", {"x": real(2, 3, 4)}, ("x",), {"perm": (-1, 0, 1)}),
    Case("Transpose", "rank 0", {"x": real()}, ("x",)),
    Case("BroadcastTo", "new axes", {"x": real(3)}, ("x",), {"shape": (2, 4, 3)}),
    Case("BroadcastTo", "stretched", {"x": real(2, 1, 3)}, ("x",), {"shape": (2, 4, 3)}),
    Case("BroadcastTo", "both", {"x": real(1, 3)}, ("x",), {"shape": (2, 4, 3)}),
    Case("BroadcastTo", "scalar", {"x": real()}, ("x",), {"shape": (2, 2)}),
    Case("BroadcastTo", "to nothing", {"x": real(1, 3)}, ("x",), {"shape": (0, 3)}),
    Case("BroadcastTo", "unchanged", {"x": real(2, 3)}, ("x",), {"shape": (2, 3)}),
    Case("Slice", "block", {"x": real(4, 5)}, ("x",), {"begin": (1, 2), "size": (2, 3)}),
    Case("Slice", "rest", {"x": real(4, 5)}, ("x",), {"begin": (1,), "size": (-1,)}),
    Case("Slice", "nothing", {"x": real(4, 5)}, ("x",), {"begin": (1, 0), "size": (0, 2)}),
    Case("Slice", "rank 0", {"x": real()}, ("x",), {"begin": ()}),
    Case("PadV2", "zeros", {"x": real(2, 3)}, ("x",), {"paddings": ((1, 2), (0, 1))}),
    Case("PadV2", "with 7", {"x": real(3)}, ("x",), {"paddings": ((0, 2),), "constant_value": 7}),
    Case("PadV2", "empty", {"x": real(0, 2)}, ("x",), {"paddings": ((1, 1), (0, 0))}),
    Case("PadV2", "rank 0", {"x": real()}, ("x",), {"paddings": ()}),
    Case("Concat", "axis 0", {"xs": [real(2, 3), real(1, 3)]}, ("xs",)),
    Case("Concat", "axis -1", {"xs": [real(2, 1), real(2, 3), real(2, 2)]}, ("xs",), {"axis": -1}),
    Case("Concat", "with an empty one", {"xs": [real(2, 0), real(2, 3)]}, ("xs",), {"axis": 1}),
    Case("Concat", "of one", {"xs": [real(2, 2)]}, ("xs",), {"axis": 1}),
]


def whole(*values: Any, dtype: Any = np.int32) -> np.ndarray:
    return np.array(values, dtype)


INDEXING = [
    Case("GatherV2", "duplicates", {"x": real(4, 3), "indices": whole(2, 0, 2, 2)}, ("x",)),
    Case("GatherV2", "negative", {"x": real(4, 3), "indices": whole(-1, 0, -4)}, ("x",)),
    Case("GatherV2", "scalar index", {"x": real(4, 3), "indices": whole(1)[0]}, ("x",)),
    Case(
        "GatherV2",
        "axis -1, rank 2 indices",
        {"x": real(2, 4), "indices": whole([0, 3], [3, 1])},
        ("x",),
        {"axis": -1},
    ),
    Case(
        "GatherV2",
        "middle axis",
        {"x": real(2, 3, 2), "indices": whole(2, 2)},
        ("x",),
        {"axis": 1},
    ),
    Case("GatherV2", "uint8", {"x": real(5), "indices": whole(4, 4, 0, dtype=np.uint8)}, ("x",)),
    Case("GatherV2", "int64", {"x": real(5), "indices": whole(-5, 3, dtype=np.int64)}, ("x",)),
    Case("GatherV2", "no indices", {"x": real(4, 3), "indices": whole()}, ("x",)),
    Case("GatherV2", "empty inner", {"x": real(4, 0), "indices": whole(1, 2)}, ("x",)),
    Case("GatherV2", "empty axis", {"x": real(0, 2), "indices": whole()}, ("x",)),
    Case(
        "GatherV2",
        "batch_dims 1",
        {"x": real(2, 3, 2), "indices": whole([0, 2], [1, 1])},
        ("x",),
        {"axis": 1, "batch_dims": 1},
    ),
    Case(
        "GatherV2",
        "batch_dims 1, axis 2",
        {"x": real(2, 3, 4), "indices": whole([0, 3], [-1, 1])},
        ("x",),
        {"axis": 2, "batch_dims": 1},
    ),
    Case(
        "GatherV2",
        "batch_dims 2",
        {"x": real(2, 2, 3), "indices": whole([[0], [2]], [[1], [1]])},
        ("x",),
        {"axis": 2, "batch_dims": 2},
    ),
    Case(
        "GatherV2",
        "batch_dims -1",
        {"x": real(2, 3), "indices": whole([0, 2], [1, 1])},
        ("x",),
        {"axis": 1, "batch_dims": -1},
    ),
    Case(
        "GatherV2",
        "empty batch",
        {"x": real(0, 3), "indices": np.zeros((0, 2), np.int32)},
        ("x",),
        {"axis": 1, "batch_dims": 1},
    ),
    Case(
        "ScatterNd",
        "rows, duplicates",
        {"indices": whole([1], [3], [1]), "updates": real(3, 2)},
        ("updates",),
        {"shape": (4, 2)},
    ),
    Case(
        "ScatterNd",
        "elements",
        {"indices": whole([0, 1], [2, 0]), "updates": real(2)},
        ("updates",),
        {"shape": (3, 2)},
    ),
    Case(
        "ScatterNd",
        "rank 2 of rows",
        {"indices": whole([[0], [1]], [[1], [2]]), "updates": real(2, 2, 3)},
        ("updates",),
        {"shape": (4, 3)},
    ),
    Case(
        "ScatterNd",
        "depth 2 of rank 3",
        {"indices": whole([1, 0], [1, 0]), "updates": real(2, 2)},
        ("updates",),
        {"shape": (2, 3, 2)},
    ),
    Case(
        "ScatterNd",
        "depth 0",
        {"indices": np.zeros((2, 0), np.int32), "updates": real(2, 3)},
        ("updates",),
        {"shape": (3,)},
    ),
    Case(
        "ScatterNd",
        "one update",
        {"indices": whole(1), "updates": real(2)},
        ("updates",),
        {"shape": (3, 2)},
    ),
    Case(
        "ScatterNd",
        "no updates",
        {"indices": np.zeros((0, 1), np.int32), "updates": real(0, 2)},
        ("updates",),
        {"shape": (3, 2)},
    ),
    Case("TopK", "k 1", {"x": apart(2, 4)}, ("x",)),
    Case("TopK", "k 3", {"x": apart(2, 4)}, ("x",), {"k": 3}),
    Case("TopK", "all, rank 1", {"x": apart(5)}, ("x",), {"k": 5}),
    Case("TopK", "k 0", {"x": apart(2, 3)}, ("x",), {"k": 0}),
    Case("TopK", "rank 3", {"x": apart(2, 2, 3)}, ("x",), {"k": 2}),
    Case("TopK", "no rows", {"x": apart(0, 3)}, ("x",), {"k": 2}),
]

PRODUCTS = (  # rows 2, inner 3, columns 4
    ("matrices", (), ()),
    ("same batch", (2,), (2,)),
    ("batch left", (2,), ()),
    ("batch right", (), (3,)),
    ("size 1 batches", (2, 1), (1, 3)),
    ("ranks differ", (2,), (3, 1)),
    ("empty batch", (0,), ()),
)
LINALG = [
    Case(
        "BatchMatMul",
        f"{what}{', a transposed' * flip_a}{', b transposed' * flip_b}",
        {
            "a": real(*left, *((3, 2) if flip_a else (2, 3))),
            "b": real(*right, *((4, 3) if flip_b else (3, 4)), salt=1),
        },
        ("a", "b"),
        {"transpose_a": flip_a, "transpose_b": flip_b},
    )
    for what, left, right in PRODUCTS
    for flip_a in (False, True)
    for flip_b in (False, True)
] + [Case("BatchMatMul", "nothing inside", {"a": real(2, 0), "b": real(0, 3)}, ("a", "b"))]

TALL = real(2, 4, 3) + 2 * np.eye(4, 3)
REGULAR = real(2, 3, 3) + 3 * np.eye(3)
FACTORS = [
    Case("Qr", "tall", {"input": TALL}, ("input",)),
    Case("Qr", "square", {"input": REGULAR}, ("input",)),
    Case("Qr", "wide", {"input": TALL.swapaxes(1, 2)}, ("input",)),
    *(
        Case("Qr", what, {"input": x}, ("input",))
        for what, x in (
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
    *(
        Case("LogMatrixDeterminant", what, {"input": x}, ("input",))
        for what, x in (
            ("batch", REGULAR),
            ("one element", np.array([[-2.0]])),
            ("no matrices", real(0, 3, 3)),
            ("no rows", real(2, 0, 0)),
        )
    ),
    Case("Svd", "values alone", {"input": TALL}, ("input",), {"compute_uv": False}),
    Case("SelfAdjointEigV2", "values alone", {"input": REGULAR}, ("input",), {"compute_v": False}),
]


CASES: list[Case] = [
    *UNARY,
    *BINARY,
    *SELECTION,
    *REDUCTION,
    *MOVEMENT,
    *INDEXING,
    *LINALG,
    *FACTORS,
    *SLIDING,
]
